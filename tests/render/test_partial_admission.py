"""What a pool says of its queue beyond the name: fewer trials at once, and queues that lend."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweepledger import policy
from sweepledger.render.platform import kueue
from sweepledger.structs.kubernetes import MIN_PARALLELISM
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings
from tests.render.building import built
from tests.render.platforms import PLATFORM_SETTINGS, THREE_POOLS
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64


def with_least(least: int | None) -> Settings:
    pools = {**FULL_SETTINGS.pools}
    pools["queued"] = replace(pools["queued"], min_parallelism=least)
    return replace(FULL_SETTINGS, pools=pools)


def manifests(folder: Path, least: int | None, shape: Shape = Shape.INDEXED) -> tuple[Any, ...]:
    return built(a_batch(shape, sweep=a_full_sweep(), image=IMAGE), folder, with_least(least))


def least_of(objects: tuple[Any, ...]) -> list[str | None]:
    jobs = [one for one in objects if one["kind"] == "Job"]
    return [job["metadata"]["annotations"].get(MIN_PARALLELISM) for job in jobs]


def codes(objects: tuple[Any, ...], settings: Settings) -> set[str]:
    (name,) = {one["metadata"]["labels"]["sweepledger.dev/batch"] for one in objects}
    return {
        problem.code for problem in policy.check_batch(name, settings, objects, file="overlay", image=IMAGE)
    }


def test_an_indexed_job_says_how_few_trials_its_queue_may_admit(tmp_path: Path) -> None:
    objects = manifests(tmp_path, 1)

    assert least_of(objects) == ["1"]
    assert codes(objects, with_least(1)) == set()


@pytest.mark.parametrize("least", [None, 2, 100])
def test_a_job_that_asks_for_no_more_at_once_does_not_say_it(least: int | None, tmp_path: Path) -> None:
    # Kueue refuses a Job whose least number of pods is not smaller than its parallelism, which is 2 here.
    assert least_of(manifests(tmp_path, least)) == [None]


def test_a_job_of_one_trial_does_not_say_it(tmp_path: Path) -> None:
    assert {*least_of(manifests(tmp_path, 1, Shape.JOBS))} == {None}


@pytest.mark.parametrize("other", [None, 2])
def test_what_the_pool_does_not_say_is_refused(other: int | None, tmp_path: Path) -> None:
    assert codes(manifests(tmp_path, 1), with_least(other)) == {"placement-not-ours"}


def test_queues_of_a_cohort_lend_and_take_back() -> None:
    heavy = replace(THREE_POOLS["gpu-heavy"], cohort="gpus")
    pools = {**THREE_POOLS, "gpu-heavy": heavy, "nightly": replace(heavy, name="nightly", queue="nightly")}

    made = kueue.objects(replace(PLATFORM_SETTINGS, pools=pools))

    specs = {one["metadata"]["name"]: one["spec"] for one in made if one["kind"] == "ClusterQueue"}
    flavors = {
        name: [flavor["name"] for group in spec["resourceGroups"] for flavor in group["flavors"]]
        for name, spec in specs.items()
    }
    assert specs["research-nightly"]["cohort"] == specs["research-gpu-heavy"]["cohort"] == "research-gpus"
    assert specs["research-gpu-heavy"]["preemption"]["reclaimWithinCohort"] == "Any"
    assert "cohort" not in specs["research-cpu"]
    assert flavors["research-nightly"] == flavors["research-gpu-heavy"] == ["research-gpu-heavy"]
    assert [one["metadata"]["name"] for one in made if one["kind"] == "ResourceFlavor"] == [
        *("research-cpu", "research-gpu-heavy", "research-gpu-light"),
    ]


def test_queues_without_a_cohort_have_flavors_of_their_own() -> None:
    heavy = THREE_POOLS["gpu-heavy"]
    pools = {"gpu-heavy": heavy, "nightly": replace(heavy, name="nightly", queue="nightly")}

    made = kueue.objects(replace(PLATFORM_SETTINGS, pools=pools))

    assert [one["metadata"]["name"] for one in made if one["kind"] == "ResourceFlavor"] == [
        *("research-gpu-heavy", "research-nightly"),
    ]
