from msgspec.structs import replace

from sweepledger.engine.local import machine
from sweepledger.engine.local.local_batch import ResourceAmounts
from sweepledger.structs.run_config import Pack
from tests.engine.batches import indexed

HAS = ResourceAmounts(milli_cpus=2000, memory=4 << 30, gpus=0)

LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555555)
  MIG 1g.18gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555555)
GPU 1: NVIDIA H200 (UUID: GPU-66666666-2222-3333-4444-555555555555)
"""


def test_partitions_of_gpus_are_not_counted() -> None:
    assert machine.count_gpus(LISTING) == 2
    assert machine.count_gpus("No devices found.\n") == 0


def test_all_lacking_resources_are_named() -> None:
    batch = indexed([""], resources=ResourceAmounts(2500, 5 << 30, 1))

    (problem,) = machine.capacity_problems(batch, HAS)

    assert problem.code == "resources-lacking"
    assert problem.message == (
        "each trial of lr-b1-00000001 requests more than this machine has: "
        "2.5 CPUs (it has 2), 5120 MiB of memory (it has 4096), 1 GPUs (it has 0)"
    )
    assert problem.hint is None
    fits = indexed([""] * 9, resources=ResourceAmounts(2000, 4 << 30))
    assert machine.capacity_problems(fits, HAS) == ()


def test_a_lack_of_only_gpus_has_a_hint() -> None:
    batch = indexed([""], resources=ResourceAmounts(1000, 0, 1))

    (problem,), without = machine.capacity_problems(batch, HAS), machine.without_gpus(batch)

    assert "--without-gpu" in (problem.hint or "")
    assert machine.capacity_problems(without, HAS) == ()
    assert (without.requests.gpus, without.limits.gpus, without.digest) == (0, 1, batch.digest)


def test_fewer_trials_of_a_pod_at_once_need_less() -> None:
    batch = replace(
        indexed([""] * 8, parallelism=2, resources=ResourceAmounts(4000, 8 << 30, 1)), pack=Pack(4, at_once=4)
    )

    halved, smaller = (
        machine.with_parallelism(batch, 2),
        machine.fitted(batch, ResourceAmounts(1500, 9 << 30, 1)),
    )

    assert (halved.parallelism, halved.pack, halved.requests.milli_cpus) == (1, Pack(4, at_once=2), 2000)
    assert (smaller.pack, smaller.requests) == (Pack(4), ResourceAmounts(1000, 2 << 30, 1))
    assert machine.with_parallelism(batch, None) is batch
    assert machine.with_parallelism(indexed([""] * 3), 1).parallelism == 1
