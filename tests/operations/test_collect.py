import csv
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from sweepledger.formats import record_json, records_jsonl
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit, commit_results
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.operations.repository.workspace import Target
from sweepledger.problems import Severity
from sweepledger.repo import results_volume
from sweepledger.repo.batches import StoredBatch
from sweepledger.results.bounds import MOST_TRIAL_BYTES
from sweepledger.structs.record import LeftOutAttempts, Record
from tests.builders import a_record, present
from tests.repo.test_signatures import key, line
from tests.repository import SPEC, Sandbox


def stored(sandbox: Sandbox) -> StoredBatch:
    (batch,) = sandbox.batches()
    return batch


def leave(results: Path, batch: StoredBatch, index: int, **changes: object) -> Path:
    """Leave a record as the launcher would."""
    trial = expected_trials(batch)[index]
    names = {"trial": trial.trial, "row": trial.row, "batch": batch.name, "uid": f"uid-{index}", "node": "n"}
    made = a_record(index, **names, code=batch.lock.program.code.tree, data=None, seconds=1.5, details={})
    record = {**json.loads(record_json.to_line(made)), "metrics": {"score": index / 2}, **changes}
    path = results / batch.name / batch.lock.place(index) / f"{record['uid']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    return path


def target(sandbox: Sandbox) -> Target:
    return sandbox.target()


@pytest.fixture
def merged(sandbox: Sandbox) -> Sandbox:
    sandbox.merged()
    return sandbox


def recorded(sandbox: Sandbox, commits: tuple[ResultsCommit, ...]) -> dict[str, str]:
    """Give the status of every trial as main holds it."""
    assert commits
    sandbox.pull()
    lines = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    return {line.split(",")[2]: line.split(",")[5] for line in lines}


@pytest.mark.parametrize("pack", ["", "  pack: {trials: 2}\n"], ids=["a pod each", "packed"])
def test_no_early_read(sandbox: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch, pack: str) -> None:
    sandbox.write("sweeps/peak.yaml", SPEC.format(name="peak", xs="1, 2, 3", parallelism=2) + pack)
    sandbox.publish_batches("Ask")
    batch = stored(sandbox)
    for index in range(2):
        leave(results, batch, index)
    with monkeypatch.context() as unreadable:
        unreadable.setattr(results_volume, "_read_file", lambda *_: pytest.fail("a record was read"))
        assert sandbox.collect(results, running={batch.name}) == ()

    leave(results, batch, 2)

    commits = sandbox.collect(results, running={batch.name})
    assert recorded(sandbox, commits) == {"0": "ok", "1": "ok", "2": "ok"}


def test_a_job_that_ended_leaves_rows_for_trials_that_left_nothing(merged: Sandbox, results: Path) -> None:
    batch = stored(merged)
    assert merged.collect(results) == ()
    leave(results, batch, 0)
    leave(results, batch, 2, status="failed", reason="exit-7", metrics={})
    assert merged.collect(results) == ()

    commits = merged.collect(results, {batch.name})

    assert recorded(merged, commits) == {"0": "ok", "1": "missing", "2": "failed"}


def test_what_cannot_be_believed_has_a_record_of_the_collector(merged: Sandbox, results: Path) -> None:
    batch = stored(merged)
    leave(results, batch, 0).write_text("")
    leave(results, batch, 0, uid="second").write_text('{"version": 1, "trial"')
    leave(results, batch, 1).write_text("no JSON")
    leave(results, batch, 1, uid="second")
    leave(results, batch, 2, row="0" * 64)

    commits = merged.collect(results, {batch.name})

    assert recorded(merged, commits) == {"0": "corrupt", "1": "ok", "2": "foreign"}
    records = kept(merged, batch)
    expected = [(0, "collector", "corrupt"), (1, "second", None), (2, "collector", "foreign")]
    assert [(record.index, record.uid, record.reason) for record in records] == expected
    first = (merged.root / "results/peak/summary.csv").read_text().splitlines()[1]
    assert ',corrupt,"empty truncated",' in first
    assert records[0].details == {"passed_over": {"empty": 1, "truncated": 1}}
    assert records[1].others == LeftOutAttempts(failed=0, disrupted=0, ignored=1, seconds=0.0)


