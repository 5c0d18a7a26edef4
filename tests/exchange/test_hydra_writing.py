"""Sweeps that go out to Hydra: Hydra's own parser and sweeper say what they would run."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.exchange import hydra
from sweepledger.exchange.conversion import Exported
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from tests.command_line import run_program
from tests.exchange.imported import assignments_of, sweep_of
from tests.exchange.test_hydra import PARSER, jobs, read
from tests.written_specs import parse_sweep


def parsed(text: str) -> Sweep:
    sweep = parse_sweep(text.encode(), "sweeps/multirun.yaml", Settings())
    assert isinstance(sweep, Sweep), "\n".join(map(str, sweep))
    return sweep


def sent(text: str) -> tuple[dict[str, str], Exported]:
    sweep = parsed(text)
    exported = hydra.write(sweep, assignments_of(sweep))
    return yaml.safe_load(exported.text)["hydra"]["sweeper"]["params"], exported


def whys(exported: Exported) -> dict[str, str]:
    return {loss.part: loss.reason for loss in exported.losses}


def run(params: dict[str, str]) -> list[list[str]]:
    return jobs([f"{key}={value}" for key, value in params.items()])


def spec_of(parameters: str, *more: str, method: str = "grid") -> str:
    head = ["name: multirun", "metric: {name: loss}", f"method: {method}"]
    return "\n".join([*head, "command: [python, app.py]", f"parameters: {parameters}", *more])


DRAWN = """\
name: multirun
metric: {name: loss, goal: maximize}
method: sobol
seed: 3
run_cap: 8
program: app.py
parameters:
  lr: {distribution: log_uniform_values, min: 0.001, max: 1}
  width: {min: 1, max: 9}
  drop: {min: 0.5, max: 1}
  noise: {distribution: normal}
  act: {values: [relu, tanh], probabilities: [0.25, 0.75]}
"""


def test_a_drawn_sweep_goes_out_for_the_sweeper_that_knows_intervals() -> None:
    sweep = parsed(DRAWN)

    exported = hydra.write(sweep, assignments_of(sweep))
    data = yaml.safe_load(exported.text)

    sweeper = data["hydra"]["sweeper"]
    assert {"override hydra/sweeper": "optuna"} in data["defaults"]
    assert (sweeper["n_trials"], sweeper["direction"], sweeper["sampler"]) == (8, "maximize", {"seed": 3})
    for key in ("lr", "width", "drop"):
        again = sweep_of(read({key: sweeper["params"][key], "z": "interval(0,1)"}))
        assert again.design.space[key].domain == sweep.design.space[key].domain
    whats = {loss.part for loss in exported.losses}
    assert {"seed", "method: sobol", "parameters.noise", "parameters.act", "metric: loss"} <= whats


THREE = "{values: [1, 2, 3]}"


@pytest.mark.parametrize(
    ("parameters", "more", "size", "trials"),
    [
        (f"{{a: {THREE}, b: {THREE}}}", "constraints: [a < 3]\nderived: {c: a + b}", 9, 6),
        (f"{{a: {THREE}, b: {THREE}}}", "zip: [[a, b]]", 9, 3),
        (f"{{a: {THREE}, b: {{values: [1, 2], when: {{a: 1}}}}}}", "", 6, 4),
        ("{a: {min: 1, max: 50}, b: {min: 1, max: 2}}", "constraints: [a == 1]", 100, 2),
    ],
)
def test_the_trials_of_hydra_are_counted(parameters: str, more: str, size: int, trials: int) -> None:
    params, exported = sent(spec_of(parameters, more))

    assert len(run(params)) == size
    assert f"all {size} combinations, not these {trials}" in whys(exported)["trials"]


def test_a_list_leaves_derived_values_out_and_says_which_values_are_absent() -> None:
    text = """\
name: multirun
metric: {name: loss}
method: list
command: [x]
assignments: [{a: 1}, {a: 2, b: 3}]
derived: {c: a + 1}
"""

    params, exported = sent(text)

    assert params == {"a": "1,2", "b": "3"}
    assert {"derived: c", "parameters.b"} <= whys(exported).keys()


TYPES: dict[str, list[Any]] = {
    "[true, 'true', '1', null]": [True, "true", "1", None],
    "['null', 1.5, '1.5', 'a,b', \"it's\", '[1]', '{a: 1}', 'range(3)', \"'1'\"]": [
        "null", 1.5, "1.5", "a,b", "it's", "[1]", "{a: 1}", "range(3)", "'1'",
    ],
    "[[a, ''], [1, 'true']]": [["a", ""], [1, "true"]],
    "['']": [""],
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_values_reach_the_app_with_their_types(text: str) -> None:
    params, _ = sent(spec_of(f"{{x: {{values: {text}}}}}"))

    results = [PARSER.parse_override(job).value() for (job,) in run(params)]

    assert [plain(each) for each in results] == TYPES[text]


def plain(results: Any) -> Any:
    """Take off the quotes that kept a text a text."""
    if isinstance(results, list):
        return [plain(each) for each in results]
    return getattr(results, "text", results)


def test_values_that_are_one_to_hydra_run_once_and_are_named() -> None:
    text = spec_of("{x: {values: [null, 'null', 1]}}").replace("app.py", "app.py, '${args_no_hyphens}'")

    params, exported = sent(text)

    assert params == {"x": "null,1"}
    assert "parameters.x" in whys(exported)


def test_keys_of_hydra_go_out_as_they_came_in() -> None:
    came = {
        "lr": "0.5,0.25",
        "+tag": "a,b",
        "db@src": "x,y",
        "model/opt": "adam,sgd",
        "+fixed": 3,
        "~old": "4",
    }
    sweep = sweep_of(read(came))

    exported = hydra.write(sweep, assignments_of(sweep))
    went = yaml.safe_load(exported.text)["hydra"]["sweeper"]["params"]

    assert went == {**came, "+fixed": "3"}
    assert "trials" not in whys(exported)


def test_a_key_that_is_deleted_has_no_place_in_params_and_is_named() -> None:
    sweep = sweep_of(read({"x": "1,2", "~old": None}))

    exported = hydra.write(sweep, assignments_of(sweep))

    assert "'~old'" in whys(exported)["command: ~old"]


APP = """\
import hydra


@hydra.main(version_base=None, config_path=".", config_name="config")
def main(config):
    print("got", config.lr, config.tag)


main()
"""


def test_hydra_runs_what_came_from_it_and_went_back(tmp_path: Path) -> None:
    sweep = sweep_of(read({"lr": "0.5,0.25", "+tag": "choice(a,'b c')"}))
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "config.yaml").write_text("lr: 0.1\n" + hydra.write(sweep, assignments_of(sweep)).text)

    done = run_program(sys.executable, "app.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("got")]
    assert lines == ["got 0.5 a", "got 0.5 b c", "got 0.25 a", "got 0.25 b c"]
