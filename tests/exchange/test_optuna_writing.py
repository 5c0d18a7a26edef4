"""Sweeps as scripts with Optuna, run by Optuna itself: the same values, the same space, the same command."""

import json
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from sweepledger.errors import UsageError
from sweepledger.reader.launcher_parts import SPREAD
from sweepledger.structs.program import LIST_MACROS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.command_line import run_program
from tests.exchange.drawn import sweeps
from tests.exchange.imported import READERS, WRITERS, assignments_of, sweep_of, whats
from tests.written_specs import good

optuna.logging.set_verbosity(optuna.logging.ERROR)

SEARCH: dict[str, Any] = {"method": "tpe", "seed": 1, "rounds": {"size": 2, "max": 3}}
PARAMETERS: dict[str, Any] = {
    "lr": {"distribution": "log_uniform_values", "min": 0.0001, "max": 0.1},
    "n": {"min": 1, "max": 9},
    "m": {"min": 0.5, "max": 1.5},
    "opt": {"values": ["sgd", "adam"]},
    "layers": {"values": [[1, 2], [3]]},
    "mixed": {"values": [1, True, None, "a"]},
    "w": {"distribution": "q_uniform", "min": 2, "max": 8, "q": 2},
    "one": {"value": 7},
}
PROGRAM = """import json, os, sys
lr, n = (float(word.partition("=")[2]) for word in sys.argv[1:3])
assert os.environ["SWEEP_PARAM_N"] == sys.argv[2].partition("=")[2]
if n == 2:
    sys.exit(1)
with open("ran", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
print(f"note=1 accuracy={lr * n}")
"""


def script(sweep: Sweep) -> tuple[dict[str, Any], list[str]]:
    exported = WRITERS["optuna"](sweep, () if sweep.search else assignments_of(sweep))
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(exported.text, "exported.py", "exec"), names)  # noqa: S102 - our own script
    return names, whats(exported.losses)


def first_values(names: dict[str, Any], storage: Any, count: int) -> list[dict[str, Any]]:
    """Return the values that the script's study gives to trials, without running them."""
    names["STORAGE"] = storage
    study = names["create_study"]()
    values = []
    for _ in range(count):
        trial = study.ask()
        wanted = trial.user_attrs.get("parameters", names["SPACE"])
        values.append({name: names["suggest"](trial, name) for name in names["SPACE"] if name in wanted})
        study.tell(trial, [0.0] * len(names["METRICS"]))
    return [{**names["CONSTANTS"], **each} for each in values]


def test_a_search_has_optunas_own_distributions() -> None:
    names, losses = script(good(parameters=PARAMETERS, **SEARCH))

    assert names["SPACE"] == {
        "lr": FloatDistribution(0.0001, 0.1, log=True),
        "n": IntDistribution(1, 9),
        "m": FloatDistribution(0.5, 1.5),
        "opt": CategoricalDistribution(["sgd", "adam"]),
        "layers": CategoricalDistribution(["[1,2]", "[3]"]),
        "mixed": CategoricalDistribution(["1", "true", "null", '"a"']),
        "w": IntDistribution(2, 8, step=2),
    }
    assert (names["CONSTANTS"], names["TRIALS"]) == ({"one": 7}, 6)
    assert isinstance(names["SAMPLER"], optuna.samplers.TPESampler)
    assert {"rounds", "seed", "parameters.w"} <= set(losses)


def test_the_space_of_a_search_comes_back_from_the_storage_that_the_script_fills(tmp_path: Path) -> None:
    parameters = {name: PARAMETERS[name] for name in ("lr", "n", "m", "opt")}
    sweep = good(parameters=parameters, **SEARCH)
    names, _ = script(sweep)
    journal = tmp_path / "journal.log"

    first_values(names, JournalStorage(JournalFileBackend(str(journal))), 3)

    again = sweep_of(READERS["optuna"](journal.read_bytes(), name="again"))
    assert again.design.space == sweep.design.space
    assert again.metric.goal == sweep.metric.goal


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "grid", "parameters": {"a": {"values": [1, 2]}, "b": {"values": ["x", True]}, "c": {"value": 3}}},
        {"method": "random", "seed": 3, "run_cap": 5,
         "parameters": PARAMETERS | {"z": {"distribution": "normal"}, "e": {"distribution": "log_normal"}}},
        {"method": "list", "parameters": ..., "assignments": [{"a": 1, "b": "x"}, {"a": 2}, {"a": [1], "b": "y"}]},
        {"method": "grid", "parameters": {
            "o": {"values": ["sgd", "adam"]}, "m": {"values": [0.5, 0.9], "when": {"o": "sgd"}}}},
    ],
    ids=["grid", "random", "list", "conditional"],
)  # fmt: skip
def test_a_study_gets_the_configurations_of_a_static_sweep_in_their_order(changes: dict[str, Any]) -> None:
    check_queue(good(**changes))


