"""The spec that `sweep new` writes: complete, runnable, and explained line by line."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from sweepledger.operations.repository.program_options import ARGS, UNKNOWN, OptionKind, ProgramOptions
from sweepledger.reader.scalars import describe_split, rejoin_split, resolve_scalar
from sweepledger.reader.yaml_edit import format_scalar
from sweepledger.structs import methods
from sweepledger.structs.domain import is_ordered
from sweepledger.structs.metric import DEFAULT_METRIC, Goal, MetricFormat
from sweepledger.structs.program import spread_names

SCHEMA_FILE = ".schema.json"
"""File in the specs' folder with the schema for editors; the first line of a spec refers to it."""

SCHEMA_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
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
{metric}

parameters:
{parameters}
# One list item an argument, no shell{arguments}
command: {command}

run:
  code: {code}   # these committed files are locked and run{config}
  resources: {{cpu: 1, memory: {memory}}}   # of one trial
  parallelism: {parallelism}   # trials at once
  timeout: 1h   # of one attempt
"""
GRID = (
    "method: grid   # every combination; others: random, sobol, halton, latin-hypercube, list, tpe, and more"
)
SAMPLES = """\
method: {method}
seed: 0   # the same seed, the same trials
run_cap: {trials}   # configurations"""
SEARCH = """\
method: {method}   # a search, whose rounds learn from results{why}
seed: 0   # the same seed and results, the same trials
rounds: {{size: {size}, max: {rounds}}}   # trials of a round, each of which is a commit, and number of rounds"""
CODE_OF_REPOSITORY = '{path: ., exclude: ["*.ipynb", "*.log", "*.md"]}'
"""Beside a program at the root lie files that no trial needs; a change of them is none of the code."""
PARALLELISM = 2
ROUNDS = 8
"""Of a first search at most: each is a commit, and a search learns little from smaller ones."""
DEFAULT_TRIALS = 20
"""Of a search or sample for which none are given."""
MOST_DIMENSIONS = 12
"""Parameters that a Gaussian process learns from the configurations of a first search."""
MOST_COLUMNS = 24
"""Numbers that describe a configuration: one for each parameter with an order, and for each value without one."""
PARAMETER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)=(?P<values>.+)", re.DOTALL)
LOGARITHMIC = 100.0
"""Quotient of two positive bounds from which a range is one of magnitudes."""
EXAMPLE_VALUES = ("x=1,2,3",)


