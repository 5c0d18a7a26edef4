"""What only reads: log, show, results, status, and the history below them."""

import json
import shutil
import subprocess
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
from tests.repository import Sandbox, answer, replace_in


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


@pytest.mark.parametrize(
    "message", ["a\x1eb\x1fc", "\x1e\x1f\x1e", ":100644 100644 a b M", "e" * 40, "two\n:lines", ""]
)
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


def test_bytes_that_are_no_text_are_shown_as_such(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("Ask")
    raw = sandbox.git("cat-file", "commit", "HEAD").encode().replace(b"\n\nAsk", b"\n\ncaf\xe9")
    made = subprocess.run(  # `git commit` itself would mend it
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=sandbox.root,
        input=raw,
        capture_output=True,
        check=True,
    )
    sandbox.git("reset", "-q", "--hard", made.stdout.decode().strip())

    (commit,) = commits(Repository.find(sandbox.root), "sweeps")

    assert commit.subject == "caf\ufffd"


def test_a_persons_git_configuration_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("Ask")
    before = commits(Repository.find(sandbox.root), "sweeps/peak.yaml")
    for setting in ("log.showSignature", "log.follow", "log.showRoot"):
        sandbox.git("config", setting, "true")
    sandbox.git("config", "color.ui", "always")

    assert commits(Repository.find(sandbox.root), "sweeps/peak.yaml") == before


def test_a_path_is_a_name_and_never_a_pattern(sandbox: Sandbox) -> None:
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


def test_names_with_line_ends_do_not_end_the_log(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.commit("Odd names", {"results/a\nb/summary.csv": "x", "sweeps/c\nd.yaml": "x"})

    assert {entry.sweep for entry in answer(log, sandbox.workspace)["entries"]} == {"peak"}


@pytest.mark.parametrize("where", ["history", "spec", "batch", "nowhere"])
def test_a_name_is_known_if_git_or_the_work_tree_ever_had_it(sandbox: Sandbox, where: str) -> None:
    sandbox.merged("gone")
    sandbox.git("rm", "-rq", "sweeps", "overlays")
    sandbox.commit("Forget it")
    sandbox.spec("asked")
    copied_lock = "overlays/active/made-b1-0123abcd/batch.json"
    sandbox.write(copied_lock, "not read")
    name = {"history": "gone", "spec": "asked", "batch": "made", "nowhere": "nope"}[where]

    if where == "nowhere":
        with pytest.raises(UsageError, match="no sweep 'nope'") as caught:
            answer(log, sandbox.workspace, name)
        assert caught.value.hint == "sweeps: asked, gone, made"
    else:
        result = answer(log, sandbox.workspace, name)["entries"]
        assert len(result) == (2 if where == "history" else 0)


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


def test_without_the_very_spec_the_last_one_before_the_batch_is_shown(sandbox: Sandbox) -> None:
    sandbox.spec(xs="1")
    sandbox.commit("Older")
    name = sandbox.merged()
    replace_in(
        sandbox.root / f"overlays/active/{name}/batch.json",
        newest(sandbox).lock.spec.digest,
        "sha256:" + "0" * 64,
    )
    sandbox.spec(xs="5")
    sandbox.commit("After")

    shown = dict(trial_details(sandbox.workspace, trial_of(newest(sandbox))).commits)

    assert shown["requested"].subject == "Ask for a sweep"


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


def test_of_two_batches_of_a_sweep_the_newest_counts(sandbox: Sandbox) -> None:
    old = sandbox.merged()
    trial = trial_of(newest(sandbox))
    copied(sandbox, old, "peak-b10-00000000")

    assert catalog.find_trial(sandbox.workspace.root, trial).batch.name == "peak-b10-00000000"


def test_of_two_sweeps_none_is_taken_and_the_way_out_is_told(sandbox: Sandbox) -> None:
    old = sandbox.merged()
    trial = trial_of(newest(sandbox))
    copied(sandbox, old, "tower-b1-00000000")

    with pytest.raises(UsageError, match="is in several sweeps: peak, tower") as caught:
        catalog.find_trial(sandbox.workspace.root, trial[:6])

    assert caught.value.hint == f"name its sweep: peak/{trial}, tower/{trial}"
    assert catalog.find_trial(sandbox.workspace.root, f"tower/{trial}").batch.name == "tower-b1-00000000"
    assert catalog.find_trial(sandbox.workspace.root, f"peak/{trial[:6]}").batch.name == old
    with pytest.raises(UsageError, match="no trial 'nobody/"):
        catalog.find_trial(sandbox.workspace.root, f"nobody/{trial}")


@pytest.mark.parametrize("fetched", [True, False], ids=["fetched", "in the mirror of sweep cluster local"])
def test_results_not_yet_pulled_are_named(sandbox: Sandbox, tmp_path: Path, *, fetched: bool) -> None:
    recorded(sandbox, tmp_path / "volume")
    sandbox.git("push", "-q", "origin", "main")
    if fetched:
        sandbox.git("fetch", "-q")
    else:
        mirror = Mirror(sandbox.root / ".sweepledger", str(sandbox.remote), "main")
        fetch(mirror.repository, REMOTE, "main")
        sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    sandbox.git("reset", "-q", "--hard", "HEAD~1")

    done = sandbox.sweep("results", "peak")
    completed = sandbox.sweep("results", "peak", "--format", "json")

    assert (done.returncode, done.stderr) == (0, "")
    assert "`git pull origin main` brings its results here" in done.stdout
    assert json.loads(completed.stdout)["data"]["trials"] == []


def test_what_the_collector_would_not_believe_is_not_counted_as_ok(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    batch = newest(sandbox)
    volume = tmp_path / "results"
    leave(volume, batch, 0, metrics={"other": 1})
    leave(volume, batch, 1, code="0" * 40)
    leave(volume, batch, 2)

    (tally,) = status.sweep_statuses(sandbox.workspace, state=tmp_path)

    assert [tally.counts[kind] for kind in ("ok", "failed", "interrupted")] == [1, 1, 1]
    assert tally.counts["missing"] == 0


def test_a_trial_that_will_be_tried_again_is_running(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    batch = newest(sandbox)
    for attempt in range(batch.lock.run.retries):
        leave(tmp_path / "results", batch, 0, uid=f"u{attempt}", status="failed", reason="exit-1", metrics={})

    (tally,) = status.sweep_statuses(sandbox.workspace, state=tmp_path)

    assert (tally.counts["running"], tally.counts["pending"]) == (
        (1, 2) if batch.lock.run.retries else (0, 3)
    )


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


def test_a_trial_of_two_batches_is_counted_once_and_by_what_is_most(sandbox: Sandbox, tmp_path: Path) -> None:
    old = sandbox.merged()
    copied(sandbox, old, "peak-b2-00000000")
    sandbox.publish("The other branch")
    first, second = sandbox.batches()
    leave(tmp_path / "results", first, 0, metrics={"other": 1}, uid="a")
    leave(tmp_path / "results", second, 0)
    (tmp_path / "results" / second.name / "1").mkdir()

    (tally,) = status.sweep_statuses(sandbox.workspace, state=tmp_path)

    assert (tally.trials, tally.batches) == (3, 2)
    assert (tally.counts["ok"], tally.counts["interrupted"], tally.counts["pending"]) == (1, 1, 1)


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
