"""What every importer keeps to, with a file of each format, and the inputs that an importer must survive."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger import search
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.errors import ToolError
from sweepledger.exchange.conversion import ForeignFormat, Imported, Reader
from sweepledger.exchange.spec_text import spec_text
from sweepledger.formats import evidence_jsonl
from sweepledger.formats.evidence_jsonl import ForeignEvidence
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.search import Expansion
from sweepledger.search.encoding import encode_space
from sweepledger.spec import ParsedSpec, parse
from sweepledger.structs.domain import Domain
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.exchange.imported import READERS, TRIAL_READERS, assignments_of, sweep_of, whats
from tests.written_specs import good


@dataclass(frozen=True, slots=True)
class Example:
    """A file of a format, and what a sweep of it must be."""

    content: bytes
    method: str
    domains: dict[str, Domain]
    goal: str
    metric: str
    command: tuple[str, ...]
    reported: set[str] = field(default_factory=set)
    """Losses that the report must have, among others."""


OPTIMIZATION_JOB = b"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: OptimizationJob
metadata: {name: tune}
spec:
  objectives: [{metric: val_loss, direction: Minimize}]
  searchAlgorithm: {random: {seed: 3}}
  numTrials: 8
  parallelTrials: 2
  parameters:
    - {name: lr, searchSpace: {logUniform: {min: "0.0001", max: "0.1"}}}
    - {name: n, searchSpace: {uniform: {min: "1", max: "9", type: Int}}}
    - {name: opt, searchSpace: {categorical: {choices: [sgd, adam]}}}
  trainJobTemplate:
    spec:
      runtimeRef: {name: torch}
      trainer:
        image: registry.example/x@sha256:0000000000000000000000000000000000000000000000000000000000000000
        command: [python, train.py]
"""
RAY = b"""
from ray import tune
space = {
    "lr": tune.loguniform(1e-4, 10**-1),
    "n": tune.randint(1, 10),
    "opt": {"name": tune.choice(["sgd", "adam"]), "momentum": 0.9},
    "noise": tune.randn(0, 2),
    "w": tune.quniform(0, 4, 2),
}
tuner = tune.Tuner(train, param_space=space, tune_config=tune.TuneConfig(
    metric="accuracy", mode="max", num_samples=8, max_concurrent_trials=2, scheduler=ASHA()))
"""
RAY_GRID = b"""
tune.run(train, config={"a": tune.grid_search([1, 2]), "b": tune.grid_search([3, 4])}, num_samples=3)
"""


def a_distribution(kind: str, **attributes: Any) -> str:
    return json.dumps({"name": f"{kind}Distribution", "attributes": attributes})


OPTUNA_PARAMETERS = {
    "lr": a_distribution("Float", low=0.001, high=1, log=True, step=None),
    "n": a_distribution("Int", low=1, high=9, log=False, step=1),
    "drop": a_distribution("Float", low=0, high=0.5, log=False, step=0.25),
    "opt": a_distribution("Categorical", choices=["sgd", "adam", None, 1, True]),
}


def a_journal(**studies: list[dict[str, str]]) -> bytes:
    """Return a journal of Optuna with studies to maximize, each with the distributions of its trials."""
    lines: list[dict[str, Any]] = [{"op_code": 0, "study_name": name, "directions": [2]} for name in studies]
    number = 0
    for study, trials in enumerate(studies.values()):
        for trial in trials:
            lines.append({"op_code": 4, "study_id": study, "datetime_start": "2026-01-01T00:00:00.000000"})
            parameters = {"op_code": 5, "trial_id": number, "param_value_internal": 0}
            lines += [
                {**parameters, "param_name": name, "distribution": text} for name, text in trial.items()
            ]
            number += 1
    return "".join(json.dumps(line | {"worker_id": "a"}) + "\n" for line in lines).encode()


