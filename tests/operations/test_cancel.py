import threading
import time
from pathlib import Path

import pytest

from sweepledger.errors import IdleError, RepositoryError, UsageError
from sweepledger.operations.reports import status
from sweepledger.structs.sweep import Sweep
from tests.builders import present
from tests.operations.test_collect import leave
from tests.repository import Sandbox, followed_by


def the_sweep(sandbox: Sandbox) -> Sweep:
    (sweep,) = sandbox.workspace.sweeps(["peak"])
    return sweep


def rows(sandbox: Sandbox) -> dict[str, str]:
    lines = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    return {line.split(",")[2]: line.split(",")[5] for line in lines}


def test_a_cancelled_batch_is_named_in_the_spec_and_moved_unchanged_in_one_commit(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.write("sweepledger.yaml", followed_by("flux"))
    batch = sandbox.merged()
    file = sandbox.root / f"clusters/flux/active/{batch}.yaml"
    assert file.exists()
    listed = sandbox.git("ls-tree", "-r", "HEAD", f"overlays/active/{batch}/").replace("active", "archive")
    kept = [line for line in listed.splitlines() if line.endswith(("/batch.json", "/hyperparams.csv"))]
    sandbox.write("code/train.py", "dirty")

    made = sandbox.cancel()

    assert made.batches == (batch,)
    assert sandbox.git("ls-tree", "-r", "HEAD", f"overlays/archive/{batch}/").splitlines() == kept
    assert sandbox.active() == []
    assert not file.exists()
    assert the_sweep(sandbox).cancel == (batch,)
    assert sandbox.git("log", "-1", "--format=%s").strip() == f"cancel(peak): {batch} (3 trials)"
    assert sandbox.git("status", "--porcelain").split() == ["M", "code/train.py"]
    (tally,) = status.sweep_statuses(sandbox.workspace, "peak", state=tmp_path)
    assert (tally.counts["cancelled"], tally.trials, tally.active) == (3, 3, ())


def test_what_was_cancelled_is_recorded_once_its_jobs_are_gone(sandbox: Sandbox, tmp_path: Path) -> None:
    batch = sandbox.merged()
    (stored,) = sandbox.batches()
    results = tmp_path / "results"
    leave(results, stored, 0)
    leave(results, stored, 1, status="failed", reason="signal-15", metrics={})
    sandbox.cancel(push=True)

    assert sandbox.collect(results) == ()
    assert sandbox.collect(results, {batch}, alive={batch}) == ()
    (commit,) = sandbox.record(results, alive=())
    assert commit.batches == (batch,)
    assert rows(sandbox) == {"0": "ok", "1": "cancelled", "2": "cancelled"}
    assert "1 ok, 0 diverged, 0 failed, 0 missing, 2 cancelled" in sandbox.git("log", "-1", "--format=%b")
    assert "batch-cancelled" in (sandbox.root / "results/peak/README.md").read_text()
    assert sandbox.collect(results, alive=()) == ()


def test_cancelled_trials_stay_cancelled_in_later_results_commits(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    sandbox.cancel(push=True)
    sandbox.record(tmp_path, alive=())
    text = (sandbox.root / "sweeps/peak.yaml").read_text()
    sandbox.write("sweeps/peak.yaml", text.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
    made = sandbox.new_batch()
    sandbox.publish("One more")

    sandbox.record(tmp_path, {made.name}, alive=())
    lines = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    assert [line.split(",")[5] for line in lines] == ["cancelled", "cancelled", "cancelled", "missing"]


def test_replaced_trials_run_again_after_the_results_commit(sandbox: Sandbox, tmp_path: Path) -> None:
    first = sandbox.merged()
    (stored,) = sandbox.batches()
    leave(tmp_path / "results", stored, 0)
    sandbox.cancel(replace=True, push=True)
    assert sandbox.generate()[0].batch is None
    sandbox.record(tmp_path / "results", alive=())

    (made,) = sandbox.generate()

    assert (made.retried, present(made.batch).lock.number, present(made.batch).lock.parent) == (2, 2, first)
    sandbox.publish("Again")
    assert sandbox.generate()[0].batch is None


def test_only_the_named_batch_is_cancelled(sandbox: Sandbox) -> None:
    first = sandbox.merged()
    second = sandbox.merged(xs="1, 2, 3, 4")

    sandbox.cancel(batch=first, replace=True)

    assert sandbox.active() == [second]
    assert [retry.batch for retry in the_sweep(sandbox).retry] == [first]


def test_what_does_not_stand_or_is_over_cannot_be_cancelled(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.spec()
    sandbox.commit("A question")
    with pytest.raises(UsageError, match="peak has no active batch to cancel"):
        sandbox.cancel()
    made = sandbox.new_batch()
    sandbox.commit("generate")
    with pytest.raises(RepositoryError, match=f"{made.name} is committed here and not on main yet"):
        sandbox.cancel(batch=made.name)
    sandbox.push()
    sandbox.cancel(push=True)
    with pytest.raises(IdleError, match="is cancelled already"):
        sandbox.cancel(batch=made.name)
    with pytest.raises(UsageError, match="is cancelled already") as raised:
        sandbox.cancel(replace=True)
    way = f"once it is recorded, `sweep retry peak --batch {made.name}` requests its trials again"
    assert raised.value.hint == way
    sandbox.record(tmp_path, alive=())

    with pytest.raises(UsageError, match="is recorded"):
        sandbox.cancel(batch=made.name)


def test_cancelled_twice_is_nothing_to_do(sandbox: Sandbox) -> None:
    batch = sandbox.merged()

    first = sandbox.sweep("cancel", "peak", "--replace")
    second = sandbox.sweep("cancel", "peak")
    sandbox.push()
    third = sandbox.sweep("cancel", "peak", "--batch", batch)

    assert first.returncode == 0, first.stderr
    assert f"cancelled {batch} (3 trials)" in first.stdout
    assert "sweep generate peak" in first.stdout
    for done, way in ((second, "push it, or open a pull request"), (third, "its results are pending")):
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{batch} is cancelled already: {way}\n")


def test_an_edited_spec_is_not_committed_along(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    sandbox.spec(xs="7")

    with pytest.raises(RepositoryError, match="not committed"):
        sandbox.cancel()

    assert sandbox.active() == [batch]


def test_local_ends_a_batch(sandbox: Sandbox, needs_kustomize: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepledger.operations.cluster_local.POLL_SECONDS", 0.5)
    path = sandbox.root / "code/train.py"
    slow = "import time, argparse\n_first = __import__('sys').argv\n"
    slow += "if '--x=1' not in _first and '1' not in _first: time.sleep(60)\n"
    path.write_text(path.read_text().replace("import argparse", slow + "import argparse", 1))
    sandbox.commit("Slow")
    batch = sandbox.merged()
    state = sandbox.root.parent / "state"

    def cancel_soon() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and not list((state / "results").glob("*/*/*.json")):
            time.sleep(0.1)
        sandbox.cancel(push=True)

    person = threading.Thread(target=cancel_soon)
    person.start()
    names = [type(event).__name__ for event in sandbox.local()]
    person.join()

    sandbox.pull()
    assert "JobPruned" in names
    assert rows(sandbox) == {"0": "ok", "1": "cancelled", "2": "cancelled"}
    assert batch in sandbox.git("log", "-1", "--format=%b")
