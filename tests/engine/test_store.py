from dataclasses import replace
from pathlib import Path

import pytest

from generator.engine.local import store
from generator.engine.local.observed import Condition
from generator.engine.local.store import JobEntry
from generator.errors import StorageError

ENTRY = JobEntry(uid="u", batch="b", digest="d", created=1.5)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    jobs = {"one": ENTRY, "two": replace(ENTRY, condition=Condition.FAILED, reason="why")}

    store.save(tmp_path, jobs)

    assert store.load(tmp_path) == jobs
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_folder_without_state_holds_no_jobs(tmp_path: Path) -> None:
    assert store.load(tmp_path) == {}
    assert store.conditions(tmp_path) == {}


@pytest.mark.parametrize(
    ("found", "together"),
    [
        ((Condition.COMPLETE, Condition.COMPLETE), Condition.COMPLETE),
        ((Condition.COMPLETE, Condition.FAILED), Condition.FAILED),
        ((Condition.FAILED, None), None),
    ],
)
def test_a_batch_has_ended_when_all_its_jobs_have(
    tmp_path: Path, found: tuple[Condition | None, ...], together: Condition | None
) -> None:
    store.save(tmp_path, {str(number): replace(ENTRY, condition=one) for number, one in enumerate(found)})

    assert store.conditions(tmp_path) == {"b": together}


@pytest.mark.parametrize("text", ["", "[]", '{"jobs": {"a": {}}}', '{"jobs": {"a": 1}}'])
def test_a_state_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)

    with pytest.raises(StorageError, match=r"state\.json is damaged"):
        store.load(tmp_path)


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")

    with pytest.raises(StorageError, match="file/below cannot be written"):
        store.write(tmp_path / "file" / "below", "text")

    assert (tmp_path / "file").read_text() == "a file"
