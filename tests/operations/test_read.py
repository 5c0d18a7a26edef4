"""What only reads: log, show, results, status, and the history below them."""

import json
import shutil
from pathlib import Path

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.reports import status
from sweepledger.operations.repository import catalog
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import REMOTE, Mirror, Repository, commits, fetch
from sweepledger.verbs.log import log
from sweepledger.verbs.show import trial_details
from tests.operations.test_collect import leave
from tests.repository import Sandbox, answer, append_to, replace_in


def newest(sandbox: Sandbox) -> StoredBatch:
    return sandbox.batches()[-1]


def recorded(sandbox: Sandbox, volume: Path, xs: str = "1, 2, 3") -> StoredBatch:
    """Ask for a sweep, let every new trial end well, and record it here."""
    sandbox.merged(xs=xs)
    batch = newest(sandbox)
    for index in range(batch.lock.trials):
        leave(volume, batch, index)
    assert sandbox.collect(volume, {batch.name}, push=False)
    return batch


def trial_of(batch: StoredBatch, index: int = 0) -> str:
    return batch.rows[index].trial


@pytest.mark.parametrize("message", ["a\x1eb\x1fc", ":100644 100644 a b M", "two\n:lines", ""])
def test_no_subject_and_no_author_can_break_the_history(sandbox: Sandbox, message: str) -> None:
    author = f"A{message}Z".replace("\n", " ")  # git itself cuts odd characters off the ends
    sandbox.spec()
    sandbox.git("add", "--all")
    sandbox.git(
        *("-c", f"user.name={author}", "commit", "-q", "--allow-empty-message", "--cleanup=verbatim"),
        *("-m", message),
    )
    sandbox.spec(xs="4")
    sandbox.commit("After")

    actual = commits(Repository.find(sandbox.root), "sweeps")

    assert [commit.subject for commit in actual] == [message.replace("\n", " "), "After"]
    assert [commit.author for commit in actual] == [author, "Test"]
    assert [tuple(commit.files) for commit in actual] == [("sweeps/peak.yaml",)] * 2
    assert actual[1].files["sweeps/peak.yaml"] == sandbox.git("rev-parse", "HEAD:sweeps/peak.yaml").strip()


def test_no_file_name_can_break_the_history(sandbox: Sandbox) -> None:
    names = {":100644 100644 a b M", "new\nline", "\n:first", "e" * 40, "\x1e\x1f", 'qu"ote', "ü"}
    for name in names:
        sandbox.write(f"sweeps/{name}", name)
    (sandbox.root / "sweeps/link").symlink_to("new\nline")
    sandbox.commit("Odd names")
    sandbox.spec()
    sandbox.commit("After")

    odd, after = commits(Repository.find(sandbox.root), "sweeps")

    assert set(odd.files) == {f"sweeps/{name}" for name in names}
    assert set(after.files) == {"sweeps/peak.yaml"}


