"""Hydra's multiruns: what comes in, what goes out, both held against Hydra itself."""

import re
from typing import Any

import pytest
import yaml

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.exchange import hydra
from sweepledger.exchange.conversion import Imported
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.domain import Domain
from sweepledger.structs.search_block import GridSearch, RandomSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value
from tests.exchange.imported import assignments_of, loss_reasons, sweep_of

parsers = pytest.importorskip("hydra.core.override_parser.overrides_parser")
basic = pytest.importorskip("hydra._internal.core_plugins.basic_sweeper")
PARSER = parsers.OverridesParser.create()


def read(params: object, **sweeper: Any) -> Imported:
    data = {"hydra": {"sweeper": {"params": params, **sweeper}}}
    return hydra.read(yaml.safe_dump(data, sort_keys=False).encode(), name="multirun")


def arguments(sweep: Sweep) -> list[list[str]]:
    """Give each trial's overrides as its command line has them."""
    return [[f"{name}={plain(value)}" for name, value in row.items()] for row in assignments_of(sweep)]


def plain(value: Value) -> Value:
    return list(value) if isinstance(value, tuple) else value


def jobs(overrides: list[str]) -> list[list[str]]:
    made: list[list[str]] = basic.BasicSweeper.split_arguments(PARSER.parse_overrides(overrides), None)[0]
    return made


def meant(overrides: list[list[str]]) -> list[list[tuple[str, str]]]:
    return sorted(
        [(each.key_or_group, repr(each.value())) for each in PARSER.parse_overrides(job)] for job in overrides
    )


GRIDS: dict[str, dict[str, Any]] = {
    "commas": {"db": "mysql,pg", "lr": "0.1,1e-3", "deep": "true,false"},
    "functions": {
        "a": "choice(1,2)",
        "b": "range(1,4)",
        "c": "range(0,1,0.25)",
        "d": "sort(3,1,2)",
        "e": "choice('1','x','a b','it',\"true\")",
        "f": "str(1,2)",
    },
    "texts": {"a": "'1',2", "b": "'a,b','c d'", "c": r"x\,y,z", "d": "''", "e": '"null",null'},
    "mappings": {"a": "{x:1},{x:2}"},
    "one": {"a": "range(3)", "b": 1, "c": True, "d": 1.5, "e": "text"},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", GRIDS)
def test_a_grid_gives_the_program_what_hydra_would_give_it(case: str) -> None:
    sweep = sweep_of(read(GRIDS[case]))

    assert isinstance(sweep.design, GridSearch)
    assert meant(arguments(sweep)) == meant(jobs([f"{key}={value}" for key, value in GRIDS[case].items()]))


INTERVALS: dict[str, Domain] = {
    "interval(0,1)": Uniform(0, 1),
    "tag(log,interval(1e-5,0.1))": LogUniform(1e-5, 0.1),
    "int(interval(1,10))": IntUniform(1, 10),
    "int(tag(log,interval(1,64)))": Quantized(LogUniform(1, 64), 1),
    "range(1,5)": Choice((1, 2, 3, 4, 5)),
    "range(0,1,0.3)": Choice((0.0, 0.3, 0.6, 0.9)),
    "5": Constant(5),
}


@pytest.mark.parametrize("text", INTERVALS)
def test_intervals_become_distributions(text: str) -> None:
    sampler = {"_target_": "optuna.samplers.TPESampler", "seed": 7}

    imported = read({"x": text, "y": "interval(0,1)"}, n_trials=9, direction="maximize", sampler=sampler)
    sweep = sweep_of(imported)
    search = sweep.search

    assert search
    assert (sweep.method, search.seed, search.cap, sweep.metric.goal) == ("tpe", 7, 9, "maximize")
    assert search.space["x"].domain == INTERVALS[text]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("{type: float, low: 0.1, high: 0.4, step: 0.1}", (0.1, 0.2, 0.3, 0.4)),
        ("{type: float, low: 0.1, high: 0.45, step: 0.1}", (0.1, 0.2, 0.3, 0.4)),
        ("{type: int, low: 0, high: 10, step: 3}", (0, 3, 6, 9)),
    ],
)
def test_a_grid_sampler_counts_steps_and_ends_at_the_last(written: str, values: tuple[float, ...]) -> None:
    imported = config(
        "hydra: {sweeper: {n_trials: 3, sampler: {_target_: optuna.samplers.GridSampler}, search_space: {x: "
        + written
        + "}}}"
    )

    block = sweep_of(imported).design
    assert isinstance(block, RandomSearch)
    assert (block.cap, block.space.parameters[0].domain) == (3, Choice(values))
    assert "hydra.sweeper: GridSampler" not in loss_reasons(imported)


