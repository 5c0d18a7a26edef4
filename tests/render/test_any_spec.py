"""Whatever the spec's checks accept must build, pass the policy, and have names that fit."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sweepledger.search import expansion
from sweepledger.search.limits import MAX_DISTRIBUTED
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import INDEX_LABEL
from sweepledger.structs.names import (
    MAX_BATCH_NUMBER,
    MAX_DISTRIBUTED_NAME_LENGTH,
    MAX_LABEL_LENGTH,
    MAX_SWEEP_NAME_LENGTH,
)
from sweepledger.structs.run_config import Shape
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.sweep import Sweep
from tests.render.building import built, rendered
from tests.render.judging import check_batch
from tests.sweeps import FULL_SETTINGS, a_batch, a_program, a_sweep
from tests.written_specs import a_spec, parse_sweep, spec_bytes

SHAPES = pytest.mark.parametrize("shape", Shape, ids=str)
HASH = "-abcde"
"""What the names of pods end in where a controller draws them."""

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
    {"image": st.sampled_from(sorted(FULL_SETTINGS.trials.images)), "parallelism": st.just(16)},
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
        "resources": st.fixed_dictionaries(
            {"cpu": st.sampled_from([1, "1500m"]), "memory": st.sampled_from(["512Mi", "8Gi"])},
            optional={"gpu": st.just(1), "scratch": st.just("20Gi"), "shared_memory": st.just("256Mi")},
        ),
    },
)


SEVERAL = st.fixed_dictionaries({}, optional={"nodes": st.integers(1, 4), "processes": st.integers(1, 3)})


def longest_name(shape: Shape) -> str:
    return "s" * (MAX_DISTRIBUTED_NAME_LENGTH if shape.is_distributed else MAX_SWEEP_NAME_LENGTH)


def requested_run(shape: Shape, run: dict[str, Any], several: dict[str, int]) -> dict[str, Any]:
    return {**run, "shape": str(shape), **(several if shape.is_distributed else {})}


def trial_objects(manifests: tuple[Any, ...]) -> list[Any]:
    return [
        manifest
        for manifest in manifests
        if INDEX_LABEL in manifest["metadata"]["labels"] or manifest["kind"] == "Job"
    ]


def pods(thing: Any) -> Iterator[str]:
    """Name the pods of an object as its controller does, with the largest index that a sweep can have."""
    name, spec = thing["metadata"]["name"], thing["spec"]
    match thing["kind"]:
        case "Job" if INDEX_LABEL not in thing["metadata"]["labels"]:
            yield f"{name}-{MAX_TRIALS - 1}"  # the hostname: of the pod's own name too much is cut off
        case "Job":
            yield name  # likewise: the server cuts a name that it ends itself
        case "TrainJob" | "JobSet":
            yield f"{_last_of(name)}-node-0-99{HASH}"
        case _:
            (replicas,) = (result for key, result in spec.items() if key.endswith("ReplicaSpecs"))
            ends = {"Launcher": HASH}  # a Job's pod; the others are called by their number alone
            yield from (
                f"{_last_of(name)}-{replica.lower()}{ends.get(replica, '-99')}" for replica in replicas
            )


def _last_of(name: str) -> str:
    batch, _, index = name.rpartition("-")
    assert index.isdigit()
    return f"{batch}-{MAX_DISTRIBUTED - 1}"


def accepted(spec: dict[str, Any]) -> Batch:
    sweep = parse_sweep(spec_bytes(spec), f"sweeps/{spec['name']}.yaml", FULL_SETTINGS)
    assume(isinstance(sweep, Sweep))
    assert isinstance(sweep, Sweep)
    program = a_program(sweep, image=FULL_SETTINGS.trials.image_of(sweep.run.image))
    trials = expansion.expand(sweep, program)
    assume(trials)
    return Batch(sweep, program, trials, MAX_BATCH_NUMBER, shape=sweep.run.shape or Shape.INDEXED)


@pytest.mark.sampled(1)
@SHAPES
@settings(max_examples=5)
@given(parameters=PARAMETERS, run=RUN, several=SEVERAL, replicates=st.integers(1, 2))
def test_any_accepted_spec_builds_passes_the_policy_and_has_names_that_fit(
    tmp_path_factory: pytest.TempPathFactory,
    shape: Shape,
    parameters: dict[str, Any],
    run: dict[str, Any],
    several: dict[str, int],
    replicates: int,
) -> None:
    spec = a_spec(
        name=longest_name(shape),
        parameters=parameters,
        run=requested_run(shape, run, several),
        replicates=replicates,
        command=["train", "${args}", "--seed=${seed}"],
    )
    batch = accepted(spec)

    manifests = built(batch, tmp_path_factory.mktemp("any"), FULL_SETTINGS)

    name = rendered(batch, FULL_SETTINGS).name
    assert check_batch(name, FULL_SETTINGS, manifests, file="x") == ()
    names = Counter((manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests)
    assert set(names.values()) == {1}
    assert all(len(item) <= MAX_LABEL_LENGTH for _, item in names)
    running = trial_objects(manifests)
    assert len(running) == (1 if shape is Shape.INDEXED else len(batch.trials))
    assert all(len(pod) <= MAX_LABEL_LENGTH for thing in running for pod in pods(thing))


@pytest.mark.sampled(1)
@SHAPES
def test_two_active_batches_of_one_sweep_share_no_object_and_no_pod(shape: Shape, tmp_path: Path) -> None:
    batches = [
        a_batch(shape),
        a_batch(shape, sweep=a_sweep(digest="sha256:" + "0" * 64)),
        replace(a_batch(shape), number=2),
    ]

    names: Counter[str] = Counter()
    for batch in batches:
        manifests = built(batch, tmp_path)
        names.update({f"{manifest['kind']} {manifest['metadata']['name']}" for manifest in manifests})
        names.update({f"Pod {pod}" for thing in trial_objects(manifests) for pod in own_pods(thing)})

    assert set(names.values()) == {1}


def own_pods(thing: Any) -> Iterator[str]:
    """Name the pods that an object has, without what a controller draws."""
    name, spec = thing["metadata"]["name"], thing["spec"]
    match thing["kind"]:
        case "Job" if INDEX_LABEL not in thing["metadata"]["labels"]:
            yield from (f"{name}-{index}" for index in range(spec["completions"]))
        case "Job":
            yield name
        case "TrainJob" | "JobSet":
            yield f"{name}-node-0-0"
        case _:
            (replicas,) = (result for key, result in spec.items() if key.endswith("ReplicaSpecs"))
            yield from (f"{name}-{replica.lower()}-0" for replica in replicas)