def test_a_persons_git_configuration_changes_nothing_and_a_path_is_no_pattern(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("Ask")
    before = commits(Repository.find(sandbox.root), "sweeps/peak.yaml")
    for setting in ("log.showSignature", "log.follow", "log.showRoot"):
        sandbox.git("config", setting, "true")
    sandbox.git("config", "color.ui", "always")

    assert commits(Repository.find(sandbox.root), "sweeps/peak.yaml") == before
    assert commits(Repository.find(sandbox.root), ":(glob)**") == ()


def test_what_nobody_can_read_is_told_of_and_the_story_goes_on(sandbox: Sandbox, tmp_path: Path) -> None:
    batch = recorded(sandbox, tmp_path / "volume")
    csv = sandbox.root / "results/peak/summary.csv"
    good = csv.read_bytes()
    for content in (b"\xff\xfe", b"no summary\n"):
        csv.write_bytes(content)
        sandbox.commit("Break the summary")
    csv.write_bytes(good)
    name = "peak-b7-0123abcd"
    sandbox.commit("Break a batch", {f"overlays/active/{name}/batch.json": "{not: [a, lock"})

    entries = answer(log, sandbox.workspace)["entries"]

    texts = [entry.text for entry in entries]
    assert any(text.startswith(f"{batch.name}: 3 trials") for text in texts)
    assert sum(text.startswith("summary.csv cannot be read: ") for text in texts) == 2
    assert any(text.startswith(f"{name}: batch.json cannot be read: ") for text in texts)
    assert texts[-1].startswith("3/3 trials ok, best score")


def test_a_name_is_known_if_git_or_the_work_tree_ever_had_it(sandbox: Sandbox) -> None:
    sandbox.merged("gone")
    sandbox.git("rm", "-rq", "sweeps", "overlays")
    sandbox.commit("Forget it")
    sandbox.spec("asked")
    sandbox.write("overlays/active/made-b1-0123abcd/batch.json", "not read")

    entries = {name: answer(log, sandbox.workspace, name)["entries"] for name in ("gone", "asked", "made")}

    assert {name: len(found) for name, found in entries.items()} == {"gone": 2, "asked": 0, "made": 0}
    with pytest.raises(UsageError, match="no sweep 'nope'") as caught:
        answer(log, sandbox.workspace, "nope")
    assert caught.value.hint == "sweeps: asked, gone, made"


def test_a_trial_shows_the_commit_that_asked_for_its_batch(sandbox: Sandbox, tmp_path: Path) -> None:
    first = recorded(sandbox, tmp_path / "volume")
    sandbox.spec(xs="1, 2, 3, 4")
    widened = sandbox.commit("Widen")
    second = recorded(sandbox, tmp_path / "volume", xs="1, 2, 3, 4")
    sandbox.spec(xs="1, 2, 3")
    sandbox.commit("Narrow again")

    shown = dict(trial_details(sandbox.workspace, trial_of(second)).commits)

    assert shown["requested"].id == widened
    assert shown["generated"].subject == "Ask for a sweep"
    assert shown["recorded"].subject.startswith("results(peak)")
    before = dict(trial_details(sandbox.workspace, trial_of(first)).commits)
    assert before["requested"].subject == "Ask for a sweep"
    assert before["requested"].id == before["generated"].id


def copied(sandbox: Sandbox, old: str, new: str) -> str:
    """List a batch's trials a second time, as two branches may, each without the other."""
    source = sandbox.root / "overlays/active" / old
    for path in source.rglob("*"):
        if path.is_file():
            text = path.read_text().replace(old, new)
            sandbox.write(f"overlays/active/{new}/{path.relative_to(source)}", text)
    lock = sandbox.root / f"overlays/active/{new}/batch.json"
    sweep, number = new.rsplit("-", 2)[0], new.rsplit("-", 2)[1][1:]
    replace_in(lock, '"sweep": "peak"', f'"sweep": "{sweep}"')
    replace_in(lock, '"number": 1,', f'"number": {number},')
    return new


def test_a_trial_is_found_in_the_newest_batch_of_one_sweep(sandbox: Sandbox) -> None:
    old = sandbox.merged()
    trial = trial_of(newest(sandbox))
    copied(sandbox, old, "tower-b1-00000000")

    with pytest.raises(UsageError, match="is in several sweeps: peak, tower") as caught:
        catalog.find_trial(sandbox.workspace.root, trial[:6])

    assert caught.value.hint == f"name its sweep: peak/{trial}, tower/{trial}"
    assert catalog.find_trial(sandbox.workspace.root, f"tower/{trial}").batch.name == "tower-b1-00000000"
    copied(sandbox, old, "peak-b10-00000000")
    found = catalog.find_trial(sandbox.workspace.root, f"peak/{trial[:6]}")
    assert found.batch.name == "peak-b10-00000000"
    with pytest.raises(UsageError, match="no trial 'nobody/"):
        catalog.find_trial(sandbox.workspace.root, f"nobody/{trial}")


def test_results_not_yet_pulled_are_named(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume")
    sandbox.git("push", "-q", "origin", "main")
    mirror = Mirror(sandbox.root / ".sweepledger", str(sandbox.remote), "main")
    fetch(mirror.repository, REMOTE, "main")
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    sandbox.git("reset", "-q", "--hard", "HEAD~1")

    done = sandbox.sweep("results", "peak")

    assert (done.returncode, done.stderr) == (0, "")
    assert "`git pull origin main` brings its results here" in done.stdout


def test_only_what_the_collector_would_believe_counts_as_ended(sandbox: Sandbox, tmp_path: Path) -> None:
    spec = sandbox.spec(xs="1, 2, 3, 4")
    append_to(spec, "  retries: 1\n")
    sandbox.publish_batches("Ask")
    batch = newest(sandbox)
    for attempt in (1, 2):
        leave(tmp_path / "results", batch, 0, metrics={"other": 1}, uid=f"other-{attempt}", attempt=attempt)
    leave(tmp_path / "results", batch, 1, code="0" * 40)
    leave(tmp_path / "results", batch, 2)
    leave(tmp_path / "results", batch, 3, status="failed", reason="exit-1", metrics={})

    (tally,) = status.sweep_statuses(sandbox.workspace, state=tmp_path)

    assert tally.counts == {"ok": 1, "failed": 1, "interrupted": 2}


def test_a_batch_that_was_never_pushed_is_planned_and_not_missing(sandbox: Sandbox, tmp_path: Path) -> None:
    first = sandbox.merged()
    sandbox.propose(xs="1, 2, 3, 4, 5")
    for act in (lambda: None, lambda: sandbox.commit("Ask"), sandbox.push):
        act()

        (tally,) = status.sweep_statuses(sandbox.workspace, state=tmp_path)

        assert (tally.trials, tally.counts["planned"], tally.counts["pending"], tally.counts["missing"]) == (
            (5, 0, 5, 0) if act == sandbox.push else (5, 2, 3, 0)
        )
    assert tally.active[0] == first


def test_a_recorded_trial_that_another_batch_lists_is_counted_once(sandbox: Sandbox, tmp_path: Path) -> None:
    batch = recorded(sandbox, tmp_path / "volume")
    source = sandbox.root / "overlays/archive" / batch.name
    source.rename(sandbox.root / "overlays/active" / batch.name)
    copied(sandbox, batch.name, "peak-b2-00000000")
    (sandbox.root / "overlays/active" / batch.name).rename(source)

    (tally,) = status.sweep_statuses(sandbox.workspace, state=tmp_path)

    assert (tally.trials, tally.counts["ok"], tally.counts["planned"]) == (3, 3, 0)


def test_the_index_belongs_to_the_files_it_was_made_from(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume")
    state, index = tmp_path / "state", tmp_path / "state/index/status.json"
    first = status.sweep_statuses(sandbox.workspace, state=state)
    content = json.loads(index.read_text())

    content["sweeps"]["peak"]["counts"] = {"ok": 77}
    index.write_text(json.dumps(content))
    (from_index,) = status.sweep_statuses(sandbox.workspace, state=state)
    summary = sandbox.root / "results/peak/summary.csv"
    summary.write_text(summary.read_text())
    computed = status.sweep_statuses(sandbox.workspace, state=state)
    index.write_text('{"version": "0.1.0", "sweeps": {"peak": ["?"]}}')
    broken = status.sweep_statuses(sandbox.workspace, state=state)
    index.unlink()
    without = status.sweep_statuses(sandbox.workspace, state=state)

    assert from_index.trials == 77, "nothing else was read"
    assert first == computed == broken == without
    assert first[0].trials == 3


def test_the_index_follows_merges_and_local_runs(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.spec()
    sandbox.commit_batches("Ask")
    state = tmp_path / "state"
    (name,) = (path.name for path in (sandbox.root / "overlays/active").iterdir() if path.is_dir())

    planned, again = (status.sweep_statuses(sandbox.workspace, state=state) for _ in range(2))
    sandbox.push()
    pending = status.sweep_statuses(sandbox.workspace, state=state)
    (state / "results" / name / "0").mkdir(parents=True)
    started = status.sweep_statuses(sandbox.workspace, state=state)
    shutil.rmtree(state / "results")
    ended = status.sweep_statuses(sandbox.workspace, state=state)

    assert (state / "index/status.json").is_file()
    assert planned == again
    assert [dict(one[0].counts) for one in (planned, pending, started)] == [
        {"planned": 3},
        {"pending": 3},
        {"interrupted": 1, "pending": 2},
    ]
    assert ended == pending


def test_the_last_entries_of_the_log_are_those_of_the_whole_log(sandbox: Sandbox, tmp_path: Path) -> None:
    for xs in ("1, 2", "1, 2, 3"):
        recorded(sandbox, tmp_path / "volume", xs)

    whole, last = answer(log, sandbox.workspace)["entries"], answer(log, sandbox.workspace, last=2)["entries"]

    assert last == whole[-2:]
    assert [entry.kind for entry in last] == ["batch", "results"]
    assert last[-1].change == 0
    assert answer(log, sandbox.workspace, "peak", last=1)["entries"] == whole[-1:]
