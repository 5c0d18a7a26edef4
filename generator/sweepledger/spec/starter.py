"""The spec that `sweep new` writes: complete, runnable, and explained line by line."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweepledger.reader.scalars import describe_split, rejoin_split, resolve_scalar
from sweepledger.structs.domain import is_ordered
from sweepledger.structs.methods import FIRST_SEARCH, LARGER_SEARCH, Method
from sweepledger.structs.metric import Goal

SCHEMA_FILE = ".schema.json"
"""File in the specs' folder with the schema for editors; the first line of a spec refers to it."""

MNIST = """\
# yaml-language-server: $schema=.schema.json
# A sweep: what to try, what to measure, how to run it.
# `sweep validate` checks it; `sweep try {name}` runs one trial here and now;
# `sweep generate {name}` writes the batch to commit. Problems are explained in docs/problems.md.

version: 1
name: {name}   # the file's name
description: How far do learning rate and batch size carry a small CNN on MNIST?

method: grid   # every combination; others: random, sobol, halton, latin-hypercube, list, tpe, and more
metric: {{name: test_accuracy, goal: maximize}}

parameters:
  learning_rate: {{values: [0.01, 0.04, 0.1, 0.4]}}   # or a range: {{min: 0.01, max: 0.41, step: 0.1}}
  batch_size: {{values: [32, 64, 128, 512]}}
  epochs: {{value: 2}}

# One list item an argument, no shell. "${{args}}" becomes --learning_rate=0.01 --batch_size=32 --epochs=2
command: [python, -m, trainer, mnist, "${{args}}"]

run:
  data: mnist   # a dataset of sweepledger.yaml
  resources: {{cpu: 1, memory: 2Gi}}   # of one trial
  parallelism: 4   # trials at once
  retries: 1   # of a trial that failed for no fault of its hyperparameters
  timeout: 10m   # of one attempt
"""


PLAIN = """\
# yaml-language-server: $schema=.schema.json
# A sweep: what to try, what to measure, how to run it.
# `sweep validate` checks it; `sweep try {name}` runs one trial here and now;
# `sweep generate {name}` writes the batch to commit.

version: 1
name: {name}   # the file's name
description: Which values score best?   # the question that the results answer

method: grid   # every combination; others: random, sobol, halton, latin-hypercube, list, tpe, and more
metric: {{name: score, goal: maximize, source: stdout}}   # a line `score=0.94`; or JSON in $SWEEP_RESULT

parameters:
  x: {{values: [1, 2, 3]}}
  rate: {{values: [0.1, 0.01]}}

# One list item an argument, no shell. "${{args}}" becomes --x=1 --rate=0.1
command: [python3, code/train.py, "${{args}}"]

run:
  # This folder's committed tree is locked and run; nothing else is there. In a cluster the image holds it, or
  # pods take it from git: {{path: code, mode: clone}}, with `code:` in sweepledger.yaml.
  code: {code}
  resources: {{cpu: 1, memory: 1Gi}}   # of one trial
  parallelism: 2   # trials at once
  retries: 1   # of a trial that failed for no fault of its hyperparameters
  timeout: 10m   # of one attempt
"""


OF_COMMAND = """\
# yaml-language-server: $schema=.schema.json
# `sweep run {name}` runs it here and commits the results; `sweep try {name}` runs one trial and records nothing.

version: 1
name: {name}   # the file's name

{method}
metric: {{name: {metric}, goal: {goal}, source: stdout}}   # a line `{metric}=0.94`; or JSON in $SWEEP_RESULT

parameters:
{parameters}
# One list item an argument, no shell{arguments}
command: {command}

run:
  code: {{path: {code}}}   # its committed files are locked and run
  resources: {{cpu: 1, memory: 1Gi}}   # of one trial
  parallelism: 2   # trials at once
  timeout: 1h   # of one attempt
"""
GRID = (
    "method: grid   # every combination; others: random, sobol, halton, latin-hypercube, list, tpe, and more"
)
SEARCH = """\
method: {method}   # a search, whose rounds learn from results; {why}
seed: 0   # the same seed and results, the same trials
rounds: {{size: 2, max: 10}}   # trials of a round, and number of rounds"""
MOST_DIMENSIONS = 12
"""Parameters that a Gaussian process learns from the configurations of a first search."""
MOST_COLUMNS = 24
"""Numbers that describe a configuration: one for each parameter with an order, and for each value without one."""
SCRIPT = ".py"
MODULE_OPTION = "-m"
SOURCE_FOLDER = "src"
"""The folder of packages in a `src` layout."""
INTERPRETERS = re.compile(r"python(?:3(?:\.\d+)?)?")
PARAMETER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)=(?P<values>.+)", re.DOTALL)
LOGARITHMIC = 100.0
"""Quotient of two positive bounds from which a range is one of magnitudes."""
EXAMPLE_VALUES = ("x=1,2,3",)