def test_optunas_sweeper_is_found_in_the_defaults_and_runs_twenty_trials_unless_told() -> None:
    defaults = ["_self_", {"override hydra/sweeper": "optuna"}, {"override hydra/sweeper/sampler": "cmaes"}]
    data = {"defaults": defaults, "hydra": {"sweeper": {"params": {"x": "range(1,99)"}}}}

    imported = hydra.read(yaml.safe_dump(data).encode(), name="multirun")

    assert imported.spec["run_cap"] == 20
    assert imported.spec["parameters"]["x"] == {"min": 1, "max": 99, "step": 1}
    assert {"hydra.sweeper: cmaes", "hydra.sweeper.n_trials"} <= loss_reasons(imported).keys()


@pytest.mark.parametrize(
    ("sampler", "method", "jobs"),
    [
        ("TPESampler", "tpe", 3), ("NSGAIISampler", "nsga2", None), ("CmaEsSampler", "cma-es", 8),
        ("GPSampler", "bayes", 2), ("QMCSampler", "sobol", 2), ("RandomSampler", "random", 2),
        ("MyOwnSampler", "tpe", 2),
    ],
)  # fmt: skip
def test_a_sampler_is_the_method_of_its_name(sampler: str, method: str, jobs: int | None) -> None:
    document = {"_target_": f"optuna.samplers.{sampler}", "seed": 7, "n_startup_trials": 3}
    params = {"x": "interval(0,1)", "y": "interval(0,1)"}

    imported = read(params, n_trials=9, sampler=document, n_jobs=jobs)

    assert sweep_of(imported).design
    assert [imported.spec[key] for key in ("method", "seed", "run_cap")] == [method, 7, 9]
    if method not in {"sobol", "random"}:
        assert imported.spec["rounds"] == {"size": jobs or 4}
    assert "hydra.sweeper.sampler.n_startup_trials: 3" in loss_reasons(imported)
    assert ("hydra.sweeper: MyOwnSampler" in loss_reasons(imported)) == (sampler == "MyOwnSampler")


def test_several_directions_are_several_metrics() -> None:
    imported = read({"x": "interval(0,1)"}, n_trials=9, direction=["minimize", "maximize"])

    sweep = sweep_of(imported)
    assert [(each.name, each.goal) for each in (sweep.metric, *sweep.other_metrics)] == [
        ("objective_1", "minimize"), ("objective_2", "maximize"),
    ]  # fmt: skip
    assert "objective_1 to objective_2" in loss_reasons(imported)["hydra.sweeper.direction"]


def config(text: str) -> Imported:
    return hydra.read(text.encode(), name="multirun")


def test_a_metric_that_the_file_names_is_the_metric() -> None:
    imported = config("{optimized_metric: val/acc best, hydra: {sweeper: {params: {x: '1,2'}}}}")

    assert sweep_of(imported).metric.name == "val/acc_best"
    assert "metric: val/acc best" in loss_reasons(imported)
    assert "print a line `val/acc_best=NUMBER`" in loss_reasons(imported)["metric"]


def test_a_config_group_beside_its_values_is_renamed_and_passed_as_before() -> None:
    sweep = sweep_of(read({"model": "a,b", "model.width": "1,2"}))

    assert sweep.columns == ("model_choice", "model.width")
    assert sweep.command[-2:] == (
        "model=${envvar:SWEEP_PARAM_MODEL_CHOICE}", "model.width=${envvar:SWEEP_PARAM_MODEL_WIDTH}",
    )  # fmt: skip


OLD_OPTUNA = """
defaults: [{override /hydra/sweeper: optuna}]
hydra:
  sweeper:
    n_trials: 9
    search_space:
      lr: {type: float, low: 1e-5, high: 0.1, log: true}
      drop: {type: float, low: 0, high: 0.5, step: 0.1}
      n: {type: int, low: 1, high: 8}
      opt: {type: categorical, choices: [sgd, adam]}
"""
AX = """
defaults: [{override hydra/sweeper: ax}]
hydra:
  sweeper:
    ax_config:
      max_trials: 7
      client: {random_seed: 3}
      early_stop: {minimize: true}
      experiment: {minimize: false, objective_name: result, parameter_constraints: ['a + b <= 1']}
      params:
        lr: {type: range, bounds: [0.001, 1], log_scale: true}
        n: {type: range, bounds: [1, 8]}
        opt: {type: choice, values: [sgd, adam]}
        fixed: {type: fixed, value: 3}
"""
NEVERGRAD = """
hydra:
  sweeper:
    optim: {optimizer: OnePlusOne, budget: 100, num_workers: 10, maximize: true}
    params:
      db: choice(mnist, cifar)
      lr: {init: 1, step: 2.0, log: true}
      shift: {init: 0.5, step: 0.25}
      n: {lower: 4, upper: 16, integer: true, init: 8}
"""


