"""What a pool says of its queue beyond the name: fewer trials at once, and queues that lend."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger import search
from sweepledger.formats import yaml
from sweepledger.operations.repository.batch_builder import RenderInputs, build_overlay
from sweepledger.render.pod import MIN_PARALLELISM
from sweepledger.search import expansion
from sweepledger.search.expansion import Expansion
from sweepledger.spec import ParsedSpec, parse
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import QUEUE_LABEL
from sweepledger.structs.run_config import Pack, Shape
from sweepledger.structs.settings import Settings
from tests.render.building import built, codes
from tests.render.platforms import PLATFORM_SETTINGS, THREE_POOLS, kueue_objects
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, a_program, some_bases, with_keys
from tests.written_specs import a_spec, spec_bytes

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64


def with_least(least: int | None) -> Settings:
    pools = {**FULL_SETTINGS.trials.pools}
    pools["queued"] = replace(pools["queued"], min_parallelism=least)
    return with_keys(FULL_SETTINGS, pools=pools)


def manifests(folder: Path, least: int | None, shape: Shape = Shape.INDEXED) -> tuple[Any, ...]:
    return built(a_batch(shape, sweep=a_full_sweep(), image=IMAGE), folder, with_least(least))


def least_of(objects: tuple[Any, ...]) -> list[str | None]:
    jobs = [one for one in objects if one["kind"] == "Job"]
    return [job["metadata"]["annotations"].get(MIN_PARALLELISM) for job in jobs]


def test_an_indexed_job_says_how_few_trials_its_queue_may_admit(tmp_path: Path) -> None:
    objects = manifests(tmp_path, 1)

    assert least_of(objects) == ["1"]
    assert codes(objects, with_least(1), IMAGE) == set()


@pytest.mark.parametrize("least", [None, 2, 100])
def test_a_job_that_asks_for_no_more_at_once_does_not_say_it(least: int | None, tmp_path: Path) -> None:
    # Kueue refuses a Job whose least number of pods is not smaller than its parallelism, which is 2 here.
    assert least_of(manifests(tmp_path, least)) == [None]


def test_of_pods_with_several_trials_the_least_counts_pods(tmp_path: Path) -> None:
    # Two trials at once are one pod, and Kueue refuses a Job that asks for one and for at least one.
    full = a_full_sweep()
    sweep = replace(full, run=replace(full.run, pack=Pack(2, 2)))

    objects = built(a_batch(sweep=sweep, image=IMAGE), tmp_path, with_least(1))

    assert [job["spec"]["parallelism"] for job in objects if job["kind"] == "Job"] == [1]
    assert least_of(objects) == [None]


def requested(settings: Settings, trials: int, **run: Any) -> list[Any]:
    """Return the objects of a spec's batch that run trials, or the codes of what is refused."""
    values = {"x": {"values": [*range(trials)]}}
    spec = a_spec(parameters=values, run={"image": "git", **run})
    read = parse(spec_bytes(spec), "sweeps/lr.yaml", settings)
    assert isinstance(read, ParsedSpec)
    sweep = read.sweep
    result = search.explore(sweep)
    if not isinstance(result, Expansion):
        return [problem.code for problem in result]
    program = a_program(sweep, image=settings.trials.image_of("git"))
    request = Batch(sweep, program, expansion.expand(sweep, program))
    inputs = RenderInputs(
        some_bases(),
        settings.trials,
        settings.network,
        settings.results,
        settings.git,
        settings.fleet,
    )
    tree = build_overlay(request, (), inputs).tree
    return [
        thing
        for path, content in tree
        if path.endswith(".yaml") and path != "kustomization.yaml"
        for thing in yaml.load_all(content)
        if thing.get("kind") not in {None, "ConfigMap", "TrainingRuntime"}
    ]


@pytest.mark.parametrize("least", [None, 2], ids="at-least-{}".format)
@pytest.mark.parametrize("pool", [None, "queued"], ids="pool-{}".format)
@pytest.mark.parametrize("shape", [None, Shape.INDEXED, Shape.JOBS, Shape.JOB_SET], ids="shape-{}".format)
def test_no_more_trials_run_at_once(shape: Shape | None, pool: str | None, least: int | None) -> None:
    settings = with_least(least)
    chosen = {} if shape is None else {"shape": str(shape)}
    placed = {} if pool is None else {"pool": pool}
    for parallelism, trials in ((1, 3), (2, 2), (3, 1), (3, 2), (3, 3), (25, 21)):
        objects = requested(settings, trials, parallelism=parallelism, **chosen, **placed)

        if shape not in {None, Shape.INDEXED} and parallelism < trials:
            assert objects == ["shape-limit"]
            continue
        at_once = [thing["spec"].get("parallelism", 1) if thing["kind"] == "Job" else 1 for thing in objects]
        assert sum(at_once) == min(parallelism, trials)
        labels = {thing["metadata"]["labels"].get(QUEUE_LABEL) for thing in objects}
        assert labels == {"research" if pool == "queued" else None}
        if shape is None and pool == "queued" and least is not None:
            (job,) = objects
            written = job["metadata"]["annotations"].get(MIN_PARALLELISM)
            assert written == (str(least) if least < min(parallelism, trials) else None)


def test_queues_of_a_cohort_lend_and_take_back() -> None:
    heavy = replace(THREE_POOLS["gpu-heavy"], cohort="gpus")
    pools = {**THREE_POOLS, "gpu-heavy": heavy, "nightly": replace(heavy, name="nightly", queue="nightly")}

    made = kueue_objects(with_keys(PLATFORM_SETTINGS, pools=pools))

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
        *("research-cpu", "research-gpu-heavy", "research-gpu-light")
    ]


def test_teams_that_name_one_flavor_lend_each_other_its_quota() -> None:
    heavy = replace(THREE_POOLS["gpu-heavy"], selector={}, tolerations=(), flavor="a100", cohort="gpus")

    made = [
        kueue_objects(with_keys(PLATFORM_SETTINGS, namespace=team, pools={"gpu-heavy": heavy}))
        for team in ("vision", "speech")
    ]

    queues = [one for objects in made for one in objects if one["kind"] == "ClusterQueue"]
    assert [queue["metadata"]["name"] for queue in queues] == ["vision-gpu-heavy", "speech-gpu-heavy"]
    assert {queue["spec"]["cohort"] for queue in queues} == {"gpus"}
    assert {
        flavor["name"]
        for queue in queues
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
    } == {"a100"}
    assert not [one for objects in made for one in objects if one["kind"] in {"ResourceFlavor", "Topology"}]
