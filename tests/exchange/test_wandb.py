"""W&B's sweeps: what comes in, what goes out, and that nothing is lost in silence."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.exchange import wandb
from sweepledger.exchange.conversion import Imported
from sweepledger.stopping.hyperband import HyperbandStop
from sweepledger.structs.domain import Domain
from sweepledger.structs.metric import MetricSource
from sweepledger.structs.search_block import GridSearch, RandomSearch, Rounds
from sweepledger.structs.sweep import Sweep
from tests.exchange.imported import assignments_of, loss_reasons, sweep_of
from tests.written_specs import good

DISTRIBUTIONS: dict[str, tuple[dict[str, Any], Domain]] = {
    "constant": ({"value": 3}, Constant(3)),
    "categorical": ({"values": [1, "a", None]}, Choice((1, "a", None))),
    "categorical_w_probabilities": (
        {"values": [1, 2], "probabilities": [0.5, 0.5]},
        Choice((1, 2), (0.5, 0.5)),
    ),
    "int_uniform": ({"min": 1, "max": 9}, IntUniform(1, 9)),
    "uniform": ({"min": 1, "max": 9}, Uniform(1, 9)),
    "q_uniform": ({"min": 0, "max": 9}, Quantized(Uniform(0, 9), 1)),
    "log_uniform": ({"min": -2, "max": 0}, LogUniform(0.1353352832366127, 1)),
    "log_uniform_values": ({"min": 1e-5, "max": 1}, LogUniform(1e-5, 1)),
    "q_log_uniform": ({"min": 0, "max": 2, "q": 0.5}, Quantized(LogUniform(1, 7.38905609893065), 0.5)),
    "q_log_uniform_values": ({"min": 8, "max": 512, "q": 8}, Quantized(LogUniform(8, 512), 8)),
    "inv_log_uniform": ({"min": 0, "max": 2}, LogUniform(0.1353352832366127, 1)),
    "inv_log_uniform_values": ({"min": 0.1, "max": 1}, LogUniform(0.1, 1)),
    "normal": ({}, Normal(0, 1)),
    "q_normal": ({"mu": 3, "sigma": 2, "q": 2}, Quantized(Normal(3, 2), 2)),
    "log_normal": ({"sigma": 0.5}, LogNormal(0, 0.5)),
    "q_log_normal": ({}, Quantized(LogNormal(0, 1), 1)),
    "beta": ({"a": 2}, Beta(2, 1)),
    "q_beta": ({"q": 0.1}, Quantized(Beta(1, 1), 0.1)),
}
KINDS: dict[str, tuple[dict[str, Any], Domain]] = {
    "value": ({"value": "adam"}, Constant("adam")),
    "whole-bounds": ({"min": 1, "max": 9}, IntUniform(1, 9)),
    "bounds-with-a-point": ({"min": 1.0, "max": 9.0}, Uniform(1, 9)),
    **{name: ({"distribution": name, **keys}, domain) for name, (keys, domain) in DISTRIBUTIONS.items()},
}


def a_file(**changes: Any) -> dict[str, Any]:
    return {
        "program": "code/train.py",
        "method": "random",
        "run_cap": 5,
        "metric": {"name": "loss"},
        "parameters": {"x": {"min": 0.5, "max": 1}},
        **changes,
    }


def read(data: object) -> Imported:
    return wandb.read(yaml.safe_dump(data, sort_keys=False).encode(), name="lr")


def exported(sweep: Sweep) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(wandb.write(sweep, assignments_of(sweep)).text)
    return data


def test_every_kind_of_parameter_means_the_same_in_both_directions() -> None:
    sweep = sweep_of(read(a_file(parameters={name: keys for name, (keys, _) in KINDS.items()})))

    sent = exported(sweep)

    assert all(close(sweep.design.space[name].domain, domain) for name, (_, domain) in KINDS.items())
    again = sweep_of(read(sent))
    assert again.design.space == sweep.design.space
    assert (again.metric, again.command, again.run.code_path) == (
        sweep.metric, sweep.command, sweep.run.code_path,
    )  # fmt: skip
    if wandb_schema := find_spec("sweeps"):
        schema = json.loads((Path(str(wandb_schema.origin)).parent / "config/schema.json").read_text())
        assert [error.message for error in Draft7Validator(schema).iter_errors(sent)] == []


def close(left: Domain, right: Domain) -> bool:
    """Compare domains; bounds that come from exponents have been rounded."""
    match left, right:
        case (LogUniform(), LogUniform()):
            return (left.low, left.high) == pytest.approx((right.low, right.high), rel=1e-12)
        case (Quantized(), Quantized()):
            return left.q == right.q and close(left.of, right.of)
        case _:
            return left == right


def test_nested_parameters_keep_their_names_and_are_told_of() -> None:
    nested = {"opt": {"parameters": {"lr": {"values": [1, 2]}, "sgd": {"parameters": {"m": {"value": 0}}}}}}

    imported = read(a_file(method="grid", parameters=nested))

    assert sweep_of(imported).columns == ("opt.lr", "opt.sgd.m")
    assert {"parameters.opt", "parameters.opt.parameters.sgd"} <= loss_reasons(imported).keys()


def test_a_bayes_sweep_becomes_a_search_by_rounds_and_goes_back_with_target_and_rule() -> None:
    metric = {"name": "loss", "target": 0.1, "impute": "latest", "impute_while_running": "best"}
    rule = {"type": "hyperband", "max_iter": 27, "s": 2}

    imported = read(a_file(method="bayes", run_cap=7, metric=metric, early_terminate=rule))

    sweep = sweep_of(imported)
    assert sweep.search
    assert (sweep.method, sweep.search.seed, sweep.search.cap) == ("bayes", 0, 7)
    assert (sweep.metric.target, sweep.metric.impute) == (0.1, "latest")
    assert {"seed", "rounds", "metric.impute_while_running"} <= loss_reasons(imported).keys()
    assert "metric.target" not in loss_reasons(imported)
    document = exported(sweep)
    assert (document["method"], document["metric"]["target"]) == ("bayes", 0.1)
    assert document["early_terminate"] == {**rule, "eta": 3, "strict": False}


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ({"min_iter": 3}, HyperbandStop(min_iter=3)),
        ({"max_iter": 27, "s": 2, "min_iter": 3}, HyperbandStop(max_iter=27, s=2)),
        *(({}, None), ({"max_iter": 27}, None), ({"min_iter": 0}, None), ({"min_iter": 3, "eta": 1}, None)),
    ],
)
def test_hyperband_ends_trials_here_too_if_it_says_when(
    document: dict[str, Any], rule: HyperbandStop | None
) -> None:
    imported = read(a_file(early_terminate={"type": "hyperband", **document}))

    assert sweep_of(imported).early_stop == rule
    assert "early_terminate" in loss_reasons(imported)


def test_a_random_sweep_asks_for_no_more_than_there_is() -> None:
    imported = read(a_file(parameters={"x": {"values": [1, 2]}, "y": {"parameters": {"z": {"value": 1}}}}))

    block = sweep_of(imported).design

    assert isinstance(block, RandomSearch)
    assert block.cap == 2
    assert any(part.startswith("run_cap") for part in loss_reasons(imported))


@pytest.mark.parametrize(("cap", "drawn"), [(3, True), (4, False), (9, False)])
def test_a_grid_larger_than_its_cap_is_drawn_from(cap: int, drawn: bool) -> None:  # noqa: FBT001 - a parameter
    grid = {"x": {"values": [1, 2]}, "y": {"min": 1, "max": 2}}

    imported = read(a_file(method="grid", run_cap=cap, parameters=grid))
    block = sweep_of(imported).design

    assert isinstance(block, RandomSearch if drawn else GridSearch)
    assert block.cap == (cap if drawn else None)
    assert (f"run_cap: {cap}" in loss_reasons(imported)) == drawn


@pytest.mark.parametrize(
    ("program", "folder", "command", "word"),
    [
        ("code/train.py", "code", "code/train.py", "locked"),
        ("train.py", ".", "train.py", "every committed file is locked"),
        ("/home/me/train.py", "code", "code/train.py", "outside"),
    ],
)
def test_a_script_has_a_folder_to_lock(program: str, folder: str, command: str, word: str) -> None:
    imported = read(a_file(program=program))

    sweep = sweep_of(imported)

    assert sweep.run.code_path == folder
    assert sweep.command == ("${env}", "${interpreter}", command, "${args}")
    assert word in loss_reasons(imported)[f"program: {program}"]


@pytest.mark.parametrize(
    ("program", "command", "folder", "expected"),
    [
        (None, ["python", "-m", "src.a.b", "${args}"], "src", ("python", "-m", "src.a.b", "${args}")),
        ("train", ["python", "-m", "${program}"], ".", ("python", "-m", "train")),
        ("train.py", ["python", "src/a/train.py", "${args}"], "src", ("python", "src/a/train.py", "${args}")),
        ("train.py", ["make", "train"], "code", ("make", "train")),
    ],
    ids=["module", "module-at-root", "unused-program", "no-script"],
)
def test_what_the_command_starts_is_what_is_locked(
    program: str | None, command: list[str], folder: str, expected: tuple[str, ...]
) -> None:
    data = a_file(command=command) | ({"program": program} if program else {})
    if program is None:
        del data["program"]

    imported = read(data)
    sweep = sweep_of(imported)

    assert (sweep.run.code_path, sweep.command) == (folder, expected)
    assert "program" in " ".join(loss_reasons(imported))


@pytest.mark.parametrize(
    ("macro", "arguments"),
    [
        (
            "${args_no_hyphens}",
            ("opt=${envvar:SWEEP_PARAM_OPT_CHOICE}", "opt.lr=${envvar:SWEEP_PARAM_OPT_LR}"),
        ),
        ("${args}", ("--opt=${envvar:SWEEP_PARAM_OPT_CHOICE}", "--opt.lr=${envvar:SWEEP_PARAM_OPT_LR}")),
    ],
)
def test_a_choice_beside_a_dotted_name_is_renamed(macro: str, arguments: tuple[str, ...]) -> None:
    parameters = {"opt": {"values": ["sgd", "adam"]}, "opt.lr": {"values": [1, 2]}}

    imported = read(a_file(method="grid", parameters=parameters, command=["python", "${program}", macro]))

    sweep = sweep_of(imported)
    assert sweep.columns == ("opt_choice", "opt.lr")
    assert sweep.command[2:] == arguments
    assert "parameters.opt" in loss_reasons(imported)


def test_a_choice_beside_a_dotted_name_in_json_is_reported() -> None:
    parameters = {"opt": {"value": 1}, "opt.lr": {"values": [1, 2]}}

    imported = read(a_file(parameters=parameters, run_cap=2, command=["x", "${program}", "${args_json}"]))

    assert "command: ${args_json}" in loss_reasons(imported)
    assert "${args_json}" in sweep_of(imported).command


def test_the_workers_of_launch_are_the_parallelism() -> None:
    imported = read(a_file(scheduler={"num_workers": 8, "settings": {"method": "grid"}}))

    assert sweep_of(imported).run.parallelism == 8
    assert "scheduler.settings" in loss_reasons(imported)
    assert "scheduler" not in loss_reasons(read(a_file(scheduler={"num_workers": 8})))


def test_a_metric_is_read_from_lines_since_nobody_listens_to_wandb() -> None:
    imported = read(a_file(metric={"name": "val loss", "goal": "maximize", "target": 1, "impute": "worst"}))

    sweep = sweep_of(imported)

    assert (sweep.metric.name, sweep.metric.goal) == ("val_loss", "maximize")
    assert sweep.metric.source is MetricSource.STDOUT
    reported = {"metric: val loss", "metric.impute", "metric.source", "rounds"}
    assert reported <= loss_reasons(imported).keys()
    assert (sweep.metric.target, sweep.static_rounds) == (1, Rounds(4))


def test_exponents_without_a_point_are_the_numbers_that_they_look_like() -> None:
    content = (
        b"{method: random, run_cap: 3, program: a/b.py, metric: {name: l}, "
        b"parameters: {x: {min: 1e-4, max: 1e-1}, y: {values: [1e-3, 1e-2, 5]}, z: {values: [1e3, none]}}}"
    )

    imported = wandb.read(content, name="lr")
    space = sweep_of(imported).design.space

    assert space["x"].domain == Uniform(0.0001, 0.1)
    assert space["y"].domain == Choice((0.001, 0.01, 5))
    assert space["z"].domain == Choice(("1e3", "none"))
    assert len([what for what in loss_reasons(imported) if "1e-" in what]) == 4


def test_a_repeated_value_keeps_its_share() -> None:
    imported = read(a_file(parameters={"x": {"values": [1, 2, 1.0, 4]}, "y": {"values": ["a", "a"]}}))

    space = sweep_of(imported).design.space

    assert space["x"].domain == Choice((1, 2, 4), (0.5, 0.25, 0.25))
    assert space["y"].domain == Choice(("a",), (1,))
    assert {"parameters.x.values", "parameters.y.values"} <= loss_reasons(imported).keys()


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["(3", "3)", "(3", "5)"], "write lists as [[3, 3], [3, 5]]"),
        (["(1", 2, "3)"], "write lists as [[1, 2, 3]]"),
    ],
)
def test_values_that_commas_divided_are_told_of(values: list[object], form: str) -> None:
    imported = read(a_file(parameters={"x": {"values": values}}))

    assert any(form in str(loss) for loss in imported.losses)


def test_values_with_parts_become_json_and_are_told_of() -> None:
    imported = read(a_file(parameters={"x": {"values": [{"b": 1, "a": [2]}, [1, 2]]}}))

    assert sweep_of(imported).design.space["x"].domain == Choice(('{"a":[2],"b":1}', (1, 2)))
    assert "parameters.x.values" in loss_reasons(imported)


def test_other_ways_to_draw_become_random_and_are_named() -> None:
    sweep = good(method="sobol", seed=1, run_cap=4, parameters={"x": {"min": 0.5, "max": 1}})

    result = wandb.write(sweep, ())

    assert yaml.safe_load(result.text)["method"] == "random"
    assert {"seed", "method: sobol"} <= {loss.part for loss in result.losses}


@pytest.mark.parametrize("part", ["${args_switches}", "--x=${param:x}"])
def test_a_macro_that_wandb_lacks_is_a_loss(part: str) -> None:
    sweep = good(method="grid", parameters={"x": {"values": [1, 2]}}, command=["python", "t.py", part])

    assert f"command: {part}" in {loss.part for loss in wandb.write(sweep, ()).losses}


def test_a_list_goes_out_as_the_grid_of_its_values() -> None:
    sweep = good(method="list", parameters=..., assignments=[{"a": 1, "b": 2}, {"a": 3, "b": 4}])

    sent = wandb.write(sweep, assignments_of(sweep))

    assert yaml.safe_load(sent.text)["parameters"] == {"a": {"values": [1, 3]}, "b": {"values": [2, 4]}}
    (loss,) = [loss for loss in sent.losses if loss.part == "method: list"]
    assert "all 4 combinations, not these 2" in loss.reason


def test_quoted_text_stays_text_and_a_bare_exponent_is_the_number_that_was_meant() -> None:
    text = (
        'method: grid\nparameters:\n  a: {value: "1e3"}\n  b: {value: 1e3}\n  c: {values: ["1e3", "2e3"]}\n'
    )

    parameters = wandb.read(text.encode(), name="q").spec["parameters"]

    assert parameters == {"a": {"value": "1e3"}, "b": {"value": 1000.0}, "c": {"values": ["1e3", "2e3"]}}
