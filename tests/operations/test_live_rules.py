"""Trials that are compared with others of their batch while they run: real processes, real git."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sweepledger.formats import records_jsonl
from sweepledger.formats.record_json import to_line
from sweepledger.operations.cluster_local import THRESHOLDS, LiveRules
from sweepledger.operations.verification.batch_audit import stop_fault
from sweepledger.structs.record import EarlyStop, Record, Status
from sweepledger.structs.values import bytes_digest
from tests.builders import a_record, present
from tests.operations.test_collect import leave
from tests.repository import Sandbox

SMALL = {"cpu": 1, "memory": "256Mi"}
PROGRAM = """import argparse, time
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
is_ready = lambda path: "median" in path.read_text()
until = time.monotonic() + 60
while x == 1 and time.monotonic() < until and not any(map(is_ready, Path("STATE").glob("*.json"))):
    time.sleep(0.02)
for step in range(1, 4):
    print(f"step={step} score={x * step}", flush=True)
    time.sleep(0.05 if x > 1 else 600 if step == 2 else 0)
"""
"""The last trial reports once the others have ended, and then waits until it is stopped."""


def merged(sandbox: Sandbox) -> str:
    sandbox.write_spec(
        "peak",
        method="list",
        metric={"name": "score", "goal": "maximize", "source": "stdout"},
        early_terminate={"type": "median", "min_iter": 2},
        assignments=[{"x": x} for x in (5, 6, 7, 1)],
        run={"code": {"path": "code"}, "resources": SMALL, "parallelism": 1, "timeout": "2m"},
    )
    program = PROGRAM.replace("STATE", str(sandbox.root.parent / "state" / THRESHOLDS))
    sandbox.commit("Ask for a sweep with early stopping", {"code/train.py": program})
    made = sandbox.new_batch()
    sandbox.publish("Its batch")
    return made.name


def records(sandbox: Sandbox, name: str) -> list[Record]:
    content = (sandbox.root / f"results/peak/records/{name}.jsonl").read_bytes()
    return [record for record in records_jsonl.records(content) if isinstance(record, Record)]


def test_trials_of_its_batch_stop_a_trial_by_a_repeatable_decision(sandbox: Sandbox) -> None:
    name = merged(sandbox)

    list(sandbox.local())

    sandbox.pull()
    *others, last = records(sandbox, name)
    assert [record.status for record in others] == [Status.OK] * 3
    assert (last.status, last.reason) == (Status.PRUNED, "median")
    assert last.stopped is not None
    assert last.stopped.seen == bytes_digest(present(last.thresholds).encode())
    assert (last.stopped.step, last.stopped.threshold) == (2, 12.0)
    (verification,) = sandbox.verify().sweeps
    assert verification.differences == ()


def a_stopped_record(**changes: object) -> Record:
    rule = {"goal": "maximize", "rule": "median", "thresholds": [[2, 12.0], [3, 18.0]], "value": "best"}
    text = json.dumps({"stop": [rule]})
    stopped = EarlyStop("median", 2, 12.0, bytes_digest(text.encode()))
    made = a_record(status=Status.PRUNED, reason="median", curves={"loss": ((1, 1.0), (2, 2.0))})
    return replace(made, **{"stopped": stopped, "thresholds": text, **changes})  # type: ignore[arg-type]


def test_thresholds_come_back_from_git_once_per_digest_and_are_no_part_of_a_record() -> None:
    made = [replace(a_stopped_record(), index=index, uid=f"pod-{index}") for index in range(3)]

    (content,) = records_jsonl.write(made)

    assert content.count(b"12.0") == 1  # in the file of thresholds; a record has 12
    back = records_jsonl.records(content)
    assert [record.thresholds for record in back if isinstance(record, Record)] == [made[0].thresholds] * 3
    assert to_line(made[0]) == to_line(replace(made[0], thresholds=None))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"curves": {"loss": ((1, 1.0), (2, 13.0))}}, "must be worse than 12.0 at step 2"),
        ({"stopped": EarlyStop("median", 2, 11.0, "sha256:0")}, "a threshold of 11.0"),
        ({"stopped": EarlyStop("hyperband", 2, 12.0, "sha256:0")}, "cannot be repeated"),
        ({"thresholds": "[]"}, "cannot be repeated"),
        ({"thresholds": None}, "which are not there"),
        ({"curves": {"time": ((1, 1.0), (2, 2.0))}}, "cannot be repeated"),
    ],
)
def test_verify_repeats_the_decision_of_an_end(changes: dict[str, object], fault: str | None) -> None:
    found = stop_fault(a_stopped_record(**changes), "loss")

    assert found == fault if fault is None or found is None else fault in found


def test_rules_change_when_a_twentieth_more_trials_ended(sandbox: Sandbox, tmp_path: Path) -> None:
    merged(sandbox)
    (batch,) = sandbox.batches()
    rules, commit = LiveRules(sandbox.workspace.repository, tmp_path), sandbox.head()
    path = rules.path(commit, batch)

    assert not rules.refresh(commit, batch)
    for index, expected in ((0, 0), (1, 0), (2, 1)):
        leave(tmp_path / "results", batch, index, curves={"score": [[1, 1.0], [2, 2.0 + index]]})
        assert rules.refresh(commit, batch)
        assert len(json.loads(present(path).read_bytes())["stop"]) == expected
        assert not rules.refresh(commit, batch)
