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


def problem_of(sandbox: Sandbox) -> str:
    """Return what `sweep validate` warns of, and `sweep try` and `sweep run` refuse."""
    warning = warned_of(sandbox)
    for attempt in (
        lambda: try_trial(sandbox.workspace, "peak", 0, quiet=True),
        lambda: list(sandbox.run("peak")),
    ):
        with pytest.raises(SpecError) as caught:
            attempt()
        assert [each.message for each in caught.value.problems] == [warning.partition(" (")[0]]
    return warning


def warned_of(sandbox: Sandbox) -> str:
    """Return what `sweep validate` warns of, with its hint."""
    (warning,) = [each for each in check_specs(sandbox.workspace)[1] if each.code == "config-base"]
    return f"{warning.message} ({warning.hint})"


def test_a_name_that_the_file_lacks_is_refused_unless_it_is_added(sandbox: Sandbox) -> None:
    repository(sandbox, name="optimizer.rl")

    message = problem_of(sandbox)

    assert message == "must be a name in config/train.yaml, got 'optimizer.rl' (did you mean 'optimizer.lr'?)"
    repository(sandbox, name="optimizer.momentum", more=", add: true")
    assert present(try_trial(sandbox.workspace, "peak", 0, quiet=True).record).metrics == {"score": 0.003}


def test_a_name_inside_of_a_number_is_refused(sandbox: Sandbox) -> None:
    repository(sandbox, name="epochs.first", more=", add: true")

    assert "epochs.first would be in 3, which is no mapping" in problem_of(sandbox)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("[1, 2]\n", "must be a mapping in yaml: not-an-object"),
        ("a: [\n", "must be a mapping in yaml: must be valid YAML"),
        ("0: zero\n", "must have keys that are texts"),
        ("on: 1\n", "must have keys that are texts"),
        ("day: 2001-01-01\n", "no values that only YAML has, such as dates"),
        ("a: !!python/name:os.system\n", "must be a mapping in yaml: could not determine a constructor"),
        ("a: .nan\n", "must be a finite number"),
        (f"a: {'x' * 70_000}\n", "must have at most 64 KiB"),
    ],
)
def test_a_file_that_no_json_can_hold_is_refused(sandbox: Sandbox, base: str, message: str) -> None:
    repository(sandbox, base=base)

    with pytest.raises(RepositoryError, match=r"config/train\.yaml: must") as caught:
        list(sandbox.run("peak"))

    assert message in str(caught.value)
    assert message in warned_of(sandbox)
    with pytest.raises(GeneratorError, match=r"config/train\.yaml: must"):
        try_trial(sandbox.workspace, "peak", 0, quiet=True)


def test_a_file_that_is_not_committed_is_refused(sandbox: Sandbox) -> None:
    repository(sandbox)
    Path(sandbox.root, "config/train.yaml").unlink()
    sandbox.commit("Delete the file")

    with pytest.raises(RepositoryError, match=r"run\.config\.base must name a file of the code in the last"):
        list(sandbox.run("peak"))
    assert "must name a file of the code in the work tree, got 'config/train.yaml'" in warned_of(sandbox)


DOCUMENTS: list[tuple[ConfigFormat, str, dict[str, Any]]] = [
    (
        ConfigFormat.YAML,
        "a: &x {b: yes}\nc: *x\nd: 1e-3\ne: 012\n",
        {"a": {"b": True}, "c": {"b": True}, "d": 1e-3, "e": 10},
    ),
    (ConfigFormat.TOML, "b = 1\na = 2\n", {"b": 1, "a": 2}),
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
        (ConfigFormat.TOML, f"{'a.' * 65}a = 1\n", "at most 64 levels"),
        (ConfigFormat.TOML, f"""x = {{ {'"a". ' * 30_000}b = 1 }}\n"""[:65_000], "at most 64 levels"),
        (ConfigFormat.JSON, '{"lr": 1, "lr": 2}', "duplicate-key"),
        (ConfigFormat.JSON, '{"optimizer": {"lr": 1, "lr": 2}}', "duplicate-key"),
    ],
)
def test_a_long_dotted_key_and_a_key_that_is_there_twice_are_refused(
    form: ConfigFormat, text: str, message: str
) -> None:
    """A key of 30,000 names took more than 1 GiB."""
    with pytest.raises(ValueError, match=message):
        config_file.read(text.encode(), form)


def test_a_file_with_many_dots_is_read() -> None:
    text = f"rates = [{', '.join(['0.1'] * 200)}]\ntext = '{'x.y ' * 100}'\na.b.c = 1\n"

    assert json.loads(config_file.read(text.encode(), ConfigFormat.TOML))["a"] == {"b": {"c": 1}}