@dataclass(frozen=True, slots=True)
class Starter:
    """What the author of a spec says on the command line."""

    command: tuple[str, ...]
    """The command; `${args}` is appended if it does not contain a macro."""
    parameters: tuple[str, ...] = ()
    """Parameters as `NAME=VALUE,VALUE`, or as `NAME=LOW..HIGH`: a range, which is searched."""
    metric: str = "score"
    goal: Goal = Goal.MAXIMIZE

    def spec(self, name: str, *, code: str, search: tuple[str, str] | None = None) -> str:
        """Return the text of the spec; `search` replaces method and reason. Raises ValueError for a parameter."""
        parameters = dict(map(_parameter, self.parameters or EXAMPLE_VALUES))
        words = self.command if any("${" in word for word in self.command) else (*self.command, "${args}")
        method, why = search or self.method
        return OF_COMMAND.format(
            name=_yaml_scalar(name),
            method=SEARCH.format(method=method, why=why) if self.is_search else GRID,
            metric=_yaml_scalar(self.metric),
            goal=self.goal,
            parameters="".join(
                f"  {_yaml_scalar(key)}: {{{domain.yaml}}}\n" for key, domain in parameters.items()
            ),
            arguments=_shown_arguments(words, parameters),
            command=f"[{', '.join(map(_yaml_text, words))}]",
            code=code,
        )

    @property
    def is_search(self) -> bool:
        """Whether a parameter is a range."""
        return any(isinstance(domain, _Range) for _, domain in map(_parameter, self.parameters))

    @property
    def method(self) -> tuple[Method, str]:
        """The method that suits a first search of its parameters, and why."""
        domains = [domain for _, domain in map(_parameter, self.parameters)]
        searched = [domain for domain in domains if isinstance(domain, _Range) or len(domain.values) > 1]
        columns = sum(domain.columns for domain in searched)
        for count, limit, counted in (
            (len(searched), MOST_DIMENSIONS, "parameters"),
            (columns, MOST_COLUMNS, "numbers and values without an order"),
        ):
            if count > limit:
                return LARGER_SEARCH, f"{count} {counted} are more than the {limit} that suit bayes"
        return FIRST_SEARCH, "a Gaussian process learns most from few trials of few parameters"

    @property
    def module(self) -> str | None:
        """The module that the command starts; None if it starts a script or another program."""
        words = self.command
        if MODULE_OPTION not in words[:-1] or any(word.endswith(SCRIPT) for word in words):
            return None
        return words[words.index(MODULE_OPTION) + 1]

    def programs(self) -> tuple[str, ...]:
        """Return the paths that the program may have: those of a module, or that of the script or executable."""
        words = self.command
        if self.module is not None:
            module = self.module.replace(".", "/")
            places = (module, f"{SOURCE_FOLDER}/{module}")
            return tuple(f"{place}{end}" for place in places for end in (SCRIPT, f"/__main__{SCRIPT}"))
        named = [word for word in words if not word.startswith("-") and not INTERPRETERS.fullmatch(word)]
        return tuple([word for word in named if word.endswith(SCRIPT)][:1] or named[:1])


@dataclass(frozen=True, slots=True)
class _Values:
    values: tuple[str, ...]

    @property
    def value(self) -> object:
        """What the first trial receives."""
        return _value(self.values[0])

    @property
    def columns(self) -> int:
        """Return the numbers that describe one of its values to a model."""
        is_number = all(map(NUMBER.fullmatch, self.values))
        return 1 if is_number and is_ordered([*map(float, self.values)]) else len(self.values)

    @property
    def yaml(self) -> str:
        return f"values: [{', '.join(map(_yaml_scalar, self.values))}]"