def test_a_record_that_a_trial_wrote_for_another_is_not_used(merged: Sandbox, results: Path) -> None:
    batch = stored(merged)
    for index in (0, 2):
        leave(results, batch, index)
    forged = leave(results, batch, 1, metrics={"score": 1000}, finished="2020-01-01T00:00:00Z")
    forged.rename(results / batch.name / "0/forged.json")

    commits = merged.collect(results, {batch.name})

    assert recorded(merged, commits) == {"0": "ok", "1": "missing", "2": "ok"}
    assert commits[0].corrupt == ("foreign",)


def test_of_thousands_of_records_of_a_trial_few_come_to_git(merged: Sandbox, results: Path) -> None:
    """6,000 records of 30 KB made a file of 183 MB in git."""
    batch = stored(merged)
    for index in (1, 2):
        leave(results, batch, index)
    record = leave(results, batch, 0, details={"padding": "x" * 8000}).read_bytes()
    for number in range(600):
        uid = f"flood-{number:04}"
        (results / batch.name / f"0/{uid}.json").write_bytes(record.replace(b'"uid-0"', f'"{uid}"'.encode()))

    commits = merged.collect(results, {batch.name})

    assert recorded(merged, commits) == {"0": "ok", "1": "ok", "2": "ok"}
    assert commits[0].corrupt.count("too-many") > 400
    assert commits[0].corrupt.count("too-large") > 150
    (problem,) = commits[0].problems
    expected = ("results/peak", "records-ignored", Severity.WARNING)
    assert (problem.file, problem.code, problem.severity) == expected
    assert re.search(r"are not used: too-large \d+, too-many \d+$", problem.message)
    assert size(merged, commits[0]) < MOST_TRIAL_BYTES
    first, second, *_ = kept(merged, batch)
    assert (present(first.others).ignored + present(first.others).failed, second.others) == (601 - 2, None)


def size(sandbox: Sandbox, commit: ResultsCommit) -> int:
    """Give the bytes of a batch's records in a results commit."""
    (name,) = commit.batches
    return int(sandbox.git("cat-file", "-s", f"{commit.commit}:results/peak/records/{name}.jsonl"))


def test_the_attempt_that_decides_remains_and_then_the_newest(merged: Sandbox, results: Path) -> None:
    batch, padding = stored(merged), {"padding": "x" * 4_000}
    failed = {"status": "failed", "reason": "exit-1", "metrics": {}}
    for attempt in range(1, 7):
        result = {} if attempt == 2 else failed
        leave(results, batch, 0, uid=f"uid-{attempt}", attempt=attempt, details=padding, **result)
    for index in (1, 2):
        leave(results, batch, index)

    commits = merged.collect(results, {batch.name})

    assert recorded(merged, commits) == {"0": "ok", "1": "ok", "2": "ok"}
    assert (commits[0].corrupt, commits[0].problems) == ((), ())
    first, last, *_ = kept(merged, batch)
    assert (first.attempt, last.attempt) == (2, 6)
    assert first.others == LeftOutAttempts(failed=4, disrupted=0, ignored=0, seconds=4 * 1.5)
    assert b",ok,,6," in (merged.root / "results/peak/summary.csv").read_bytes()


def kept(sandbox: Sandbox, batch: StoredBatch) -> list[Record]:
    content = (sandbox.root / f"results/peak/records/{batch.name}.jsonl").read_bytes()
    return [record for record in records_jsonl.records(content) if isinstance(record, Record)]


def test_collecting_again_makes_no_commit(merged: Sandbox, results: Path) -> None:
    batch = stored(merged)
    leave(results, batch, 0)
    merged.collect(results, {batch.name})
    head = merged.git("ls-remote", "origin", "main")

    assert merged.collect(results, {batch.name}) == ()

    assert merged.git("ls-remote", "origin", "main") == head


def test_without_push_it_commits_here_and_leaves_other_edits_alone(merged: Sandbox, results: Path) -> None:
    batch = stored(merged)
    leave(results, batch, 0)
    merged.write("code/train.py", "dirty")

    merged.collect(results, {batch.name}, push=False)

    assert (merged.root / "results/peak/summary.csv").is_file()
    assert (merged.root / "overlays/archive" / batch.name).is_dir()
    assert merged.active() == []
    assert merged.git("status", "--porcelain").split() == ["M", "code/train.py"]
    assert merged.git("log", "-1", "--format=%s").startswith("results(peak): 1/3 trials")


