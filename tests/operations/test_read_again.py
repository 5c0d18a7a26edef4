"""A trial that failed by its metric alone: its stored output is read by the metric of a later batch."""

import hashlib
import json

import pytest

from sweepledger.formats import records_jsonl
from sweepledger.structs.record import Record, Status
from tests.builders import present
from tests.operations.test_run import SPY, starts
from tests.repository import Sandbox, replace_in

PRINTING = f"""{SPY}
import os, sys
value = float(sys.argv[sys.argv.index("--x") + 1] if "--x" in sys.argv else sys.argv[1].split("=")[1])
with open(os.environ["SWEEP_ARTIFACTS"] + "/weights", "w") as file:
    file.write(str(value))
for epoch in range(3):
    print(f"epoch={{epoch}} points={{value + epoch}}")
"""


@pytest.fixture
def misnamed(sandbox: Sandbox) -> Sandbox:
    """A laptop's sweep whose program prints `points`, and whose spec asks for `score`."""
    sandbox.publish("Print", {"code/train.py": PRINTING})
    sandbox.use_as_laptop()
    sandbox.spec()
    change_metric(sandbox, "{name: score, goal: maximize}", "{name: score, goal: maximize, source: stdout}")
    return sandbox


def change_metric(sandbox: Sandbox, before: str, after: str) -> None:
    replace_in(sandbox.root / "sweeps/peak.yaml", before, after)


def run(sandbox: Sandbox) -> None:
    list(sandbox.run("peak"))


def read_again(sandbox: Sandbox, old: str = "name: score", new: str = "name: points") -> list[str]:
    """Run the sweep, change its metric, and retry what failed; return the trials that the first run started."""
    run(sandbox)
    trained = starts(sandbox)
    change_metric(sandbox, old, new)
    sandbox.retry()
    run(sandbox)
    return trained


def newest_records(sandbox: Sandbox) -> list[Record]:
    newest = max((sandbox.root / "results/peak/records").glob("peak-*"))
    return [record for record in records_jsonl.records(newest.read_bytes()) if isinstance(record, Record)]


PATTERN = "format: regex, patterns: ['^epoch=(?P<step>[0-9]+) {}=(?P<value>[0-9.]+)']"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: score", "name: points"),
        ("name: points, " + PATTERN.format("score"), "name: points, " + PATTERN.format("points")),
        ("name: points, path: metrics.csv, format: csv", "name: points, source: stdout"),
    ],
    ids=["name", "pattern", "path"],
)
def test_a_mended_metric_reads_outputs_again(misnamed: Sandbox, before: str, after: str) -> None:
    change_metric(misnamed, "name: score", before)
    if "path" in before:
        change_metric(misnamed, ", source: stdout", "")
    run(misnamed)
    failed = newest_records(misnamed)
    trained = starts(misnamed)
    change_metric(misnamed, before, after)

    misnamed.retry()
    run(misnamed)

    assert {record.status for record in failed} == {Status.FAILED}
    assert len(trained) == len(failed) == 3
    assert starts(misnamed) == trained, "no program has started again"
    mended = newest_records(misnamed)
    assert [record.status for record in mended] == [Status.OK] * 3
    for first, second in zip(failed, mended, strict=True):
        (output,) = (misnamed.root / ".sweepledger/results").glob(f"*/*/{first.uid}.out")
        digest = f"sha256:{hashlib.sha256(output.read_bytes()).hexdigest()}"
        source = {"batch": first.batch, "uid": first.uid, "output": digest}
        assert second.details["read_again"] == source
        assert (second.seconds, second.started) == (first.seconds, first.started)
        assert second.environment == first.environment
        assert second.artifacts == first.artifacts
        assert second.artifacts
        assert len(second.curve("points")) == 3
    provenance = json.loads((misnamed.root / "results/peak/provenance.json").read_text())
    assert json.dumps(provenance).count('"read_again"') == 3
    assert misnamed.verify().sweeps[0].differences == ()


def test_only_a_whole_output_is_read_and_only_by_another_metric(misnamed: Sandbox) -> None:
    long = PRINTING + 'if value == 2:\n    print("noise " * 100_000)\n'
    misnamed.commit("Print more", {"code/train.py": long})
    run(misnamed)
    misnamed.retry()
    run(misnamed)
    assert len(starts(misnamed)) == 6, "the metric is the same"
    change_metric(misnamed, "name: score", "name: points")

    retried = misnamed.retry()
    run(misnamed)

    (again,) = starts(misnamed)[6:]
    assert [why.partition(": ") for why in present(retried.outputs).incomplete.values()] == [
        (again, ": ", "its output was longer than 512 KiB, and the middle is not stored")
    ]
    assert len(present(retried.outputs).files) == 2
    assert [record.status for record in newest_records(misnamed)] == [Status.OK] * 3


def test_a_trial_that_failed_otherwise_is_trained(misnamed: Sandbox) -> None:
    misnamed.commit("Fail", {"code/train.py": PRINTING + "sys.exit(value == 2)\n"})
    trained = read_again(misnamed)

    assert len(starts(misnamed)) == len(trained) + 1
    assert [record.status for record in newest_records(misnamed)] == [Status.OK, Status.FAILED, Status.OK]


def test_rows_of_a_pack_are_read_again_until_a_metric_is_found(misnamed: Sandbox) -> None:
    change_metric(misnamed, "  timeout: 1m\n", "  timeout: 1m\n  pack: {trials: 3}\n")
    trained = read_again(misnamed, new="name: pionts")
    lacking = newest_records(misnamed)
    change_metric(misnamed, "name: pionts", "name: points")
    misnamed.retry()
    run(misnamed)

    assert {record.reason for record in lacking} == {"metric-missing"}
    assert starts(misnamed) == trained
    assert [record.status for record in newest_records(misnamed)] == [Status.OK] * 3