OPTUNA_JOURNAL = a_journal(tune=[OPTUNA_PARAMETERS, *[{}] * 7])
OPTUNA_DOMAINS: dict[str, Domain] = {
    "lr": LogUniform(0.001, 1),
    "n": IntUniform(1, 9),
    "drop": Choice((0, 0.25, 0.5)),
    "opt": Choice(("sgd", "adam", None, 1, True)),
}
SPACE: dict[str, Domain] = {"lr": LogUniform(0.001, 1), "n": IntUniform(1, 9), "opt": Choice(("sgd", "adam"))}
PLACEHOLDER = ("${env}", "${interpreter}", "code/train.py", "${args}")
EXAMPLES: dict[str, Example] = {
    "optimization-job": Example(
        OPTIMIZATION_JOB, "random", SPACE | {"lr": LogUniform(0.0001, 0.1)}, "minimize", "val_loss",
        ("${env}", "KUBEFLOW_TRAINER_OPT_LR=${envvar:SWEEP_PARAM_LR}",
         "KUBEFLOW_TRAINER_OPT_N=${envvar:SWEEP_PARAM_N}",
         "KUBEFLOW_TRAINER_OPT_OPT=${envvar:SWEEP_PARAM_OPT}", "python", "train.py"),
        {"spec.trainJobTemplate.spec.runtimeRef: torch", "seed"},
    ),
    "optuna": Example(OPTUNA_JOURNAL, "tpe", OPTUNA_DOMAINS, "maximize", "objective", PLACEHOLDER,
                      {"sampler", "8 trials", "parameter lr"}),
    "ray": Example(
        RAY, "random",
        {"lr": LogUniform(0.0001, 0.1), "n": IntUniform(1, 9), "opt.name": Choice(("sgd", "adam")),
         "opt.momentum": Constant(0.9), "noise": Normal(0, 2), "w": Quantized(Uniform(0, 4), 2)},
        "maximize", "accuracy", PLACEHOLDER, {"scheduler", "program", "parameter w"},
    ),
    "ray:grid": Example(RAY_GRID, "grid", {"a": Choice((1, 2)), "b": Choice((3, 4))}, "maximize", "objective",
                        PLACEHOLDER, {"num_samples: 3"}),
}  # fmt: skip
"""A file of each new format, by the format's name and, after a colon, its variant."""

FILES = Path(__file__).parent / "files"
OLDER = {
    "wandb": b"{program: code/a.py, method: bayes, metric: {name: l}, "
    b"parameters: {x: {min: 0.5, max: 1}, y: {values: [1]}}, "
    b"command: [python, '${program}', '${args}'], early_terminate: {type: hyperband, min_iter: 3}}",
    "katib": (FILES / "katib/random-v1beta1.yaml").read_bytes(),
    "hydra": b"hydra: {sweeper: {n_trials: 3, sampler: {seed: 1}, params: {x: 'range(1,9)', y: 'interval(0,1)'}, "
    b"search_space: {z: {type: float, low: 0, high: 1}}, ax_config: {params: {w: {type: range, bounds: [0, 1]}}}}}",
    "nvidia": b"- hyperparam_set:\n    lr: 0.1\n    opt: sgd\n- hyperparam_set:\n    lr: 0.2\n    opt: adam\n",
    "csv": b"lr,opt\n0.1,sgd\n0.2,adam\n",
    "jsonl": b'{"lr": 0.1}\n{"lr": 0.2}\n',
}
SEEDS = OLDER | {name: example.content for name, example in EXAMPLES.items()}

