"""Whatever the spec's checks accept must build, pass the policy, and have names that fit."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generator import policy, search
from generator.spec import parse
from generator.structs.batch import Batch
from generator.structs.names import LABEL_LENGTH, LAST_BATCH, SWEEP_NAME_LENGTH
from generator.structs.sweep import Shape, Sweep
from tests.render.building import built, rendered
from tests.sweeps import FULL_SETTINGS, a_batch, a_program, a_sweep
from tests.written_specs import a_spec, written

LONGEST = "s" * SWEEP_NAME_LENGTH
LARGEST_INDEX = "-99999"
"""A pod of an Indexed Job is called like the Job with its index, and its hostname must be a label."""

VALUES = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
PARAMETERS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True),
    st.fixed_dictionaries({"values": st.lists(VALUES, min_size=1, max_size=2, unique_by=repr)}),
    min_size=1,
    max_size=3,
)
RUN = st.fixed_dictionaries(
    {"image": st.just("registry.example.org/team/trainer@sha256:" + "a" * 64), "parallelism": st.just(8)},
    optional={
        "pool": st.sampled_from(["queued", "chosen"]),
        "data": st.just("mnist"),
        "secrets": st.just(["hub"]),
        "egress": st.just(["hub"]),
        "code": st.just({"mode": "clone"}),
        "environment": st.dictionaries(
            st.from_regex(r"[A-Z][A-Z0-9_]{0,10}", fullmatch=True), st.text(max_size=12), max_size=2
        ),
        "retries": st.integers(0, 5),
        "timeout": st.sampled_from(["1m", "36h"]),
        "shape": st.sampled_from(["indexed", "jobs"]),
        "resources": st.fixed_dictionaries(
            {"cpu": st.sampled_from([1, "1500m"]), "memory": st.sampled_from(["512Mi", "8Gi"])},
            optional={
                "gpu": st.just(1),
                "scratch": st.just("20Gi"),
                "shared_memory": st.just("256Mi"),
            },
        ),
    },
)


def accepted(spec: dict[str, Any]) -> Batch:
    """Give the batch of a spec, if its checks let it pass."""
    sweep = parse(written(spec), f"sweeps/{spec['name']}.yaml", FULL_SETTINGS)
    assume(isinstance(sweep, Sweep))
    assert isinstance(sweep, Sweep)
    program = a_program(sweep, image=FULL_SETTINGS.image_of(sweep.run.image))
    trials = search.expand(sweep, program)
    assume(trials)
    return Batch(sweep, LAST_BATCH, None, program, trials, sweep.run.shape or Shape.INDEXED)


@settings(max_examples=40)
@given(PARAMETERS, RUN, st.integers(1, 2))
def test_any_accepted_spec_builds_passes_the_policy_and_has_names_that_fit(
    tmp_path_factory: pytest.TempPathFactory,
    parameters: dict[str, Any],
    run: dict[str, Any],
    replicates: int,
) -> None:
    command = ["train", "${args}", "--seed=${seed}"]
    batch = accepted(
        a_spec(name=LONGEST, parameters=parameters, run=run, replicates=replicates, command=command)
    )

    manifests = built(batch, tmp_path_factory.mktemp("any"), FULL_SETTINGS)

    name = rendered(batch, FULL_SETTINGS).name
    assert policy.check(name, FULL_SETTINGS, manifests, place="x") == ()
    names = Counter((manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests)
    assert set(names.values()) == {1}
    assert all(len(one) <= LABEL_LENGTH for _, one in names)
    jobs = [one for kind, one in names if kind == "Job"]
    assert len(jobs) == (len(batch.trials) if batch.shape is Shape.JOBS else 1)
    if batch.shape is Shape.INDEXED:
        assert len(jobs[0] + LARGEST_INDEX) <= LABEL_LENGTH


def test_the_generated_specs_are_mostly_accepted() -> None:
    seen: list[bool] = []

    @settings(max_examples=40)
    @given(PARAMETERS, RUN)
    def look(parameters: dict[str, Any], run: dict[str, Any]) -> None:
        spec = a_spec(name=LONGEST, parameters=parameters, run=run)
        seen.append(isinstance(parse(written(spec), f"sweeps/{LONGEST}.yaml", FULL_SETTINGS), Sweep))

    look()

    assert sum(seen) >= len(seen) / 3


@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOBS], ids=str)
def test_two_active_batches_of_one_sweep_share_no_object(shape: Shape, tmp_path: Path) -> None:
    batches = [a_batch(shape), a_batch(shape, sweep=a_sweep(digest="sha256:" + "0" * 64))]

    first, second = (
        {(one["kind"], one["metadata"]["name"]) for one in built(batch, tmp_path)} for batch in batches
    )

    assert not first & second


def test_different_trials_never_share_a_name() -> None:
    for shape, replicates in itertools.product((Shape.JOBS, Shape.INDEXED), (1, 3)):
        batch = a_batch(shape, sweep=a_sweep(replicates=replicates))

        assert len({trial.id for trial in batch.trials}) == len(batch.trials)
