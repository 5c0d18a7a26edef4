"""Results are what their records say, and who signed them: from a clone, whatever its history became."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import IdleError, RepositoryError, UsageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.verification.batch_audit import SweepAudit
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.values import blob_id, bytes_digest
from sweepledger.verbs.verify import Verification, VerificationState, verify_results, verify_since
from tests.operations.test_collect import leave
from tests.operations.test_read import newest, recorded
from tests.repo.test_signatures import key, line, signed_commit
from tests.repository import Sandbox


@pytest.fixture
def batch(sandbox: Sandbox, tmp_path: Path) -> StoredBatch:
    return recorded(sandbox, tmp_path / "volume")


def differing_cells(verification: Verification) -> set[tuple[str, str, str]]:
    """Give file, row and column of all that differs."""
    return {
        (difference.path, difference.row, difference.column)
        for sweep in verification.sweeps
        for difference in sweep.differences
    }


def edit(sandbox: Sandbox, path: str, old: str, new: str) -> None:
    """Replace a text once."""
    text = (sandbox.root / path).read_text()
    assert old in text
    sandbox.write(path, text.replace(old, new, 1))


def test_a_deleted_results_tree_is_rebuilt(sandbox: Sandbox, batch: StoredBatch) -> None:
    commit = sandbox.head()
    lay = {
        path.relative_to(sandbox.root / "results/peak").as_posix(): path.read_bytes()
        for path in (sandbox.root / "results/peak").rglob("*")
        if path.is_file()
    }
    shutil.rmtree(sandbox.root / "results")
    sandbox.commit("Lose them")

    assert dict(SweepAudit(sandbox.workspace.repository, commit, "peak").rebuilt_files().files) == lay


def test_an_edited_cell_is_named(sandbox: Sandbox, batch: StoredBatch) -> None:
    good = sandbox.sweep("verify")
    edit(sandbox, "results/peak/summary.csv", ",0.5,1.5,", ",0.75,1.5,")
    in_work_tree = sandbox.sweep("verify", "peak")
    sandbox.commit("Improve it")

    verification = sandbox.verify()

    cell = ("results/peak/summary.csv", batch.rows[1].trial, "metrics.score")
    assert differing_cells(verification) == {cell}
    assert not verification.is_good
    assert (good.returncode, in_work_tree.returncode) == (0, 5)
    assert "no signers are listed" in good.stdout
    assert f"{': '.join(cell)}: must be '0.5' as it is committed, got '0.75'" in in_work_tree.stdout


def test_a_summary_of_before_a_column_existed_is_verified_all_the_same(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.merged(xs="1, 2")
    batch, message = sandbox.batch(), "ValueError: x"
    leave(tmp_path, batch, 0, status="failed", reason="exit-1", details={"error": message})
    leave(tmp_path, batch, 1)
    assert sandbox.collect(tmp_path, {batch.name}, push=False)
    edit(sandbox, "results/peak/summary.csv", ",error\n", "\n")
    edit(sandbox, "results/peak/summary.csv", f',"{message}"\n', "\n")
    text = (sandbox.root / "results/peak/summary.csv").read_text()
    sandbox.write("results/peak/summary.csv", text.replace(",\n", "\n"))
    sandbox.commit("Write it as an earlier version did")

    assert sandbox.verify().is_good


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"uid":"uid-0"', '"uid":"uid-9"', ("TRIAL", "uid")),
        ("CODE", "0" * 40, ("TRIAL", "code")),
        ('{"attempt"', '{"attempt', ("line 2", "")),
    ],
    ids=["a member that no summary shows", "other code", "cannot be read"],
)
def test_a_forged_record_is_named(
    sandbox: Sandbox, batch: StoredBatch, old: str, new: str, place: tuple[str, str]
) -> None:
    path = f"results/peak/records/{batch.name}.jsonl"
    edit(sandbox, path, old.replace("CODE", batch.lock.program.code.tree), new)
    sandbox.commit("Forge it")

    row, column = place
    trial = row.replace("TRIAL", batch.rows[0].trial)
    assert (path, trial, column) in differing_cells(sandbox.verify())


def test_files_that_came_or_went_are_named(sandbox: Sandbox, batch: StoredBatch) -> None:
    figures = sorted((sandbox.root / "results/peak").rglob("*.svg"))
    figure = figures[0].relative_to(sandbox.root).as_posix()
    (sandbox.root / figure).unlink()
    sandbox.write("results/peak/extra.csv", "a\n")
    (sandbox.root / "results/peak/link").symlink_to("extra.csv")
    sandbox.commit("Come and go")

    results = differing_cells(sandbox.verify())

    assert results == {(path, "", "") for path in (figure, "results/peak/extra.csv", "results/peak/link")}


def test_a_lock_with_fitting_digests_is_refused(sandbox: Sandbox, batch: StoredBatch) -> None:
    path = f"overlays/archive/{batch.name}/batch.json"
    content = newest(sandbox).tree["job.yaml"].replace(b"parallelism: 2", b"parallelism: 3")
    forged = sandbox.write("forged", content.decode())
    sandbox.git("hash-object", "-w", str(forged))
    forged.unlink()
    edit(sandbox, path, batch.lock.files["job.yaml"], bytes_digest(content))
    edit(sandbox, path, batch.lock.blobs["job.yaml"], blob_id(content))
    sandbox.commit("Make it fit")

    assert path in {item for item, _, _ in differing_cells(sandbox.verify())}


@pytest.mark.parametrize("folder", ["results", "overlays/archive/{}"])
def test_what_is_gone_is_missed(sandbox: Sandbox, batch: StoredBatch, folder: str) -> None:
    shutil.rmtree(sandbox.root / folder.format(batch.name))
    sandbox.commit("Forget all")

    (verified,) = sandbox.verify().sweeps
    assert verified.state is VerificationState.DIFFERS
    missing = {item.path for item in verified.differences if item.message.endswith("and is missing")}
    assert [path for path in missing if (sandbox.root / path).is_file()] == []


def test_results_that_a_listed_key_signed_are_verified(sandbox: Sandbox, tmp_path: Path) -> None:
    listed, foreign = key(tmp_path, "listed"), key(tmp_path, "foreign")
    sandbox.publish("List a key", {"sweepledger.yaml": f"version: 1\nsigners: ['{line(listed)}']\n"})
    recorded(sandbox, tmp_path / "volume")
    sandbox.git("reset", "-q", "--soft", "HEAD~1")
    signed_commit(sandbox, listed, "Record it")
    assert [sweep.state for sweep in sandbox.verify().sweeps] == [VerificationState.VERIFIED]

    sandbox.git("reset", "-q", "--soft", "HEAD~1")
    signed_commit(sandbox, foreign, "Record it again")
    verification = sandbox.verify()

    assert [sweep.state for sweep in verification.sweeps] == [VerificationState.UNSIGNED]
    assert not verification.is_good
    theirs = tmp_path / "theirs"
    theirs.write_text(f"# whom I know\n{line(foreign)}\n")
    assert sandbox.verify(signers=theirs).is_good


def test_what_there_is_not_cannot_be_verified(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("Ask")

    assert sandbox.verify().sweeps == ()
    with pytest.raises(IdleError, match="nothing is recorded of 'peak'"):
        sandbox.verify("peak")
    with pytest.raises(UsageError, match="no sweep 'other'"):
        sandbox.verify("other")
    with pytest.raises(UsageError, match="is not a commit"):
        sandbox.verify(revision="nowhere")
    with pytest.raises(RepositoryError, match="no archived batch of peak has records"):
        SweepAudit(sandbox.workspace.repository, sandbox.head(), "peak").rebuilt_files()


def test_a_shallow_clone_is_refused(sandbox: Sandbox, batch: StoredBatch, tmp_path: Path) -> None:
    folder = tmp_path / "shallow"
    clone = ["git", "clone", "-q", "--depth=1", sandbox.root.as_uri(), str(folder)]
    subprocess.run(clone, check=True)

    with pytest.raises(RepositoryError, match="this clone is shallow") as refused:
        verify_results(Workspace.find(folder))

    assert refused.value.hint == "run `git fetch --unshallow`"
    subprocess.run(["git", "fetch", "-q", "--unshallow"], cwd=folder, check=True)
    assert [checked.sweep for checked in verify_results(Workspace.find(folder)).sweeps] == ["peak"]


def since(sandbox: Sandbox, revision: str) -> tuple[set[str], set[str], set[str]]:
    """Give the sweeps that were looked at, what strays, and what else differs."""
    verification = verify_since(sandbox.workspace, revision)
    differ = {difference.path for sweep in verification.sweeps for difference in sweep.differences}
    return (
        {item.sweep for item in verification.sweeps},
        {difference.path for difference in verification.stray},
        differ,
    )


def test_a_results_commit_of_the_collector_keeps_to_its_places(sandbox: Sandbox, batch: StoredBatch) -> None:
    verification = verify_since(sandbox.workspace, "HEAD^")

    assert verification.is_good
    assert [(sweep.sweep, sweep.trials, sweep.state) for sweep in verification.sweeps] == [
        ("peak", 3, VerificationState.UNSIGNED)
    ]
    sandbox.commit("Say hello", {"README.md": "hello\n"})
    assert since(sandbox, "HEAD^") == (set(), set(), set()), "a commit without results is not looked at"
    with pytest.raises(UsageError, match="'nowhere' is not a commit"):
        verify_since(sandbox.workspace, "nowhere")


def test_a_commit_that_touches_more_is_refused(sandbox: Sandbox, batch: StoredBatch) -> None:
    others = {
        "base/trial/v1/job.yaml",
        "sweeps/peak.yaml",
        "sweepledger.yaml",
        ".github/workflows/check.yaml",
        "overlays/active/peak-b9-00000000/job.yaml",
        "overlays/active/other-b1-00000000/job.yaml",
        "overlays/archive/peak-b9-00000000/job.yaml",
        "clusters/flux/active/peak-b9-00000000.yaml",
        "clusters/other.yaml",
    }
    for path in others:
        sandbox.write(path, "version: 1\n# and more\n")
    sandbox.amend()

    _, stray, _ = since(sandbox, "HEAD^")

    assert stray == others


def test_a_commit_that_records_two_sweeps_is_refused(sandbox: Sandbox, batch: StoredBatch) -> None:
    sandbox.write("results/other/summary.csv", "trial\n")
    sandbox.amend()

    assert since(sandbox, "HEAD^")[1] == {"results"}


def test_a_row_that_was_made_up_is_named(sandbox: Sandbox, batch: StoredBatch) -> None:
    summary = sandbox.root / "results/peak/summary.csv"
    summary.write_text(summary.read_text().replace(",ok,", ",failed,", 1))
    sandbox.commit("results(peak): better")

    looked, stray, differ = since(sandbox, "HEAD^")

    assert (looked, stray, differ) == ({"peak"}, set(), {"results/peak/summary.csv"})
