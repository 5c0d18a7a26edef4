from sweepledger.engine.local import machine
from sweepledger.engine.local.job_spec import ResourceAmounts
from sweepledger.structs.run_config import RunningState
from tests.engine.batches import indexed, parsed

HAS = ResourceAmounts(milli_cpus=2000, memory=4 << 30, gpus=0)

LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555555)
  MIG 1g.18gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555555)
GPU 1: NVIDIA H200 (UUID: GPU-66666666-2222-3333-4444-555555555555)
"""


def test_the_machine_has_cpus_and_memory() -> None:
    amounts = machine.capacity()

    assert amounts.milli_cpus >= 1000
    assert amounts.memory > 1 << 28


def test_partitions_of_gpus_are_not_counted() -> None:
    assert machine.count_gpus(LISTING) == 2
    assert machine.count_gpus("No devices found.\n") == 0


def test_a_batch_that_fits_is_not_refused() -> None:
    batch = parsed(indexed([""] * 9, resources={"cpu": "2", "memory": "4Gi"}))

    assert machine.capacity_problems([batch], HAS) == ()


def test_all_lacking_resources_are_named() -> None:
    batch = parsed(indexed([""], resources={"cpu": "2500m", "memory": "5Gi", "nvidia.com/gpu": 1}))

    (problem,) = machine.capacity_problems([batch], HAS)

    assert problem.code == "resources-lacking"
    assert problem.message == (
        "each trial of lr-b1-00000001 requests more than this machine has: "
        "2.5 CPUs (it has 2), 5120 MiB of memory (it has 4096), 1 GPUs (it has 0)"
    )
    assert problem.hint is None


def test_a_lack_of_only_gpus_has_a_hint() -> None:
    batch = parsed(indexed([""], resources={"cpu": "1", "nvidia.com/gpu": 1}))

    (problem,) = machine.capacity_problems([batch], HAS)

    assert "--without-gpu" in (problem.hint or "")
    assert machine.capacity_problems([batch], HAS, without_gpu=True) == ()


def test_without_gpus_only_the_requests_change() -> None:
    batch = parsed(indexed([""], resources={"cpu": "1", "nvidia.com/gpu": 1}))

    (job,) = machine.without_gpus(batch).jobs

    assert (job.pod.requests.gpus, job.pod.limits.gpus) == (0, 1)
    assert job.digest == batch.jobs[0].digest


def test_a_batch_runs_with_the_parallelism_that_it_has_now() -> None:
    made = parsed(indexed(["", "", ""], parallelism=3))

    scaled = machine.running(made, RunningState(parallelism=1))
    paused = machine.running(made, RunningState(paused=True))

    assert [(job.parallelism, job.is_paused) for job in scaled.jobs] == [(1, False)]
    assert [(job.parallelism, job.is_paused) for job in paused.jobs] == [(3, True)]
    assert machine.running(made, RunningState()) == made
