"""`sweep cluster expire` on real folders and a real remote: whatever is missing of git, time or calm, all stays."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sweepledger.errors import IdleError, RepositoryError, SpecError, StorageError
from sweepledger.formats import records_jsonl
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.git import Repository
from sweepledger.repo.results_volume import VolumeRoot
from sweepledger.structs.names import DELETING_PREFIX
from sweepledger.structs.record import Record, Status
from sweepledger.verbs.cluster.expire import DAY, Expired, FolderState, expire_batches
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox, replace_in

KEEP = 30
LATER = (KEEP + 10) * DAY
"""So long after the tests, everything is old enough."""


def ended(sandbox: Sandbox, results: Path) -> None:
    """Merge a sweep whose results expire, and let its trials end."""
    sandbox.write("sweepledger.yaml", f"version: 1\nresults: {{keep: {KEEP}d}}\n")
    sandbox.merged()
    for index in range(3):
        leave(results, stored(sandbox), index)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made = tmp_path / "volume"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sandbox, Path]:
    """A sweep whose results are on main, and whose folder is still on the volume."""
    results = tmp_path_factory.mktemp("volume")
    sandbox = Sandbox.create(tmp_path_factory.mktemp("recorded"))
    ended(sandbox, results)
    assert sandbox.record(results)
    return sandbox, results


@pytest.fixture
def recorded(sandbox: Sandbox, results: Path, pristine: tuple[Sandbox, Path]) -> Sandbox:
    """A copy of that repository and its volume."""
    repository, volume = pristine
    sandbox.copy_from(repository)
    shutil.copytree(volume, results, dirs_exist_ok=True)
    return sandbox


def batch(sandbox: Sandbox) -> str:
    return stored(sandbox).name


def expired(
    sandbox: Sandbox, results: Path, *, now: float | None = None, dry_run: bool = False, **more: Path
) -> Expired:
    at = time.time() + LATER if now is None else now
    return expire_batches(
        sandbox.workspace, {"results": results, **more}, remote="origin", now=at, dry_run=dry_run
    )


def fate(result: Expired) -> tuple[FolderState, str]:
    (expiry,) = result.batches
    return expiry.state, expiry.reason or ""


def aged(folder: Path, when: float) -> None:
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (when, when), follow_symlinks=False)


def test_what_git_has_held_for_long_is_deleted_and_nothing_else(recorded: Sandbox, results: Path) -> None:
    name = batch(recorded)
    (results / "lost+found").mkdir()
    (results / "notes.txt").write_text("mine")
    before = recorded.git("rev-parse", "origin/main")

    announced = expired(recorded, results, dry_run=True)
    assert len(list((results / name).glob("*/*.json"))) == 3

    result = expired(recorded, results)

    assert fate(announced) == fate(result) == (FolderState.EXPIRED, "")
    assert result.batches[0].batch == name
    assert sorted(path.name for path in results.iterdir()) == ["lost+found", "notes.txt"]
    assert result.unknown == (str(results / "lost+found"), str(results / "notes.txt"))
    recorded.git("fetch", "-q")
    assert recorded.git("rev-parse", "origin/main") == before


def without_archive(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.root / "overlays/archive" / batch(sandbox))


def without_records(sandbox: Sandbox) -> None:
    (sandbox.root / f"results/peak/records/{batch(sandbox)}.jsonl").unlink()


def active_again(sandbox: Sandbox) -> None:
    name = batch(sandbox)
    shutil.copytree(sandbox.root / "overlays/archive" / name, sandbox.root / "overlays/active" / name)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without_archive, "overlays/archive/"),
        (without_records, "is not on the branch"),
        (active_again, "overlays/archive/"),
    ],
)
def test_what_the_branch_does_not_hold_is_kept(
    change: Callable[[Sandbox], None], says: str, recorded: Sandbox, results: Path
) -> None:
    change(recorded)
    recorded.publish("Take it away")

    state, why = fate(expired(recorded, results))

    assert state is FolderState.KEPT
    assert says in why
    assert len(list(results.glob("*/*/*.json"))) == 3


def test_the_remote_decides_and_not_the_work_tree(sandbox: Sandbox, results: Path) -> None:
    ended(sandbox, results)
    sandbox.collect(results, push=False)
    assert (sandbox.root / "overlays/archive" / batch(sandbox)).is_dir()

    state, why = fate(expired(sandbox, results))

    assert (state, "overlays/archive/" in why) == (FolderState.KEPT, True)


def test_no_settings_but_readable_ones_of_the_branch_of_the_cluster_delete(
    recorded: Sandbox, results: Path
) -> None:
    workspace = recorded.workspace
    recorded.git("push", "-q", "origin", "main:results/peak/one")
    recorded.write("sweepledger.yaml", "version: 1\nbranch: results/peak/one\n")
    with pytest.raises(RepositoryError, match="not the branch that the cluster follows"):
        expired(recorded, results)

    recorded.write("sweepledger.yaml", "version: 1\nresults: {keep: 1d}\n")
    early = expired(recorded, results, now=time.time() + 5 * DAY)
    assert (early.keep_days, fate(early)[0]) == (KEEP, FolderState.KEPT), "the work tree does not count"

    recorded.publish("Keep for ever", {"sweepledger.yaml": "version: 1\n"})
    with pytest.raises(IdleError, match=r"results\.keep"):
        expired(recorded, results)

    recorded.publish("Break", {"sweepledger.yaml": "version: 1\nresults: {keep: soon}\n"})
    with pytest.raises(SpecError):
        expire_batches(workspace, {"results": results}, remote="origin", now=time.time() + LATER)
    assert len(list(results.glob("*/*/*.json"))) == 3


def test_a_record_with_a_cause_of_the_cluster_is_in_git(recorded: Sandbox, results: Path) -> None:
    path = next(results.glob("*/0/*.json"))
    left = {**json.loads(path.read_text()), "status": "failed", "reason": "signal-9"}
    path.write_text(json.dumps(left))
    kept = recorded.root / f"results/peak/records/{batch(recorded)}.jsonl"
    records = [record for record in records_jsonl.records(kept.read_bytes()) if isinstance(record, Record)]
    (content,) = records_jsonl.write(
        replace(record, status=Status.FAILED, reason="oom") if record.uid == left["uid"] else record
        for record in records
    )
    kept.write_bytes(content)
    recorded.publish("As the collector would have")

    assert fate(expired(recorded, results)) == (FolderState.EXPIRED, "")


def test_the_merge_tells_the_age(recorded: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.git("reset", "-q", "--hard", "HEAD^")
    recorded.git("push", "-q", "--force", "origin", "main")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
    commit_results(replace(recorded.target(), is_reviewed=True), on_volume(results), ())
    recorded.git("fetch", "-q")
    (proposed,) = recorded.git("branch", "-r", "--list", "origin/results/*").split()
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    recorded.git("merge", "-q", "--no-ff", "-m", "Merge the results", proposed)
    recorded.push()
    aged(results / batch(recorded), time.time() - LATER)

    assert fate(expired(recorded, results, now=time.time()))[0] is FolderState.KEPT
    assert fate(expired(recorded, results))[0] is FolderState.EXPIRED


@pytest.mark.parametrize("when", [-DAY, 10**6 * DAY], ids=["yesterday", "no calendar"])
def test_a_folder_that_was_written_to_is_kept(when: float, recorded: Sandbox, results: Path) -> None:
    now = time.time() + LATER
    path = leave(results, stored(recorded), 1)
    os.utime(path, (now + when, now + when))

    state, why = fate(expired(recorded, results, now=now))

    assert (state, "was written" in why) == (FolderState.KEPT, True)
    assert path.is_file()


def test_a_wrong_clock_is_outvoted(sandbox: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(sandbox, results)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
    sandbox.record(results)

    assert fate(expired(sandbox, results, now=time.time()))[0] is FolderState.KEPT


def test_a_record_that_git_lacks_stops_the_deletion_if_the_collector_would_take_it(
    recorded: Sandbox, results: Path
) -> None:
    leave(results, stored(recorded), 1, uid="foreign", row="0" * 64)
    (results / batch(recorded) / "1/broken.json").write_text("{")
    assert fate(expired(recorded, results, dry_run=True))[0] is FolderState.EXPIRED
    late = leave(results, stored(recorded), 1, uid="late", attempt=2)

    state, why = fate(expired(recorded, results))

    assert state is FolderState.LATE
    assert why.startswith("1 record(s)")
    assert late.is_file()


def test_records_beyond_the_bounds_of_a_trial_do_not_stop_it(sandbox: Sandbox, results: Path) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\nresults: {{keep: {KEEP}d}}\n")
    sandbox.merged()
    for number in range(250):
        leave(results, stored(sandbox), 0, uid=f"uid-{number:03}", details={"padding": "x" * 8_000})
    for index in (1, 2):
        leave(results, stored(sandbox), index)
    assert sandbox.record(results)

    assert fate(expired(sandbox, results))[0] is FolderState.EXPIRED


def test_a_late_file_is_kept(recorded: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    move = VolumeRoot.move

    def moved(shelf: VolumeRoot, name: str, to: str) -> None:
        move(shelf, name, to)
        if to.startswith(
            DELETING_PREFIX
        ):  # a pod that had its folder open writes into it, wherever it is by now
            late = leave(results, stored(recorded), 1, uid="late", attempt=2)
            late.rename(results / to / "1/late.json")
            shutil.rmtree(results / batch(recorded))

    monkeypatch.setattr(VolumeRoot, "move", moved)

    assert fate(expired(recorded, results, now=time.time() + LATER))[0] is FolderState.LATE
    assert (results / batch(recorded) / "1/late.json").is_file()
    assert not (results / f"{DELETING_PREFIX}{batch(recorded)}").exists()


def test_a_run_that_died_is_ended_by_the_next_one(recorded: Sandbox, results: Path) -> None:
    name = batch(recorded)
    script = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from sweepledger.verbs.cluster.expire import expire_batches\n"
        "from sweepledger.operations.repository.workspace import Workspace\n"
        "unlink, seen = os.unlink, []\n"
        "def dying(path, **options):\n"
        "    unlink(path, **options)\n"
        "    if str(path).endswith('.json'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.unlink = dying\n"
        "expire_batches(Workspace.find(Path(sys.argv[1])), {'results': Path(sys.argv[2])}, remote='origin',"
        " now=float(sys.argv[3]))\n"
    )
    now = time.time() + LATER

    died = subprocess.run(
        [sys.executable, "-c", script, recorded.root, results, str(now)],
        cwd=Path(__file__).parents[2],
        check=False,
    )

    assert died.returncode == -9
    assert [path.name for path in results.iterdir()] == [f"{DELETING_PREFIX}{name}"]
    assert len(list(results.glob("*/*/*.json"))) == 2
    assert fate(expired(recorded, results, now=now)) == (FolderState.EXPIRED, "")
    assert list(results.iterdir()) == []


def test_links_are_removed_and_never_followed(recorded: Sandbox, results: Path, tmp_path: Path) -> None:
    name, precious = batch(recorded), tmp_path / "precious"
    (precious / "0").mkdir(parents=True)
    (precious / "0/kept.json").write_text("{}")
    (results / name / "0/out").symlink_to(precious)
    (results / name / "1/file").symlink_to(precious / "0/kept.json")
    (results / name / "7").symlink_to(precious, target_is_directory=True)

    assert fate(expired(recorded, results))[0] is FolderState.EXPIRED
    assert (precious / "0/kept.json").read_text() == "{}"
    assert not (results / name).exists()


def test_a_link_in_the_place_of_a_batch_is_unknown(recorded: Sandbox, results: Path, tmp_path: Path) -> None:
    name, precious = batch(recorded), tmp_path / "precious"
    (results / name).rename(precious)
    (results / name).symlink_to(precious)

    result = expired(recorded, results)

    assert (result.batches, result.unknown) == ((), (str(results / name),))
    assert len(list(precious.glob("*/*.json"))) == 3


def test_other_volumes_follow_the_results_and_keep_them_while_they_are_young(
    recorded: Sandbox, results: Path, tmp_path: Path
) -> None:
    now, checkpoints = time.time() + LATER, tmp_path / "checkpoints"
    kept = checkpoints / batch(recorded) / "0/epoch-1"
    kept.mkdir(parents=True)
    late = leave(results, stored(recorded), 1, uid="late", attempt=2)
    assert fate(expired(recorded, results, checkpoints=checkpoints))[0] is FolderState.LATE
    late.unlink()
    aged(kept, now)
    assert fate(expired(recorded, results, now=now, checkpoints=checkpoints))[0] is FolderState.KEPT
    aged(checkpoints, time.time())
    with pytest.raises(StorageError, match="no such file"):
        expired(recorded, results, checkpoints=tmp_path / "nowhere")
    assert kept.is_dir()

    result = expired(recorded, results, checkpoints=checkpoints, artifacts=results)

    assert result.batches[0].volumes == ("checkpoints", "results")
    assert list(checkpoints.iterdir()) == list(results.iterdir()) == []


def test_folders_nested_without_end_are_left_and_told(recorded: Sandbox, results: Path) -> None:
    deep = results / batch(recorded) / "0" / "/".join("d" * 100)
    deep.mkdir(parents=True)

    state, why = fate(expired(recorded, results))

    assert (state, "nested deeper" in why) == (FolderState.FAILED, True)
    assert deep.is_dir()


def test_a_shallow_clone_reads_ages_in_records(recorded: Sandbox, results: Path, tmp_path: Path) -> None:
    clone = tmp_path / "shallow"
    url = f"file://{recorded.remote}"
    subprocess.run(["git", "clone", "-q", "--depth=1", url, str(clone)], check=True)
    workspace = Workspace(Repository(clone), recorded.workspace.settings)

    finished = datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC).timestamp()
    aged(results / batch(recorded), finished)

    early = expire_batches(workspace, {"results": results}, remote="origin", now=finished + KEEP * DAY - 1)

    assert fate(early) == (FolderState.KEPT, "its records came to the branch at 2026-01-01 00:00 UTC")
    assert len(list(results.glob("*/*/*.json"))) == 3

    late = expire_batches(workspace, {"results": results}, remote="origin", now=finished + KEEP * DAY + 1)

    assert fate(late)[0] is FolderState.EXPIRED


def swept(sandbox: Sandbox, *arguments: object) -> subprocess.CompletedProcess[str]:
    return sandbox.sweep("cluster", "expire", *map(str, arguments))


def test_as_a_command_it_says_what_it_keeps_and_does_not_know(recorded: Sandbox, results: Path) -> None:
    (results / "notes").mkdir()

    completed = swept(recorded, "--results", results)

    assert completed.returncode == 0
    assert f"kept: {batch(recorded)}: its records came to the branch" in completed.stdout
    assert f"unknown: {results / 'notes'}" in completed.stdout
    assert "deleted the folders of 0 of 1 batch(es)" in completed.stdout


def test_the_exit_codes(sandbox: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(sandbox, results)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
    sandbox.record(results)
    late = leave(results, stored(sandbox), 1, uid="late", attempt=2)
    aged(results / batch(sandbox), time.time() - LATER)

    completed = swept(sandbox, "--results", results)

    expected = (5, True, True)
    assert (completed.returncode, "late: " in completed.stdout, "hint: " in completed.stdout) == expected

    late.unlink()
    (results / batch(sandbox) / "0" / "/".join("d" * 100)).mkdir(parents=True)
    assert swept(sandbox, "--results", results).returncode == 3

    shutil.rmtree(results / batch(sandbox) / "0")
    aged(results / batch(sandbox), time.time() - LATER)
    completed = swept(sandbox, "--results", results)
    assert (completed.returncode, f"deleted: {batch(sandbox)} (results)" in completed.stdout) == (0, True)
    assert list(results.iterdir()) == []


def test_what_running_trials_may_resume_from_stays(recorded: Sandbox, results: Path) -> None:
    later = recorded.merged(xs="1, 2, 3, 4")
    replace_in(
        recorded.root / "overlays/active" / later / "batch.json",
        '"generator"',
        '"parents": {"0": "t00000000000"},\n "generator"',
    )
    recorded.publish("Go on from checkpoints")

    state, says = fate(expired(recorded, results))

    assert (state, says) == (
        FolderState.KEPT,
        "trials of its sweep that are under way may go on from its checkpoints",
    )