@pytest.mark.parametrize(
    ("text", "domains", "options", "reported"),
    [
        (OLD_OPTUNA, {
            "lr": LogUniform(1e-5, 0.1), "drop": Choice((0, 0.1, 0.2, 0.3, 0.4, 0.5)), "n": IntUniform(1, 8),
            "opt": Choice(("sgd", "adam"))}, (9, 1, "minimize"), {"rounds"}),
        (AX, {"lr": LogUniform(0.001, 1), "n": IntUniform(1, 8), "opt": Choice(("sgd", "adam")),
              "fixed": Constant(3)}, (7, 1, "maximize"),
         {"hydra.sweeper: ax", 'hydra.sweeper.ax_config.early_stop: {"minimize": true}',
          'hydra.sweeper.ax_config.experiment.parameter_constraints: ["a + b <= 1"]'}),
        (NEVERGRAD, {"db": Choice(("mnist", "cifar")), "lr": LogNormal(0, 0.69314718056),
                     "shift": Normal(0.5, 0.25), "n": IntUniform(4, 16)}, (100, 10, "maximize"),
         {"hydra.sweeper: OnePlusOne", "hydra.sweeper.params.lr", "hydra.sweeper.params.n.init: 8"}),
    ],
    ids=["optuna", "ax", "nevergrad"],
)  # fmt: skip
def test_a_space_of_mappings_is_read(
    text: str, domains: dict[str, Domain], options: tuple[int, int, str], reported: set[str]
) -> None:
    imported = config(text)

    sweep = sweep_of(imported)
    search = sweep.search
    assert search
    assert {parameter.name: parameter.domain for parameter in search.space.parameters} == domains
    assert (search.cap, sweep.run.parallelism, sweep.metric.goal) == options
    assert reported <= loss_reasons(imported).keys()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{defaults: [{override hydra/sweeper: HyperRS}], hydra: {sweeper: {search_space: '${s}'}}}",
         "the search space of HyperRS is in another file"),
        ("hydra: {sweeper: {search_space: {x: {type: float, low: 1}}}}", "x must have low and high"),
        ("hydra: {sweeper: {search_space: {x: {type: float, low: a, high: 1}}}}", "x.low must be a number"),
        ("hydra: {sweeper: {search_space: {x: {type: odd}}}}", "x.type must be categorical, choice"),
        ("hydra: {sweeper: {search_space: {x: 1}}}", "x must be a mapping, got 1"),
        ("hydra: {sweeper: {params: {x: {lower: 1}}}}", "must have lower and upper"),
        ("hydra: {sweeper: {params: {x: {init: -1, log: true}}}}", "must have a positive init"),
    ],
)  # fmt: skip
def test_a_space_of_mappings_that_is_malformed_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ForeignError, match=re.escape(words)):
        config(text)


def test_the_sweeps_of_a_command_line_are_found_where_hydra_notes_them() -> None:
    data = {"hydra": {"sweeper": {"params": None}, "overrides": {"task": ["lr=1,2"]}, "job": {"name": "app"}}}

    imported = hydra.read(yaml.safe_dump(data).encode(), name="multirun")

    assert imported.spec["parameters"] == {"lr": {"values": [1, 2]}}
    assert imported.spec["program"] == "app.py"


@pytest.mark.parametrize(
    ("params", "sweeper", "what"),
    [
        ({"x": "shuffle(1,2)"}, {}, "x: shuffle"),
        ({"x": "1,1,2"}, {}, "hydra.sweeper.params.x"),
        ({"x": "null,1"}, {}, "x: null"),
        ({"x": "1,2"}, {"max_batch_size": 3}, "hydra.sweeper.max_batch_size: 3"),
        ({"x": "1,2"}, {"n_trials": 2, "sampler": {"_target_": "a.TPESampler"}}, "hydra.sweeper: TPESampler"),
        ({"x": "interval(0,1)"}, {"n_trials": 9, "sampler": {"seed": "${seed}"}}, "seed: ${seed}"),
        ({"x": "1,2", "db": "glob(*)"}, {}, "db=glob(*)"),
        ({"x": "1,2"}, {}, "metric"),
    ],
)
def test_what_is_said_otherwise_is_named(params: dict[str, Any], sweeper: dict[str, Any], what: str) -> None:
    imported = read(params, **sweeper)

    sweep_of(imported)
    assert what in loss_reasons(imported)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: 1", "hydra.sweeper.params"),
        (b"hydra: {mode: MULTIRUN}", "sweep over something"),
        (b"hydra: {sweeper: {params: {x: [1, 2]}}}", "must be text"),
        (b"hydra: {sweeper: {params: {x: 'range(1e9)'}}}", "at most 100000"),
        (b"hydra: {sweeper: {params: {x: 'nothing(1)'}}}", "Unknown function"),
        (b"hydra: {sweeper: {params: {x: '1,1e999'}}}", "x must be finite, got inf"),
        (b"hydra: {sweeper: {params: {x: '[1,[-inf]],2'}}}", "x must be finite"),
    ],
)
def test_what_is_no_multirun_is_refused_with_words(content: bytes, words: str) -> None:
    with pytest.raises(ForeignError, match=words):
        hydra.read(content, name="multirun")