def test_an_archived_batch_without_records_stops_no_other(sandbox: Sandbox, results: Path) -> None:
    first = sandbox.merged()
    second = sandbox.merged(xs="1, 2, 3, 4")
    sandbox.cancel(batch=first, push=True)

    sandbox.record(results, {second}, alive={first, second})
    assert not (sandbox.root / f"results/peak/records/{first}.jsonl").exists()
    assert len((sandbox.root / "results/peak/summary.csv").read_text().splitlines()) == 2
    (commit,) = sandbox.collect(results, alive=())
    assert commit.batches == (first,)
    sandbox.pull()
    assert len((sandbox.root / "results/peak/summary.csv").read_text().splitlines()) == 5


def test_a_batch_cancelled_while_it_is_recorded_is_recorded_once(sandbox: Sandbox, results: Path) -> None:
    name = sandbox.merged()
    for index in range(2):
        leave(results, stored(sandbox), index)
    sandbox.cancel(push=True)

    (commit,) = sandbox.collect(results, {name}, alive=())

    assert recorded(sandbox, (commit,)) == {"0": "ok", "1": "ok", "2": "cancelled"}
    assert sandbox.collect(results, {name}, alive=()) == ()


def reviewed(sandbox: Sandbox) -> Target:
    return sandbox.target(is_reviewed=True)


def heads(sandbox: Sandbox) -> list[str]:
    return sandbox.git("ls-remote", "--heads", "origin").splitlines()


def branches(sandbox: Sandbox) -> list[str]:
    return [line.split("refs/heads/")[1] for line in heads(sandbox)]


def proposal(sandbox: Sandbox, commit: str = "origin/main") -> str:
    sandbox.git("fetch", "-q", "origin", "main")
    return f"results/peak/{sandbox.git('rev-parse', commit).strip()[:12]}"


def take(sandbox: Sandbox, name: str) -> None:
    """Merge a branch as a person would who squashes."""
    sandbox.git("fetch", "-q", "origin", name)
    sandbox.git("merge", "-q", "--squash", "FETCH_HEAD")
    sandbox.publish("Results")


def test_with_reviews_each_sweep_has_a_branch_on_main(sandbox: Sandbox, results: Path) -> None:
    first = sandbox.merged()
    second = sandbox.merged(xs="1, 2, 3, 4")
    before = sandbox.head()
    name = proposal(sandbox)

    (commit,) = commit_results(reviewed(sandbox), on_volume(results), {first})

    assert commit.batches == (first,)
    assert branches(sandbox) == ["main", name]
    assert sandbox.git("ls-remote", "origin", "main").split()[0] == before
    assert commit_results(reviewed(sandbox), on_volume(results), {first, second}) == (), (
        "it is proposed already"
    )
    take(sandbox, name)
    (commit,) = commit_results(reviewed(sandbox), on_volume(results), {second})
    assert commit.batches == (second,)
    assert branches(sandbox) == ["main", proposal(sandbox)], "that of the first was merged"
    take(sandbox, proposal(sandbox))
    assert commit_results(reviewed(sandbox), on_volume(results), {second}) == ()
    assert branches(sandbox) == ["main"]
    assert len((sandbox.root / "results/peak/summary.csv").read_text().splitlines()) == 5
    assert sandbox.active() == []


def test_a_branch_is_replaced_when_main_or_results_move(sandbox: Sandbox, results: Path) -> None:
    names = {sandbox.merged(), sandbox.merged(xs="1, 2, 3, 4")}
    commit_results(reviewed(sandbox), on_volume(results), {min(names)})
    old = proposal(sandbox)
    sandbox.git("push", "-q", "origin", "HEAD:refs/heads/results/peak/mine", "HEAD:refs/heads/results/pear")
    sandbox.publish("Move main", {"README.md": "moved"})

    (commit,) = commit_results(reviewed(sandbox), on_volume(results), names)

    assert set(commit.batches) == names
    assert proposal(sandbox) != old
    mine = ["results/peak/mine", "results/pear"]
    assert branches(sandbox) == sorted(["main", proposal(sandbox), *mine]), "a person's branches stay"
    made = sandbox.git("ls-remote", "origin", proposal(sandbox)).split()[0]
    assert made == commit.commit
    sandbox.git("fetch", "-q", "origin", made)
    assert sandbox.git("rev-parse", f"{made}^").strip() == sandbox.head()