SEARCH = b"""name: hill
method: tpe
seed: 1
rounds: {size: 2, max: 3}
metric: {name: score, goal: maximize, source: stdout}
parameters:
  lr: {distribution: log_uniform_values, min: 0.0001, max: 1}
  width: {min: 1, max: 9}
  opt: {values: [sgd, adam, null, 1, true]}
  momentum: {min: 0.0, max: 1.0}
  bias: {value: 3}
command: [python, code/a.py, "${args}"]
run: {code: {path: code}}
"""
TRIALS = {
    "csv": b"Name,State,config.lr,params_width,opt,momentum,summary.score,Runtime\n"
    b"a,finished,0.01,3,sgd,0.5,0.9,12\nb,crashed,0.1,4,adam,,,3\nc,running,0.1,4,adam,,0.3,3\n",
    "jsonl": b'{"config": {"lr": 0.01, "width": 3, "opt": "sgd"}, "summary": {"score": 0.9}, "state": "finished"}\n'
    b'{"params": {"lr": 1e-2, "width": {"value": 4}, "opt": null}, "metrics": {"score": 0.5, "momentum": 1}}\n',
}
"""Finished trials of other tools, from which a search may start, by the format of the file."""
TOKENS = (
    b"null", b"true", b"-1", b"1e999", b"9" * 400, b"nan", b"[]", b"{}", b"''", b": ", b"- ", b"\n", b"\0", b"&a ",
    b"*a", b"!!python/object ", b"\xff", b"\xe2\x80\xae", b"${", b"{{item}}", b"$(", b"'", b'"', b"[" * 90,
    b"{a: " * 90,
    b"range(", b"interval(", b"tune.choice(", b"lambda: 0", b"10**10**10", b"\t", b"..", b"/etc/passwd", b"0x10",
)  # fmt: skip

VALUES = (
    b"null", b"true", b"-1", b"0", b"1e999", b"-.inf", b".nan", b"1e-320", b"9007199254740993", b"9" * 400, b"[]",
    b"{}", b"''", b"[[]]", b"[1, a]", b"{a: 1}", b"0x10", b"1_0", b"2026-01-01", b"~", b"", b"a.b", b"a/b", b"..", b"-",
    b"$(x)", b"${x}", b"{{x}}", b"a=b", b"a,b",
)  # fmt: skip
"""Values in the place of a word."""


WORD = re.compile(rb"[\w.+-]+|[^\w\s]")
"""A name, a number or a mark: a file in which some are replaced is often still readable."""


def mutations(content: bytes, seed: int | str, count: int) -> Iterator[bytes]:
    """Yield changed copies of a file: pieces of any length, or whole words, are deleted, repeated and replaced.

    Files with other words reach what is behind the parser, which refuses most files with other pieces.
    """
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    words = list(WORD.finditer(content))
    for _ in range(count):
        changed = bytearray(content)
        is_by_word = chance.random() < 0.5
        # From the end, so that the places of the words before stay as they are.
        chosen = sorted(chance.choices(words, k=chance.randint(1, 4)), key=re.Match.start, reverse=True)
        for word in chosen:
            start, end = word.span()
            if not is_by_word:
                start = chance.randrange(len(changed) + 1)
                end = min(len(changed), start + chance.choice((0, 1, 2, 8, 40)))
            changed[start:end] = _replacement(content, words, chance, is_word=is_by_word)
        yield bytes(changed)


def _replacement(
    content: bytes, words: list[re.Match[bytes]], chance: random.Random, *, is_word: bool
) -> bytes:
    """Return a hostile token, or a part of the file itself."""
    if is_word:
        return chance.choice(words)[0] if chance.random() < 0.5 else chance.choice(VALUES)
    if chance.random() < 0.7:
        return chance.choice(TOKENS)
    return content[chance.randrange(len(content)) :][:20]


def read(name: str, content: bytes | None = None) -> Imported:
    """Read a file of a format; default: its example."""
    return READERS[name.partition(":")[0]](SEEDS[name] if content is None else content, name="imported")


@cache
def _search() -> Sweep:
    parsed = parse(SEARCH, "sweeps/hill.yaml", Settings(), beside=lambda _: None)
    assert isinstance(parsed, ParsedSpec)
    return parsed.sweep


def survive_trials(form: str, content: bytes) -> None:
    """Read a file of any content as trials: what is written of them reads back, or a refusal."""
    sweep = _search()
    try:
        trials = tuple(TRIAL_READERS[form](content, sweep, None)[1])
    except ForeignError:
        return
    assert sweep.search is not None
    space = encode_space(sweep.search.space)
    for trial in trials:
        space.encode({**space.constants, **trial.configuration})
    written = evidence_jsonl.write(ForeignEvidence(form, "file", "", trials))
    assert evidence_jsonl.write(evidence_jsonl.read(written.encode())) == written


