"""Several trials in one pod: the same trials and records as in pods of their own, whatever becomes of a neighbour."""

from dataclasses import replace

import pytest

from sweepledger.engine.local.events import PodEnded
from sweepledger.formats import records_jsonl
from sweepledger.operations.reports.outputs import fetch_artifacts, trial_logs
from sweepledger.operations.reports.reproduction import run_again
from sweepledger.operations.run import SweepRun
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.state import create_state
from sweepledger.structs.record import Record, Status
from sweepledger.structs.run_config import Pack
from sweepledger.verbs.try_ import try_trial
from tests.repository import SPEC, Sandbox, append_to

XS = ", ".join(str(number / 2) for number in range(7))
PACK = "{trials: 3, at_once: 2}"


def written(sandbox: Sandbox, name: str, pack: str | None = None, *, xs: str = XS, retries: int = 0) -> None:
    packed = "" if pack is None else f"  pack: {pack}\n"
    text = SPEC.format(name=name, xs=xs, parallelism=2) + packed + f"  shape: indexed\n  retries: {retries}\n"
    sandbox.write(f"sweeps/{name}.yaml", text)


def played(sandbox: Sandbox, name: str) -> list[PodEnded]:
    return [event for event in sandbox.run(name) if isinstance(event, PodEnded)]


def batch_of(sandbox: Sandbox, name: str) -> StoredBatch:
    (batch,) = batches.of_sweep(sandbox.batches(), name)
    return batch


def recorded(sandbox: Sandbox, name: str) -> dict[str, list[Record]]:
    content = (sandbox.root / batch_of(sandbox, name).records_file()).read_bytes()
    read: dict[str, list[Record]] = {}
    for record in records_jsonl.records(content):
        assert isinstance(record, Record)
        read.setdefault(record.trial, []).append(record)
    return read


def without_places(record: Record) -> Record:
    """Return a record without what says where and when an attempt ran."""
    plain = replace(record, batch="", uid="", started="", finished="", seconds=0.0, node=None, observed=None)
    details = {name: value for name, value in plain.details.items() if name not in {"peak_memory", "wall"}}
    return replace(plain, shared=None, row="", details=details)


def program(sandbox: Sandbox, code: str) -> None:
    """Let the program begin with some code, in which `x` is the trial's."""
    path = sandbox.root / "code/train.py"
    head = f"import os\nx = float(os.environ['SWEEP_PARAM_X'])\n{code}\n"
    path.write_text(head + path.read_text())
    sandbox.commit("Change the program")


@pytest.fixture
def laptop(sandbox: Sandbox) -> Sandbox:
    sandbox.push()
    sandbox.use_as_laptop()
    return sandbox


def test_a_packed_and_an_unpacked_run_give_equal_records_but_for_times_and_places(laptop: Sandbox) -> None:
    written(laptop, "alone")
    written(laptop, "packed", PACK)

    assert len(played(laptop, "alone")) == len(played(laptop, "packed")) == 7

    alone, packed = recorded(laptop, "alone"), recorded(laptop, "packed")
    assert [*alone] == [*packed], "packing is no part of a trial's identity"
    for trial, records in alone.items():
        assert list(map(without_places, records)) == list(map(without_places, packed[trial]))
    lock = batch_of(laptop, "packed").lock
    assert (lock.run.pack, lock.pods) == (Pack(3, 2), 3)
    assert {record.shared for records in packed.values() for record in records} <= {1, 2}
    assert not laptop.check().problems
    assert laptop.verify().is_good


@pytest.mark.parametrize(
    ("ends", "status", "reason"),
    [
        ("raise SystemExit(42)", Status.DIVERGED, "bad-hyperparameters"),
        ("os.kill(os.getppid(), 9)", Status.FAILED, "signal-9"),
    ],
    ids=["diverges", "kills its launcher"],
)
def test_a_trial_takes_nothing_from_others(ends: str, status: Status, reason: str, laptop: Sandbox) -> None:
    program(laptop, f"if x == 0.5: {ends}")
    written(laptop, "packed", PACK, retries=1)

    played(laptop, "packed")

    records = recorded(laptop, "packed")
    ends_of = {
        trial: [(record.status, record.reason, record.attempt) for record in records[trial]]
        for trial in records
    }
    (bad,) = (ended for ended in ends_of.values() if ended[0][0] is not Status.OK)
    attempts = 1 if status is Status.DIVERGED else 2
    assert bad[-1] == (status, reason, attempts)
    others = [ended for ended in ends_of.values() if ended is not bad]
    assert others == [[(Status.OK, None, 1)]] * 6


def test_one_trial_of_a_pack_can_be_read_tried_and_reproduced(laptop: Sandbox) -> None:
    program(
        laptop,
        "print('x is', x)\nos.makedirs(os.environ['SWEEP_ARTIFACTS'], exist_ok=True)\n"
        "open(os.environ['SWEEP_ARTIFACTS'] + '/x.txt', 'w').write(str(x))",
    )
    written(laptop, "packed", PACK)
    played(laptop, "packed")
    workspace = laptop.workspace
    state = create_state(workspace.repository)
    row = batch_of(laptop, "packed").rows[4]

    (attempt,) = trial_logs(workspace, row.trial, state=state).attempts
    fetched = fetch_artifacts(workspace, row.trial, into=laptop.root / "got", state=state)
    again = run_again(workspace, row.trial)
    tried = try_trial(workspace, "packed", 4, quiet=True)

    assert attempt.stdout.startswith("x is 2.0\n")
    assert (fetched.folder / "x.txt").read_text() == "2.0"
    assert again.is_equal
    assert tried.is_ok


def test_a_pod_that_never_begins_costs_each_of_its_trials_an_attempt(laptop: Sandbox) -> None:
    written(laptop, "packed", PACK, xs="1, 2, 3, 4", retries=1)
    append_to(laptop.root / "sweeps/packed.yaml", "  interpreter: /bin/false\n")
    laptop.commit("Never pause", {"sweepledger.yaml": "version: 1\nlimits: {failures: 0}\n"})

    played(laptop, "packed")

    ends = {
        (record.status, record.reason, record.attempt) for (*_, record) in recorded(laptop, "packed").values()
    }
    assert ends == {(Status.FAILED, "exit-1", 2)}


def test_checkpoints_of_packed_trials_are_seen_before_a_hand_over(laptop: Sandbox) -> None:
    written(laptop, "packed", PACK)
    run = SweepRun.prepare(laptop.workspace, ("packed",))
    state = create_state(laptop.workspace.repository)
    run.commit_batches()
    batch = batch_of(laptop, "packed")
    assert run.batches_with_checkpoints(state) == ()

    folder = state / "results" / batch.name / batch.lock.place(4) / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "last").touch()

    assert run.batches_with_checkpoints(state) == (batch.name,)