@dataclass(frozen=True, slots=True)
class Starter:
    """The parts of a spec that its author gives on the command line, or in Python."""

    command: tuple[str, ...]
    """The command; `${args}` is appended if it does not contain a macro."""
    parameters: tuple["str | WrittenParameter", ...] = ()
    """Parameters as `NAME=VALUE,VALUE`, as `NAME=LOW..HIGH`: a range, which is searched, or as keys of a spec."""
    metric: str = DEFAULT_METRIC
    goal: Goal = Goal.MAXIMIZE
    named_method: str | None = None
    trials: int | None = None
    pattern: str | None = None
    """A regular expression of the lines with the metric; its first group is the value."""
    metric_path: str | None = None
    """Files with the metric, whose format their names show."""
    writes_result: bool = False
    """Whether the command writes the metric to `$SWEEP_RESULT`, and nothing that it prints counts."""
    only_file: str | None = None
    """The only file of its code; None: what surrounds the program."""
    parallelism: int = PARALLELISM

    def spec(
        self,
        name: str,
        *,
        code: str,
        search: tuple[str, str] | None = None,
        options: ProgramOptions = UNKNOWN,
        memory: str = "1Gi",
        written: Mapping[str, str] = MappingProxyType({}),
        place: int | None = None,
        config: str | None = None,
    ) -> str:
        """Return the text of the spec; `search` replaces method and reason. Raises ValueError for a parameter.

        `written` has the macros of parameters whose options the author wrote, `place` where they were in the command.
        `config` is the configuration file that trials get.
        """
        given = map(_parameter, self.parameters or EXAMPLE_VALUES)
        parameters = {
            key if key in written else options.spelling(key) or key: domain for key, domain in given
        }
        words = self.command
        if not any("${" in word or "$SWEEP_" in word for word in words):
            own = {
                key: written.get(key) or domain.macro(options.kind(key)) for key, domain in parameters.items()
            }
            words = (*words[:place], *options.macros(own), *words[len(words) if place is None else place :])
        return OF_COMMAND.format(
            name=_yaml_scalar(name),
            method=self._method_lines(search),
            metric=self._metric_lines(name),
            parameters="".join(
                f"  {_yaml_scalar(key)}: {{{domain.yaml}}}\n" for key, domain in parameters.items()
            ),
            arguments=_shown_arguments(words, parameters),
            command=f"[{', '.join(map(format_scalar, words))}]",
            code=f"{{path: [{_yaml_scalar(self.only_file)}]}}"
            if self.only_file is not None
            else CODE_OF_REPOSITORY
            if code == "."
            else f"{{path: {_yaml_scalar(code)}}}",
            config=""
            if config is None
            else f"\n  config: {{base: {_yaml_scalar(config)}}}   # the file of ${{config}}",
            memory=memory,
            parallelism=self.parallelism,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters, as the author writes them. Raises ValueError for an invalid parameter."""
        return tuple(name for name, _ in map(_parameter, self.parameters))

    def _method_lines(self, search: tuple[str, str] | None) -> str:
        trials = DEFAULT_TRIALS if self.trials is None else self.trials
        method, why = self.named_method, ""
        if method is None and self.is_search:
            suited, reason = self.method
            method, why = search or (suited.name, reason)
        if method is None and self.trials is not None:
            method = methods.PLAIN.name
        if method in {None, methods.GRID}:
            return GRID
        if method in methods.SAMPLERS:
            return SAMPLES.format(method=method, trials=trials)
        why = f"; {why}" if why else ""
        size = max(PARALLELISM, -(-trials // ROUNDS))
        return SEARCH.format(method=method, why=why, size=size, rounds=-(-trials // size))

    def _metric_lines(self, name: str) -> str:
        if self.writes_result:
            return f"metric: {{name: {_yaml_scalar(self.metric)}, goal: {self.goal}, format: jsonl}}"
        other = f"for other forms, `sweep try {name} --write` changes this."
        return f"# Read from a line such as `{self.metric}=0.94`; {other}\nmetric: {self._metric_block}"

    @property
    def _metric_block(self) -> str:
        head = f"name: {_yaml_scalar(self.metric)}, goal: {self.goal}"
        if self.metric_path is not None:
            end = PurePosixPath(self.metric_path).suffix.removeprefix(".")
            form = end if end in {*MetricFormat} else "tensorboard"
            return f"{{{head}, format: {form}, path: {json.dumps(self.metric_path)}}}"
        if self.pattern is not None:
            named = FIRST_GROUP.sub(r"\1(?P<value>", self.pattern, count=1)
            pattern = json.dumps(self.pattern if "(?P<value>" in self.pattern else named, ensure_ascii=False)
            return f"{{{head}, source: stdout, format: regex, patterns: [{pattern}]}}"
        return f"{{{head}, source: stdout}}"

    @property
    def is_search(self) -> bool:
        """Whether a parameter is a range."""
        return any(domain.is_range for _, domain in map(_parameter, self.parameters))

    @property
    def method(self) -> tuple[methods.Method, str]:
        """The method that suits a first search of its parameters, and why."""
        domains = [domain for _, domain in map(_parameter, self.parameters)]
        searched = [domain for domain in domains if domain.is_range or len(domain.values) > 1]
        columns = sum(domain.columns for domain in searched)
        for count, limit, counted in (
            (len(searched), MOST_DIMENSIONS, "parameters"),
            (columns, MOST_COLUMNS, "numbers and values without an order"),
        ):
            if count > limit:
                return methods.LARGER_SEARCH, f"{count} {counted} are more than the {limit} that suit bayes"
        return methods.FIRST_SEARCH, "a Gaussian process learns most from few trials of few parameters"


FIRST_GROUP = re.compile(r"((?:^|[^\\])(?:\\\\)*)\((?!\?)")
"""The first group of a regular expression, which becomes the one that is called `value`."""


@dataclass(frozen=True, slots=True)
class WrittenParameter:
    """A parameter with its keys, as a spec has them."""

    name: str
    keys: Mapping[str, Any]

    @property
    def is_range(self) -> bool:
        """Whether it has no list of values."""
        return not self.values

    @property
    def values(self) -> tuple[Any, ...]:
        """Its values; none for a distribution."""
        return tuple(self.keys.get("values", [self.keys["value"]] if "value" in self.keys else []))

    def macro(self, _: OptionKind | None) -> str | None:
        """Return the macro by which an option gets its values; None if the program decides, as for true and false."""
        return None if self.values and {*map(type, self.values)} == {bool} else ARGS

    @property
    def value(self) -> object:
        """What the first trial receives."""
        return self.values[0] if self.values else self.keys.get("min")

    @property
    def columns(self) -> int:
        """Return the numbers that represent one of its values in a model."""
        return 1 if self.is_range or is_ordered(self.values) else len(self.values)

    @property
    def yaml(self) -> str:
        """Its keys in braces, without these."""
        return ", ".join(
            f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in self.keys.items()
        )


@dataclass(frozen=True, slots=True)
class _Values:
    values: tuple[str, ...]
    is_range = False

    @property
    def value(self) -> object:
        """What the first trial receives."""
        text = self.values[0]
        return resolve_scalar(text) if _yaml_scalar(text) == text else text

    @property
    def is_list(self) -> bool:
        """Whether its values are lists."""
        return all(map(LIST.fullmatch, self.values))

    def macro(self, kind: OptionKind | None) -> str | None:
        """Return the macro by which an option gets its values; None if the program decides, as for true and false."""
        if self.is_list and kind in {OptionKind.LIST, None}:
            return "${args_spaced}"
        return None if {"true", "false"} >= set(self.values) else ARGS

    @property
    def columns(self) -> int:
        """Return the numbers that represent one of its values in a model."""
        is_number = all(map(NUMBER.fullmatch, self.values))
        return 1 if is_number and is_ordered([*map(float, self.values)]) else len(self.values)

    @property
    def yaml(self) -> str:
        return f"values: [{', '.join(map(_yaml_list if self.is_list else _yaml_scalar, self.values))}]"


@dataclass(frozen=True, slots=True)
class _Range:
    first: str
    last: str
    is_range = True
    columns = 1
    values = ()

    def macro(self, _: OptionKind | None) -> str:
        """Return the macro by which an option gets a number."""
        return ARGS

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


_Domain = _Values | _Range | WrittenParameter


def _parameter(text: str | WrittenParameter) -> tuple[str, _Domain]:
    if isinstance(text, WrittenParameter):
        return text.name, text
    match = PARAMETER.fullmatch(text)
    values = tuple(value.strip() for value in match["values"].split(",")) if match else ()
    if match is None or not all(values):
        raise ValueError(f"must be NAME=VALUE,VALUE … or NAME=LOW..HIGH, got {text!r}")
    divided = rejoin_split(values)
    if divided is not None and all(map(LIST.fullmatch, divided)):
        return str(match and match["name"]), _Values(divided)
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


def _shown_arguments(words: Sequence[str], parameters: "Mapping[str, _Domain]") -> str:
    """Return the end of the comment on a command: the expansion of its macro in a first trial."""
    spread = next((word for word in words if word in SPREAD), None)
    if spread is None:
        return ""
    named = ",".join(filter(None, spread_names(words))).split(",")
    arguments = (
        SPREAD[spread].format(name=name, value=domain.value)
        for name, domain in parameters.items()
        if name not in named
    )
    shown = " ".join(map(shlex.quote, arguments))
    becomes = "becomes, for example," if any(each.is_range for each in parameters.values()) else "becomes"
    return f'. "{spread}" {becomes} {shown}' if shown.isprintable() else ""


SPREAD = {"${args}": "--{name}={value}", "${args_no_hyphens}": "{name}={value}"}
"""Macros that become one argument of every parameter, and its form."""


def _yaml_scalar(text: str) -> str:
    """Return a value of the command line as YAML: numbers and booleans as they are, and all other text as text."""
    return text if NUMBER.fullmatch(text) or text in {"true", "false"} else format_scalar(text)


def _yaml_list(text: str) -> str:
    return f"[{', '.join(_yaml_scalar(item.strip()) for item in text[1:-1].split(','))}]"


LIST = re.compile(r"\[[^\[\]{}()]+\]")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
RANGE = re.compile(f"({NUMBER.pattern})\\.\\.({NUMBER.pattern})")


def starter_spec(name: str, *, example: str = PLAIN, clones: bool = False) -> str:
    """Return a starter spec: for the user's own program, or (`MNIST`) for the bundled trainer.

    `clones`: whether pods fetch code from git, by `code` in the settings.
    """
    return example.format(name=name, code="{path: code, mode: clone}" if clones else "{path: code}")