def written(read: Reader, content: bytes) -> str | None:
    """Return the spec that a file of any content becomes; None if it is refused. Any other exception is a bug."""
    try:
        imported = read(content, name="imported")
        text = spec_text(imported, "a file")
    except (ForeignError, ToolError):
        return None
    assert all(loss.part and loss.reason for loss in imported.losses)
    return text


def explore_written(text: str, content: bytes) -> None:
    """Read an imported spec as any spec, which has a sweep or problems, and list its trials."""
    parsed = parse(text.encode(), "sweeps/imported.yaml", Settings(), beside=lambda _: content)
    if isinstance(parsed, ParsedSpec) and parsed.sweep.design is not None:
        assert isinstance(search.explore(parsed.sweep, parsed.source), Expansion | tuple)


def survive(read: Reader, content: bytes) -> None:
    """Import a file of any content: a spec that our reader answers, or a refusal."""
    text = written(read, content)
    if text is not None:
        explore_written(text, content)


REPEATED = good(
    method="grid",
    metric={"name": "score", "goal": "maximize", "source": "stdout"},
    parameters={"alpha": {"values": ["u", "v"]}, "beta": {"values": ["x", "y"]}},
    replicates=2,
)
"""Every format can have its trials, and none its replicates."""


def there_and_back(form: ForeignFormat, sweep: Sweep) -> tuple[Sweep, set[str]]:
    """Return the sweep that comes back, and what was lost on either way."""
    assert form.read
    assert form.write
    exported = form.write(sweep, () if sweep.search else assignments_of(sweep))
    beside = exported.text.encode()
    imported = form.read(beside, name="again")
    again = sweep_of(imported, beside=lambda file: beside if file.endswith(".csv") else None)
    return again, {*whats(exported.losses), *whats(imported.losses)}


def trials(sweep: Sweep) -> list[str]:
    return sorted(map(canonical_json, assignments_of(sweep)))


UNKNOWN = "unknown_key"


def with_unknown_keys(content: bytes) -> Iterator[bytes]:
    """Yield a YAML file with an unknown key in each of its mappings, one after the other; nothing of other files."""
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError:
        return
    for mapping in _mappings(document):
        mapping[UNKNOWN] = 7
        yield yaml.dump(document, Dumper=yaml.CSafeDumper).encode()
        del mapping[UNKNOWN]


def with_odd_values(content: bytes) -> Iterator[bytes]:
    """Yield a YAML file with each value of its mappings replaced by odd ones, one after the other."""
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError:
        return
    for mapping in _mappings(document):
        for key, value in list(mapping.items()):
            odd: Any
            for odd in (None, 2.5, [{}]):
                mapping[key] = odd
                yield yaml.dump(document, Dumper=yaml.CSafeDumper).encode()
            mapping[key] = value


def _mappings(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _mappings(item)


def conforms(form: ForeignFormat, content: bytes, *, count: int, reads_back: bool = True) -> None:
    """Fail unless a format keeps to what all do; `content` is a file that it reads, of which `count` are changed."""
    assert form.read
    first, second = (form.read(content, name="imported") for _ in range(2))
    assert (spec_text(first, form.name), first.losses) == (spec_text(second, form.name), second.losses)
    assert form.read(content, name="other").spec["name"] in {"other", first.spec["name"]}
    for hostile in (b"", b"\0\xff", b"[" * 100_000, b"SQLite format 3\0"):
        with pytest.raises(ForeignError):
            form.read(hostile, name="imported")
    for changed in mutations(content, seed=1, count=count):
        survive(form.read, changed)
    for strange in with_odd_values(content):
        written(form.read, strange)
    for strange in with_unknown_keys(content):
        try:
            imported = form.read(strange, name="imported")
        except ForeignError:
            continue
        assert UNKNOWN in spec_text(imported, form.name), "a key is lost in silence"
    if form.write is None:
        return
    rows = assignments_of(REPEATED)
    exported = form.write(REPEATED, rows)
    assert exported == form.write(REPEATED, rows)
    assert any("replicates" in loss.part for loss in exported.losses)
    if reads_back:
        assert trials(there_and_back(form, REPEATED)[0]) == trials(REPEATED)
