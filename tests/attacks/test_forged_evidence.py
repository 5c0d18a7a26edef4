"""Evidence and records that claim to belong to a trial which they do not belong to."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import evidence_jsonl
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.repo.batches import in_work_tree
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.results.outcomes import evaluate
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox, append_to

HEADER = {"digest": "sha256:" + "0" * 64, "foreign": True, "format": "csv", "source": "a.csv", "version": 1}
TRIAL: dict[str, Any] = {"configuration": {"x": 1}, "metrics": {"score": 0.5}, "status": "ok"}
FORGED: dict[str, Any] = {
    "with the id of a trial": {**TRIAL, "trial": "t0123456789a"},
    "with a round": {**TRIAL, "round": 1},
    "of a batch": {**TRIAL, "batch": "peak-b1-00000000"},
    "with a parent": {**TRIAL, "parent": "t0123456789a"},
    "without metrics": {"configuration": {}, "status": "ok"},
    "that was cancelled here": {**TRIAL, "status": "cancelled"},
    "with a text as metric": {**TRIAL, "metrics": {"score": "0.5"}},
    "with true as metric": {**TRIAL, "metrics": {"score": True}},
    "with an object as value": {**TRIAL, "configuration": {"x": {"y": 1}}},
    "with lists as metrics": {**TRIAL, "metrics": [["score", 0.5]]},
    "that is a list": [TRIAL],
}


def evidence(*trials: object) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in (HEADER, *trials)).encode()


@pytest.mark.parametrize("forged", FORGED)
def test_foreign_evidence_names_no_trial_round_or_batch_of_the_repository(forged: str) -> None:
    assert len(evidence_jsonl.read(evidence(TRIAL)).trials) == 1

    with pytest.raises(ValueError, match="line 3"):
        evidence_jsonl.read(evidence(TRIAL, FORGED[forged]))


@pytest.mark.parametrize("header", [{"foreign": False}, {"version": 2}, {"digest": 5}, {"round": 1}])
def test_a_file_that_does_not_say_that_it_is_foreign_is_refused(header: dict[str, object]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in ({**HEADER, **header}, TRIAL))

    with pytest.raises(ValueError, match="line 1"):
        evidence_jsonl.read(text.encode())


def test_a_record_of_another_batch_or_another_trial_is_not_used(sandbox: Sandbox, tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = sandbox.merged()
    (earlier,) = in_work_tree(sandbox.root)
    sandbox.propose(xs="1, 2, 3, 4, 5, 6")
    (batch,) = (one for one in in_work_tree(sandbox.root) if one.name != first)
    own = leave(results, batch, 0)
    other = leave(results, earlier, 1)
    for index, record in ((1, other), (2, own)):
        folder = results / batch.name / str(index)
        folder.mkdir(parents=True)
        shutil.copy(record, folder / "uid-9.json")

    read = BatchAttempts.read(VolumeResults(results), batch)

    outcomes = evaluate(read.results).outcomes
    assert [str(one.status) for one in outcomes[:3]] == ["ok", "missing", "missing"]
    assert all(one.record is None for one in outcomes[1:])


LOCK = "filelock==3.0.0 --hash=sha256:" + "1" * 64 + "\n"


def test_a_lock_file_of_the_environment_that_is_swapped_after_the_review_is_refused(sandbox: Sandbox) -> None:
    append_to(sandbox.spec(), "  environment_lock: code/requirements.txt\n")
    lock = sandbox.write("code/requirements.txt", LOCK)
    sandbox.commit("Lock the environment")
    sandbox.commit_batches("Ask for a sweep")
    assert sandbox.codes(base="origin/main") == set()
    folder = sandbox.root / "overlays/active" / stored(sandbox).name

    lock.write_text(LOCK.replace("3.0.0", "6.6.6"))
    sandbox.commit("Bump a library")
    assert sandbox.codes(base="origin/main") & {"program-not-shown", "code-unreachable", "drift"}

    lock.write_text(LOCK)
    sandbox.commit("Restore it")
    assert sandbox.codes(base="origin/main") == set()
    text = (folder / "batch.json").read_text()
    digest = text.split("requirements.txt")[1].split("sha256:")[1][:64]
    (folder / "batch.json").write_text(text.replace(digest, "2" * 64))
    sandbox.commit("Name another lock file")
    assert sandbox.codes(base="origin/main") & {"batch-forged", "drift"}