def test_two_propose_at_once(merged: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, name = stored(merged).name, proposal(merged)
    (commit,) = commit_results(reviewed(merged), on_volume(results), {batch})
    monkeypatch.setattr("sweepledger.repo.git.branch.proposals", lambda *_: {})
    monkeypatch.setenv("GIT_COMMITTER_NAME", "another")

    assert commit_results(reviewed(merged), on_volume(results), {batch}) == ()
    assert merged.git("ls-remote", "origin", name).split()[0] == commit.commit


def test_a_branch_is_signed(sandbox: Sandbox, results: Path, tmp_path: Path, needs_kustomize: None) -> None:
    made = key(tmp_path, "signing")
    sandbox.write("sweepledger.yaml", f"version: 1\nsigners:\n- '{line(made)}'\n")
    batch = sandbox.merged()

    def codes() -> set[str]:
        commit_results(reviewed(sandbox), on_volume(results), {batch})
        sandbox.git("fetch", "-q", "origin", proposal(sandbox))
        sandbox.git("checkout", "-q", "--detach", "FETCH_HEAD")
        return {problem.code for problem in sandbox.check(base="origin/main").problems}

    assert codes() == {"history-unsigned"}
    sandbox.git("checkout", "-q", "main")
    sandbox.git("push", "-q", "origin", f":{proposal(sandbox)}")
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(made)), ("commit.gpgSign", "true")):
        sandbox.git("config", name, value)

    assert codes() == set()


def column(sandbox: Sandbox, name: str) -> list[str]:
    sandbox.pull()
    with (sandbox.root / "results/peak/summary.csv").open() as file:
        return [row[name] for row in csv.DictReader(file)]


@pytest.mark.parametrize("text", ["name: peak\nmethod: [", None], ids=["cannot be read", "is gone"])
def test_an_unreadable_spec_refuses_nobody(merged: Sandbox, results: Path, text: str | None) -> None:
    batch = stored(merged)
    for index in range(3):
        leave(results, batch, index)
    if text is None:
        (merged.root / "sweeps/peak.yaml").unlink()
    else:
        merged.write("sweeps/peak.yaml", text)
    merged.publish("Break the spec")

    (commit,) = merged.collect(results, {batch.name})

    assert column(merged, "in_spec") == ["", "", ""]
    assert commit.summary.best == 1.0
    assert any("cannot be read or expanded" in warning for warning in commit.summary.warnings)


def test_the_inputs_of_a_summary_are_digested_as_sha256sum_does(merged: Sandbox, results: Path) -> None:
    batch = stored(merged)
    leave(results, batch, 0)
    (commit,) = merged.record(results, {batch.name})
    inputs = sorted(
        [
            f"overlays/archive/{batch.name}/batch.json",
            f"results/peak/records/{batch.name}.jsonl",
            "sweeps/peak.yaml",
        ]
    )

    listed = subprocess.run(["sha256sum", *inputs], cwd=merged.root, capture_output=True, check=True).stdout

    expected_digest = "sha256:" + hashlib.sha256(listed).hexdigest()
    held = json.loads((merged.root / "results/peak/provenance.json").read_text())
    spec = (merged.root / "sweeps/peak.yaml").read_bytes()
    assert held["inputs_digest"] == expected_digest == commit.summary.inputs_digest
    assert held["spec"] == {
        "path": "sweeps/peak.yaml",
        "digest": "sha256:" + hashlib.sha256(spec).hexdigest(),
    }
    trailers = merged.git("log", "-1", "--format=%(trailers:only)").splitlines()
    assert f"Inputs-Digest: {expected_digest}" in trailers
    assert f"Spec: sweeps/peak.yaml {held['spec']['digest']}" in trailers
    assert {"Image: local", f"Generator: {batch.lock.generator}"} <= set(trailers)