@dataclass(frozen=True, slots=True)
class _Range:
    first: str
    last: str
    columns = 1

    @property
    def value(self) -> object:
        """The smallest value that a trial may receive."""
        return int(self.first) if self.is_whole else float(self.first)

    @property
    def is_whole(self) -> bool:
        """Whether its values are integers."""
        return self.first.lstrip("-").isdigit() and self.last.lstrip("-").isdigit()

    @property
    def yaml(self) -> str:
        low, high = float(self.first), float(self.last)
        # Whole numbers of several magnitudes, such as batch sizes, stay whole.
        scale = (
            ", distribution: log_uniform_values"
            if low > 0 and high / low >= LOGARITHMIC and not self.is_whole
            else ""
        )
        return f"min: {self.first}, max: {self.last}{scale}"


def _parameter(text: str) -> tuple[str, _Values | _Range]:
    match = PARAMETER.fullmatch(text)
    values = tuple(value.strip() for value in match["values"].split(",")) if match else ()
    if match is None or not all(values):
        raise ValueError(f"must be NAME=VALUE,VALUE … or NAME=LOW..HIGH, got {text!r}")
    divided = rejoin_split(values)
    if divided is not None:
        raise ValueError(
            f"must have no values with commas, got {text!r}: {describe_split(divided)} in the spec"
        )
    bounds = RANGE.fullmatch(match["values"].strip())
    if bounds is None:
        return match["name"], _Values(values)
    if float(bounds[1]) >= float(bounds[2]):
        raise ValueError(f"LOW..HIGH must have the lower number first, got {text!r}")
    return match["name"], _Range(bounds[1], bounds[2])


def _shown_arguments(words: Sequence[str], parameters: "Mapping[str, _Values | _Range]") -> str:
    """Return the end of the comment on a command: what its macro becomes in a first trial."""
    spread = next((word for word in words if word in SPREAD), None)
    if spread is None:
        return ""
    arguments = (SPREAD[spread].format(name=name, value=domain.value) for name, domain in parameters.items())
    shown = " ".join(map(shlex.quote, arguments))
    becomes = (
        "becomes, for example,"
        if any(isinstance(each, _Range) for each in parameters.values())
        else "becomes"
    )
    return f'. "{spread}" {becomes} {shown}' if shown.isprintable() else ""


def _value(text: str) -> object:
    """Return what a trial receives for a value of the command line."""
    return resolve_scalar(text) if _yaml_scalar(text) == text else text


SPREAD = {"${args}": "--{name}={value}", "${args_no_hyphens}": "{name}={value}"}
"""Macros that become one argument of every parameter, and its form."""


def _yaml_text(text: str) -> str:
    """Return a text as YAML, in quotes if it would be another type of value."""
    return (
        text
        if isinstance(_value(text), str) and _yaml_scalar(text) == text
        else json.dumps(text, ensure_ascii=False)
    )


def _yaml_scalar(text: str) -> str:
    """Return a value as YAML: numbers and booleans as they are, and all other text quoted unless it is plain."""
    if NUMBER.fullmatch(text) or PLAIN_WORD.fullmatch(text) or text in {"true", "false"}:
        return text
    return json.dumps(text, ensure_ascii=False)


NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
RANGE = re.compile(f"({NUMBER.pattern})\\.\\.({NUMBER.pattern})")
PLAIN_WORD = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[A-Za-z_][A-Za-z0-9_/]*(?:[.-][A-Za-z0-9_/]+)*",
    re.IGNORECASE,
)
"""Words that every reader of YAML takes for the text that they are."""


def starter_spec(name: str, *, example: str = PLAIN, clones: bool = False) -> str:
    """Return a starter spec: for the user's own program, or (`MNIST`) for the bundled trainer.

    `clones`: whether pods fetch code from git, by `code` in the settings.
    """
    return example.format(name=name, code="{path: code, mode: clone}" if clones else "{path: code}")
