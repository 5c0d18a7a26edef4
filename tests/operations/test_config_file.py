"""A program that reads a configuration file gets it with the values of each trial."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.errors import GeneratorError, RepositoryError, SpecError
from sweepledger.formats import config_file
from sweepledger.operations.reports.reproduction import run_again
from sweepledger.structs.program import ConfigFormat
from sweepledger.verbs.plan import plan_sweeps
from sweepledger.verbs.try_ import try_trial
from tests.builders import present
from tests.repository import Sandbox, check_specs

PROGRAM = """import json, os, pathlib, sys
path = pathlib.Path(sys.argv[1])
if path.suffix == ".toml":
    import tomllib
    config = tomllib.loads(path.read_text())
else:
    config = json.loads("".join(f"{{{line}}}" for line in [", ".join(path.read_text().splitlines())]))
print("score=", config["optimizer"]["lr"] * config["epochs"], sep="")
"""
BASES = {
    "yaml": "# the usual values\nepochs: 3\nname: no thing\noptimizer:\n  lr: 1e-3   # a text for PyYAML\n",
    "toml": 'epochs = 3\nname = "no thing"\n[optimizer]\nlr = 1e-3\n',
}
SPEC = """name: peak
method: grid
metric: {{name: score, goal: maximize, source: stdout}}
parameters: {{{name}: {{values: [0.5, 0.25]}}}}
command: [python3, train.py, "${{config}}"]
run: {{code: {{path: .}}, config: {config}, resources: {{cpu: 1, memory: 256Mi}}, timeout: 1m}}
"""


def repository(
    sandbox: Sandbox,
    *,
    form: str = "yaml",
    name: str = "optimizer.lr",
    more: str = "",
    base: str | None = None,
) -> Sandbox:
    sandbox.write("train.py", PROGRAM)
    sandbox.write(f"config/train.{form}", BASES[form] if base is None else base)
    config = f"{{base: config/train.{form}{more}}}"
    sandbox.write("sweeps/peak.yaml", SPEC.format(name=name, config=config))
    sandbox.name_person()
    sandbox.commit("Write the program")
    return sandbox


@pytest.mark.parametrize("form", ["yaml", "toml"])
def test_each_trial_gets_the_file_with_its_values(sandbox: Sandbox, form: str, needs_kustomize: None) -> None:
    repository(sandbox, form=form)
    (note,) = [
        note for note in plan_sweeps(sandbox.workspace, ["peak"]).reviews[0].notes if note.kind == "config"
    ]

    list(sandbox.run("peak"))

    assert note.text == f"config/train.{form}: optimizer.lr 0.001 → 0.5, 0.25"
    (file,) = sandbox.root.glob("results/peak/records/*.jsonl")
    records = [line for line in map(json.loads, file.read_text().splitlines()) if "status" in line]
    assert [record["metrics"]["score"] for record in records] == [1.5, 0.75]
    digests = {record["details"]["config"] for record in records}
    assert len(digests) == 2
    (batch,) = sandbox.batches()
    assert json.loads(present(batch.lock.program.config).text)["optimizer"] == {"lr": 0.001}
    assert run_again(sandbox.workspace, batch.rows[0].trial).is_equal


def warned_of(sandbox: Sandbox) -> str:
    """Return what `sweep validate` warns of, with its hint."""
    (warning,) = [each for each in check_specs(sandbox.workspace)[1] if each.code == "config-base"]
    return f"{warning.message} ({warning.hint})"


@pytest.mark.parametrize(
    ("name", "more", "message", "hint"),
    [
        (
            "optimizer.rl",
            "",
            "must be a name in config/train.yaml, got 'optimizer.rl'",
            "did you mean 'optimizer.lr'?",
        ),
        ("epochs.first", ", add: true", "epochs.first would be in 3, which is no mapping", ""),
    ],
    ids=["unknown", "inside of a number"],
)
def test_a_name_that_the_file_cannot_have_is_refused(
    sandbox: Sandbox, name: str, more: str, message: str, hint: str
) -> None:
    repository(sandbox, name=name, more=more)

    assert message in warned_of(sandbox)
    assert hint in warned_of(sandbox)
    with pytest.raises(SpecError) as tried:
        try_trial(sandbox.workspace, "peak", 0, quiet=True)
    with pytest.raises(SpecError) as ran:
        list(sandbox.run("peak"))
    for caught in (tried, ran):
        assert message in caught.value.problems[0].message


def test_a_name_that_the_file_lacks_is_added_on_request(sandbox: Sandbox) -> None:
    repository(sandbox, name="optimizer.momentum", more=", add: true")

    assert present(try_trial(sandbox.workspace, "peak", 0, quiet=True).record).metrics == {"score": 0.003}


def test_a_file_that_is_not_committed_is_refused(sandbox: Sandbox) -> None:
    repository(sandbox)
    Path(sandbox.root, "config/train.yaml").unlink()
    sandbox.commit("Delete the file")

    with pytest.raises(RepositoryError, match=r"run\.config\.base must name a file of the code in the last"):
        list(sandbox.run("peak"))
    assert "must name a file of the code in the work tree, got 'config/train.yaml'" in warned_of(sandbox)


def test_a_file_that_no_json_can_hold_is_refused(sandbox: Sandbox) -> None:
    repository(sandbox, base="0: zero\n")
    message = r"config/train\.yaml: must have keys that are texts"

    with pytest.raises(RepositoryError, match=message):
        list(sandbox.run("peak"))
    with pytest.raises(GeneratorError, match=message):
        try_trial(sandbox.workspace, "peak", 0, quiet=True)
    assert "must have keys that are texts" in warned_of(sandbox)


DOCUMENTS: list[tuple[ConfigFormat, str, dict[str, Any]]] = [
    (
        ConfigFormat.YAML,
        "a: &x {b: yes}\nc: *x\nd: 1e-3\ne: 012\n",
        {"a": {"b": True}, "c": {"b": True}, "d": 1e-3, "e": 10},
    ),
    (
        ConfigFormat.TOML,
        "b = [0.1, 0.2]\na.b.c = 'x.y x.y'\n",
        {"b": [0.1, 0.2], "a": {"b": {"c": "x.y x.y"}}},
    ),
    (ConfigFormat.JSON, '{"b": 1, "a": [null, "\\u00e9"]}', {"b": 1, "a": [None, "é"]}),
]


@pytest.mark.parametrize(("form", "text", "data"), DOCUMENTS, ids=[form for form, _, _ in DOCUMENTS])
def test_a_file_is_read_as_programs_read_it_in_its_order(form: ConfigFormat, text: str, data: Any) -> None:
    read = json.loads(config_file.read(text.encode(), form))

    assert (read, [*read]) == (data, [*data])
    if form is ConfigFormat.YAML:
        assert {**yaml.safe_load(text), "d": 1e-3} == data


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        (ConfigFormat.YAML, "[1, 2]\n", "not-an-object"),
        (ConfigFormat.YAML, "a: [\n", "must be valid YAML"),
        (ConfigFormat.YAML, "on: 1\n", "keys that are texts"),
        (ConfigFormat.YAML, "day: 2001-01-01\n", "no values that only YAML has, such as dates"),
        (ConfigFormat.YAML, "a: !!python/name:os.system\n", "could not determine a constructor"),
        (ConfigFormat.YAML, "a: .nan\n", "a finite number"),
        (ConfigFormat.YAML, f"a: {'x' * 70_000}\n", "at most 64 KiB"),
        (ConfigFormat.TOML, f"{'a.' * 65}a = 1\n", "at most 64 levels"),
        (ConfigFormat.TOML, f"""x = {{ {'"a". ' * 30_000}b = 1 }}\n"""[:65_000], "at most 64 levels"),
        (ConfigFormat.JSON, '{"optimizer": {"lr": 1, "lr": 2}}', "duplicate-key"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_object_of_json_is_refused(form: ConfigFormat, text: str, message: str) -> None:
    """A dotted key of 30,000 names took more than 1 GiB."""
    with pytest.raises((ValueError, GeneratorError), match=message):
        config_file.read(text.encode(), form)