def check_queue(sweep: Sweep) -> None:
    expected = [dict(each) for each in assignments_of(sweep)]
    names, _ = script(sweep)

    values = first_values(names, None, len(expected))

    # JSON tells 1 from true; 1.0 is 1 in the table of a batch, too.
    assert canonical_json(values) == canonical_json(expected)
    assert names["TRIALS"] == len(expected)


@pytest.mark.sampled(1)
@settings(max_examples=15, suppress_health_check=list(HealthCheck), report_multiple_bugs=False, deadline=None)
@given(sweep=sweeps())
def test_a_study_gets_the_configurations_of_any_static_sweep(sweep: Sweep) -> None:
    check_queue(sweep)


def test_the_script_runs_the_command_and_continues_where_it_ended(tmp_path: Path) -> None:
    command = ["${interpreter}", "train.py", "${args}", "--seed=${seed}", "${args_json}"]
    parameters = {"lr": {"values": [0.5, 0.25]}, "n": {"values": [1, 2]}}
    metric = {"name": "accuracy", "goal": "maximize", "source": "stdout"}
    sweep = good(method="grid", parameters=parameters, metric=metric, command=command)
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "study.py").write_text(WRITERS["optuna"](sweep, assignments_of(sweep)).text)

    for _ in range(2):
        done = run_program(sys.executable, "study.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    study = optuna.load_study(study_name="lr", storage=f"sqlite:///{tmp_path}/optuna.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "FAIL"]
    assert (study.best_value, study.best_params) == (0.5, {"lr": 0.5, "n": 1})
    ran = [json.loads(line) for line in (tmp_path / "ran").read_text().splitlines()]
    assert ran[0] == ["--lr=0.5", "--n=1", "--seed=0", '{"lr": 0.5, "n": 1}']
    assert len(ran) == 2, "no trial runs twice"


def test_the_script_passes_values_as_the_launcher_does(tmp_path: Path) -> None:
    values = {
        "on": {"value": True},
        "off": {"value": False},
        "sizes": {"value": [1, 2]},
        "n": {"values": [1]},
    }
    metric = {"name": "accuracy", "goal": "maximize", "source": "stdout"}
    command = ["${interpreter}", "train.py", *(f"${{{macro}}}" for macro in sorted(LIST_MACROS))]
    sweep = good(method="grid", parameters=values, metric=metric, command=command)
    (tmp_path / "train.py").write_text(
        "import json, sys\nopen('ran', 'w').write(json.dumps(sys.argv[1:]))\nprint('accuracy=1')\n"
    )
    (tmp_path / "study.py").write_text(WRITERS["optuna"](sweep, assignments_of(sweep)).text)

    done = run_program(sys.executable, "study.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    passed = {"on": True, "off": False, "sizes": [1, 2], "n": 1}
    expected = [
        word
        for macro in sorted(LIST_MACROS)
        for name, value in passed.items()
        for word in SPREAD[macro](name, value)
    ]
    assert json.loads((tmp_path / "ran").read_text()) == expected


HALVED = {
    "method": "halving",
    "seed": 1,
    "rounds": {"size": 2},
    "resource": {"parameter": "n", "min": 1, "max": 9},
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            SEARCH | {"parameters": {"a": {"distribution": "normal"}}},
            "parameters.a has a distribution that Optuna",
        ),
        (HALVED | {"parameters": {"a": {"min": 0.5, "max": 1}}}, "whose trials continue earlier ones"),
    ],
)
def test_a_search_that_optuna_cannot_have_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        script(good(**changes))


def test_no_text_of_a_spec_becomes_code() -> None:
    hostile = "'''\"\"\"\n__import__('os').abort()#{x}"
    sweep = good(
        method="grid",
        description=hostile,
        parameters={"a": {"values": [hostile, "b"]}, "b": {"value": hostile}},
        constraints=["a != b"],
        command=["python", f"{hostile}", "${args}"],
    )

    names, _ = script(sweep)

    assert names["CONSTANTS"] == {"b": hostile}
