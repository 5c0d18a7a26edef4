from pathlib import Path

import pytest
from msgspec.structs import replace

from sweepledger.engine.local import store
from sweepledger.engine.local.events import JobCondition
from sweepledger.engine.local.job_controller import JobState
from sweepledger.errors import StorageError

ENTRY = JobState(digest="d", created=1.5)


def test_saved_jobs_are_loaded(tmp_path: Path) -> None:
    assert (store.load_jobs(tmp_path), store.batch_conditions(tmp_path)) == ({}, {})
    jobs = {"one": ENTRY, "two": replace(ENTRY, condition=JobCondition.FAILED, reason="why")}

    store.save_jobs(tmp_path, jobs)

    assert store.load_jobs(tmp_path) == jobs
    assert store.batch_conditions(tmp_path) == {"one": None, "two": JobCondition.FAILED}
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_state_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")

    with pytest.raises(StorageError, match="file: file exists"):
        store.save_jobs(tmp_path / "file", {})

    assert (tmp_path / "file").read_text() == "a file"
