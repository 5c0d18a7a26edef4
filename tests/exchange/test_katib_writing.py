"""Sweeps as v1beta1 Experiments that Katib's own rules accept."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.exchange import katib
from sweepledger.exchange.conversion import Exported
from sweepledger.structs.domain import Domain
from sweepledger.structs.methods import SAMPLERS, Sampler
from sweepledger.structs.run_config import Resources, RunConfig
from sweepledger.structs.search_block import GridSearch, RandomSearch
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value
from tests.exchange.imported import a_grid, a_list, assignments_of, combinations, sweep_of, whats
from tests.exchange.katib_rules import broken
from tests.exchange.katib_rules import combinations as size
from tests.sweeps import a_sweep

FILES = Path(__file__).parent / "files/katib"


def export_katib(sweep: Sweep) -> tuple[dict[str, Any], Exported]:
    exported = katib.write(sweep, assignments_of(sweep))
    return yaml.safe_load(exported.text), exported


def a_draw(
    sampler: Sampler = SAMPLERS["random"], seed: int = 3, cap: int = 2, **domains: Domain
) -> RandomSearch:
    return RandomSearch(sampler, SearchSpace(tuple(Parameter(*pair) for pair in domains.items())), seed, cap)


@pytest.mark.parametrize("name", ["random-experiment", "grid-v1alpha3", "random-v1beta1"])
def test_what_was_written_is_read_again_as_the_same_sweep(name: str) -> None:
    sweep = sweep_of(katib.read((FILES / f"{name}.yaml").read_bytes(), name="again"))
    experiment, first = export_katib(sweep)

    again = sweep_of(katib.read(first.text.encode(), name="again"))

    assert broken(experiment) == []
    assert export_katib(again)[1].text == first.text
    assert (again.columns, again.method) == (sweep.columns, sweep.method)


DOMAINS: list[tuple[Domain, str, dict[str, Any]]] = [
    (IntUniform(2, 5), "int", {"min": "2", "max": "5"}),
    (Uniform(0.01, 0.03), "double", {"min": "0.01", "max": "0.03"}),
    (LogUniform(1e-05, 1.0), "double", {"min": "1e-05", "max": "1", "distribution": "logUniform"}),
    (Normal(4, 1), "double", {"min": "1", "max": "7", "distribution": "normal"}),
    (LogNormal(0, 0.1), "double", {"min": "0.7408182207", "max": "1.349858808", "distribution": "logNormal"}),
    (Quantized(Uniform(0, 1), 0.25), "double", {"min": "0", "max": "1", "step": "0.25"}),
    (Choice((0.5, 1, 2.0)), "discrete", {"list": ["0.5", "1", "2"]}),
    (Choice(("a", "1e3")), "categorical", {"list": ["a", "1e3"]}),
    (Choice((True, None, (64, 32))), "categorical", {"list": ["True", "None", "[64, 32]"]}),
]


@pytest.mark.parametrize(("domain", "kind", "space"), DOMAINS, ids=lambda value: str(value)[:40])
def test_each_domain_has_its_space(domain: Domain, kind: str, space: dict[str, Any]) -> None:
    experiment, _ = export_katib(a_sweep(design=a_draw(p=domain)))

    assert broken(experiment) == []
    assert experiment["spec"]["parameters"] == [{"name": "p", "parameterType": kind, "feasibleSpace": space}]


def test_a_grid_has_no_ranges_of_fractions_since_katib_adds_them_up_as_floats() -> None:
    space = SearchSpace(
        (
            Parameter("lr", Quantized(Uniform(0.1, 0.4), 0.1)),
            Parameter("n", IntUniform(1, 3)),
            Parameter("name", Choice(("a", "b"))),
        )
    )

    experiment, exported = export_katib(a_sweep(design=GridSearch(space)))

    assert broken(experiment) == []
    assert experiment["spec"]["parameters"][0]["feasibleSpace"] == {"list": ["0.1", "0.2", "0.3"]}
    assert experiment["spec"]["maxTrialCount"] == size(experiment["spec"]) == 18
    assert not [loss for loss in exported.losses if "combinations" in loss.reason]


def test_the_trial_is_a_job_with_the_sweeps_command_resources_and_limits() -> None:
    image = "registry.example/team/x@sha256:" + "0" * 64
    run = RunConfig(
        image=image, resources=Resources("2", "4Gi", 1), retries=2, timeout_seconds=60, seed_base=5
    )
    command = ("${env}", "${interpreter}", "t.py", "${args}", "-s=${seed}", "--lr2=${envvar:SWEEP_PARAM_LR}")
    sweep = a_sweep(
        design=a_grid(lr=[0.1, 0.2], epochs=3, **{"opt.name": ["a", "b"]}), run=run, command=command
    )

    experiment, _ = export_katib(sweep)

    assert broken(experiment) == []
    job = experiment["spec"]["trialTemplate"]["trialSpec"]["spec"]
    container = job["template"]["spec"]["containers"][0]
    assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (2, 60)
    assert container["image"] == image
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}
    assert container["command"] == [
        "/usr/bin/env", "python3", "t.py", "--lr=${trialParameters.lr}", "--epochs=3",
        "--opt.name=${trialParameters.opt_name}", "-s=5", "--lr2=${trialParameters.lr}",
    ]  # fmt: skip
    assert {"name": "SWEEP_PARAM_OPT_NAME", "value": "${trialParameters.opt_name}"} in container["env"]


@pytest.mark.parametrize(
    ("macro", "expected"),
    [
        ("${args_no_hyphens}", ["lr=${trialParameters.lr}", "on=True"]),
        ("${args_no_boolean_flags}", ["--lr=${trialParameters.lr}", "--on"]),
        ("${args_spaced}", ["--lr", "${trialParameters.lr}", "--on", "True"]),
        ("${param:lr}", ["${trialParameters.lr}"]),
        ("${args_json}", ['{"lr": "${trialParameters.lr}", "on": true}']),
        ("x${args_json_file}", ["x"]),
        ("${envvar:HOME}", ["$(HOME)"]),
    ],
)
def test_each_macro_is_written_out(macro: str, expected: list[str]) -> None:
    sweep = a_sweep(design=a_grid(lr=[0.1, 0.2], on=True), command=("t", macro))

    experiment, _ = export_katib(sweep)

    assert broken(experiment) == []
    containers = experiment["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]["containers"]
    assert containers[0]["command"] == ["t", *expected]


def related(**changes: Any) -> GridSearch:
    """Give a grid of lr and n; `changes` replace parts of its space."""
    parts = {"parameters": (Parameter("lr", Choice((0.1, 0.2))), Parameter("n", Choice((1, 2)))), **changes}
    return GridSearch(SearchSpace(**parts))


LOSSES: list[tuple[str, Sweep, str]] = [
    ("replicates", a_sweep(design=related(), replicates=2), "replicates: 2"),
    ("result", a_sweep(design=related()), "metric.source: result"),
    ("list", a_sweep(design=a_list([{"a": 1, "b": 2}, {"a": 2}])), "method: list"),
    ("seed", a_sweep(design=a_draw(seed=2**40, p=Uniform(0, 1))), f"seed: {2**40}"),
    ("beta", a_sweep(design=a_draw(p=Beta(1, 2))), "p: beta"),
    ("cut", a_sweep(design=a_draw(p=Normal(0, 1, -1, 1))), "p: bounds of the normal distribution"),
    ("odds", a_sweep(design=a_draw(p=Choice(("a", "b"), (0.1, 0.9)), q=Uniform(0, 1))), "p.probabilities"),
    ("texts", a_sweep(design=a_grid(p=[1, "1"])), "p"),
]


@pytest.mark.parametrize(("sweep", "what"), [case[1:] for case in LOSSES], ids=[case[0] for case in LOSSES])
def test_what_katib_cannot_say_is_named_and_the_rest_is_still_valid(sweep: Sweep, what: str) -> None:
    experiment, exported = export_katib(sweep)

    assert broken(experiment) == []
    assert what in whats(exported.losses)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,20}", fullmatch=True)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-2, 2), st.text(max_size=3))


@given(
    st.dictionaries(NAMES, st.lists(SCALARS, min_size=1, max_size=3, unique_by=repr), min_size=1, max_size=4),
    st.sampled_from(["${args}", "${args_no_hyphens}", "${args_json}", "--x=${seed}"]),
)
def test_katib_accepts_any_values_and_commands(values: dict[str, list[Value]], macro: str) -> None:
    rows = combinations(**values)
    sweep = a_sweep(design=a_list(rows), command=("t", macro))

    experiment = yaml.safe_load(katib.write(sweep, rows).text)

    assert broken(experiment) == []
