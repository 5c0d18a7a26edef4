"""`sweep run` on real repositories: real git, real kustomize, real processes, and a user who works meanwhile."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import ANY

import pytest

from benchmarks.laptop import repository
from sweepledger.engine.local.events import PodEnded
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.formats import records_jsonl
from sweepledger.operations import cluster_local
from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.operations.repository import batch_records
from sweepledger.operations.run import BatchesCommitted, CodeLeftOut, SweepRun
from sweepledger.repo import batches
from sweepledger.repo.state import create_state
from sweepledger.structs.record import Record, Status
from tests.repository import IMAGE, Sandbox, append_to, followed_by, replace_in

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("driver.py")
SLOW_TRAIN = """
import os, sys, time
value = float(sys.argv[sys.argv.index("--x") + 1] if "--x" in sys.argv else sys.argv[1].split("=")[1])
if value > 1:
    time.sleep(600)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    file.write('{"score": 1}')
"""
"""The first trial ends at once, the others not by themselves."""
SPY = """
import os as _os
with open(_os.environ["SWEEP_RESULTS"] + "/../../../starts", "a") as _file:
    _file.write(_os.environ["SWEEP_TRIAL_ID"] + "\\n")
"""
"""A line for each start of the user's program, outside its folder: the test looks, the product does not."""


@pytest.fixture
def laptop(sandbox: Sandbox) -> Sandbox:
    """A repository without a remote whose program tells of every start; its spec is not committed."""
    return spied(sandbox)


def spied(sandbox: Sandbox) -> Sandbox:
    replace_in(sandbox.root / "code/train.py", "import argparse", f"{SPY}\nimport argparse")
    sandbox.publish("Spy on the program")
    sandbox.use_as_laptop()
    sandbox.spec()
    return sandbox


def starts(sandbox: Sandbox) -> list[str]:
    path = sandbox.root / ".sweepledger/starts"
    return path.read_text().split() if path.exists() else []


def scores(sandbox: Sandbox, revision: str = "HEAD", name: str = "peak") -> list[str]:
    text = sandbox.git("show", f"{revision}:results/{name}/summary.csv")
    return [row["metrics.score"] for row in csv.DictReader(text.splitlines())]


def subjects(sandbox: Sandbox, revision: str = "HEAD") -> list[str]:
    return sandbox.git("log", "--format=%s", revision).splitlines()


def changes(sandbox: Sandbox) -> str:
    return sandbox.git("status", "--porcelain", "--untracked-files=all")


def drive(sandbox: Sandbox, moment: str, count: int = 1, name: str = "peak") -> int:
    done = subprocess.run(
        [sys.executable, str(DRIVER), "run", str(sandbox.root), name, moment, str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode


def interrupted(sandbox: Sandbox, saved: str | None = None) -> str:
    """Run `sweep run`, press Ctrl-C once a trial has ended, and return what it printed.

    `saved` names a file that another trial leaves first.
    """
    command = [sys.executable, "-m", "sweepledger.cli", "run", "peak"]
    lines = []
    with subprocess.Popen(
        command, cwd=sandbox.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if " ok" in line:
                while saved is not None and not any(sandbox.root.rglob(saved)):
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130, lines
    return "".join(lines)


def test_manifests_that_break_a_rule_are_refused_before_the_commit(laptop: Sandbox) -> None:
    list(laptop.run("peak"))
    replace_in(laptop.root / "base/trial/v1/job.yaml", "privileged: false", "privileged: true")
    laptop.commit("Let pods be privileged")
    laptop.spec(xs="7, 8, 9")
    head = laptop.head()

    with pytest.raises(SpecError, match="without privileges"):
        list(laptop.run("peak"))

    assert laptop.head() == head


def test_one_command_commits_runs_and_records_a_sweep_while_its_user_works(laptop: Sandbox) -> None:
    laptop.write("notes.txt", "not ours")
    for event in laptop.run("peak"):
        if isinstance(event, PodEnded) and event.attempt.index == 0:
            laptop.write("mine.txt", "committed meanwhile")
            laptop.git("add", "mine.txt")
            laptop.git("commit", "-q", "-m", "Work on")
            laptop.write("staged.txt", "staged meanwhile")
            laptop.git("add", "staged.txt")

    results, mine, generated, *_ = subjects(laptop)
    assert results.startswith("results(peak): 3/3 trials, best score 0.5 (t")
    assert (mine, generated) == ("Work on", "generate(peak): 3 trials")
    assert scores(laptop) == ["-0.5", "0.5", "-0.5"]
    assert laptop.git("log", "-1", "--format=%an <%ae>").strip() == "Ada <ada@example.org>"
    assert changes(laptop) == "A  staged.txt\n?? notes.txt\n", "the work tree has all that was committed"
    assert laptop.git("show", "HEAD:mine.txt") == "committed meanwhile"
    assert (laptop.root / "results/peak/README.md").is_file()


@pytest.mark.parametrize(
    ("moment", "count"),
    [
        ("PodEnded", 2),
        pytest.param("BatchesCommitted", 1, marks=pytest.mark.full_suite("more kills")),
        pytest.param("ResultsCommit", 1, marks=pytest.mark.full_suite("more kills")),
    ],
)
def test_a_killed_run_trains_no_finished_trial_again(laptop: Sandbox, moment: str, count: int) -> None:
    assert drive(laptop, moment, count) == -9

    list(laptop.run("peak"))

    assert scores(laptop) == ["-0.5", "0.5", "-0.5"]
    records = list((laptop.root / ".sweepledger/results").glob("*/*/*.json"))
    assert len(records) == 3, "no trial ran again once its result existed"
    assert sum(subject.startswith("results(peak)") for subject in subjects(laptop)) == 1
    assert changes(laptop) == ""


def test_results_go_to_the_branch_that_it_started_on(laptop: Sandbox) -> None:
    laptop.git("branch", "other")
    for event in laptop.run("peak"):
        if isinstance(event, PodEnded) and event.attempt.index == 0:
            laptop.git("switch", "-q", "other")

    assert laptop.git("symbolic-ref", "--short", "HEAD").strip() == "other"
    assert changes(laptop) == ""
    assert not (laptop.root / "results").exists()
    assert scores(laptop, "main") == ["-0.5", "0.5", "-0.5"]


def test_uncommitted_code_is_named_and_committed_only_on_request(laptop: Sandbox) -> None:
    replace_in(laptop.root / "code/train.py", "1.0 -", "2.0 -")
    laptop.write("notes.txt", "not ours")

    with pytest.raises(RepositoryError, match=r"code/train\.py") as refused:
        list(laptop.run("peak"))
    assert "--commit-code" in str(refused.value.hint)
    assert starts(laptop) == []

    list(laptop.run("peak", commits_code=True))

    assert subjects(laptop)[2] == "code(peak): code/train.py"
    assert laptop.git("show", "--format=", "--name-only", "HEAD~2").split() == ["code/train.py"]
    assert scores(laptop) == ["0.5", "1.5", "0.5"]
    assert changes(laptop) == "?? notes.txt\n"


def test_edited_code_does_not_stop_a_batch_from_finishing_and_update_uses_it(laptop: Sandbox) -> None:
    drive(laptop, "PodEnded")
    replace_in(laptop.root / "code/train.py", "1.0 -", "2.0 -")

    events = list(laptop.run("peak"))

    assert CodeLeftOut(("code/train.py",)) in events
    assert scores(laptop) == ["-0.5", "0.5", "-0.5"]

    list(laptop.run("peak", commits_code=True, updates=True))

    assert scores(laptop) == ["-0.5", "0.5", "-0.5", "0.5", "1.5", "0.5"]


def test_a_missing_metric_is_named(laptop: Sandbox) -> None:
    spec = laptop.spec()
    objective = "metric: {name: score, goal: maximize, source: stdout}\n"
    metrics = f"{objective}other_metrics: [{{name: latency, goal: minimize}}]\n"
    text = spec.read_text().replace("metric: {name: score, goal: maximize}\n", metrics)
    text = text.replace("method: grid", "method: nsga2\nseed: 1\nrounds: {size: 2, max: 1}")
    spec.write_text(text.replace("x: {values: [1, 2, 3]}", "x: {min: 0.0, max: 1.0}"))
    program = "import sys\nx = next(word for word in sys.argv if word.startswith('--x='))\n"
    laptop.write("code/train.py", f"{program}print('score=' + x[4:], 'latencey=' + x[4:])\n")
    laptop.commit("Report two numbers")

    tried = laptop.sweep("try", "peak")
    events = list(laptop.run("peak"))

    assert ": failed (metric-missing)" in tried.stdout
    ended = [event for event in events if isinstance(event, PodEnded)]
    assert {(one.status, one.reason) for one in ended} == {(Status.FAILED, "metric-missing")}
    (pushed,) = [event for event in events if isinstance(event, ResultsCommit)]
    assert [problem.message.split(";")[0] for problem in pushed.problems] == ["no trial reports latency"]


def finished_elsewhere(laptop: Sandbox) -> list[str]:
    """Push, let another machine run what is open, and pull; return the starts there."""
    laptop.git("remote", "add", "origin", str(laptop.remote))
    laptop.git("push", "-q", "origin", "main")
    elsewhere = laptop.root.parent / "elsewhere"
    list(cluster_local.local(cluster_local.Options(str(laptop.remote), "main", elsewhere, once=True)))
    laptop.git("pull", "-q", "origin", "main")
    return (elsewhere / "starts").read_text().split()


CLONING = f"""version: 1
controller: argocd
defaults: {{image: '{IMAGE}'}}
images: {{git: registry.example.org/git@sha256:{"1" * 64}}}
code: {{url: https://git.example.org/team/sweeps.git, image: git, secret: git-read}}
"""


def test_a_sweep_whose_pods_would_clone_their_code_runs_here_with_the_locked_tree(laptop: Sandbox) -> None:
    laptop.commit("Clone the code in the cluster", {"sweepledger.yaml": CLONING})
    replace_in(laptop.spec(xs="2"), "{path: code}", "{path: code, mode: clone}")
    locked = laptop.git("rev-parse", "HEAD:code").strip()

    list(laptop.run("peak"))

    (record,) = (laptop.root / "results/peak/records").glob("*.jsonl")
    (attempt,) = records_jsonl.records(record.read_bytes())
    assert isinstance(attempt, Record)
    assert (attempt.status, attempt.code, attempt.ran) == (Status.OK, locked, "process")
    batch = record.name.removesuffix(".jsonl")
    archived = laptop.git("show", f"HEAD:overlays/archive/{batch}/batch.json")
    assert "components/clone/v1" in archived, "the batch that a cluster would have run"
    assert laptop.verify().sweeps[0].differences == ()


def recorded(sandbox: Sandbox) -> dict[str, str]:
    text = sandbox.git("show", "HEAD:results/peak/summary.csv")
    return {row["trial"]: row["status"] for row in csv.DictReader(text.splitlines())}


def handed_over(sandbox: Sandbox) -> tuple[tuple[ResultsCommit, ...], BatchesCommitted]:
    workspace = sandbox.workspace
    return SweepRun.prepare(workspace, ("peak",)).hand_over(create_state(workspace.repository))


def test_an_interrupted_sweep_is_finished_elsewhere(laptop: Sandbox) -> None:
    # On a busy machine all would have ended before the kill.
    append_to(laptop.root / "code/train.py", "import time\ntime.sleep(1 if args.x > 1 else 0)\n")
    laptop.git("commit", "-q", "-m", "Wait", "--", "code")
    drive(laptop, "PodEnded", 1)
    (begun,) = laptop.active()

    commits, _ = handed_over(laptop)

    here = {trial for trial, status in recorded(laptop).items() if status == "ok"}
    assert 1 <= len(here) < 3, "killed after the first, and before the last"
    (rest,) = laptop.active()
    assert rest != begun
    assert [commit.batches for commit in commits] == [(begun,)]
    assert changes(laptop) == ""
    assert not laptop.check(base="HEAD").problems

    assert handed_over(laptop) == ((), BatchesCommitted(None, ANY)), (
        "the second time nothing is left to hand over"
    )

    there = finished_elsewhere(laptop)

    assert set(recorded(laptop).values()) == {"ok"}
    assert here.isdisjoint(there)
    assert laptop.verify().is_good


def unrecorded(sandbox: Sandbox, commit: str) -> list[str]:
    """Name the batches whose trials would all be requested again, were this commit pushed."""
    repository = sandbox.workspace.repository
    stored = batches.in_commit(repository, commit)
    return [batch.name for batch in batch_records.unrecorded_batches(repository, commit, stored)]


@pytest.mark.full_suite("more kills")
def test_a_hand_over_that_is_killed_leaves_no_cancelled_batch_without_its_records(laptop: Sandbox) -> None:
    drive(laptop, "PodEnded", 1)

    assert drive(laptop, "HandOver", 1) == -9

    assert subjects(laptop)[1].startswith("cancel(peak): ")
    assert "ok" in recorded(laptop).values()

    handed_over(laptop)

    assert changes(laptop) == ""
    (rest,) = laptop.active()
    assert "-b2-" in rest
    moves = laptop.git("log", "-g", "--format=%H", "main").split()
    assert [unrecorded(laptop, commit) for commit in moves] == [[]] * len(moves)


@pytest.mark.full_suite("whole runs")
def test_ctrl_c_hands_over_where_a_controller_would_run_what_is_pushed(laptop: Sandbox) -> None:
    laptop.write("sweepledger.yaml", followed_by("argocd"))
    laptop.commit("Follow the branch", {"code/train.py": SLOW_TRAIN})

    said = interrupted(laptop)

    assert "requests the other 2 trial(s)" in said
    assert sorted(recorded(laptop).values()) == ["cancelled", "cancelled", "ok"]
    (rest,) = laptop.active()
    assert "-b2-" in rest


@pytest.mark.full_suite("whole runs")
def test_ctrl_c_gives_up_no_checkpoints(laptop: Sandbox) -> None:
    laptop.write("sweepledger.yaml", followed_by("argocd"))
    saves = 'open(os.environ["SWEEP_CHECKPOINTS"] + "/step", "w").write("1")'
    laptop.write("code/train.py", SLOW_TRAIN.replace("time.sleep(600)", f"{saves}; time.sleep(600)"))
    laptop.commit("Save checkpoints")

    said = interrupted(laptop, saved="step")

    (kept,) = laptop.active()
    assert f"not handed over: trials of {kept} have checkpoints on this machine only" in said
    assert "`sweep run peak --hand-over`, which gives them up" in said
    assert "-b1-" in kept


def test_it_says_why_it_cannot_commit_and_the_way_out(laptop: Sandbox) -> None:
    (laptop.root / ".git/rebase-merge").mkdir()
    before = changes(laptop)

    with pytest.raises(RepositoryError, match="a rebase is in progress") as refused:
        list(laptop.run("peak"))

    assert "git rebase --continue" in str(refused.value.hint)
    assert changes(laptop) == before


def test_a_batch_that_a_cluster_runs_is_not_run_here_as_well(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", followed_by("argocd"))
    sandbox.merged()
    sandbox.git("fetch", "-q")
    sandbox.name_person()

    with pytest.raises(RepositoryError, match="where argocd runs it"):
        list(sandbox.run("peak"))


MOST_GIT = 53
"""Git processes of a first sweep in a repository, from validation to the results commit."""


def git_processes(folder: Path, trials: int) -> int:
    """Run a sweep of trivial trials in a repository of its own, and return how many git processes it started."""
    lab, trace = folder / f"lab-{trials}", folder / f"trace-{trials}"
    repository(lab, trials)
    trace.mkdir()
    subprocess.run(
        [sys.executable, "-m", "sweepledger.cli", "run", "score"],
        cwd=lab,
        env={**os.environ, "GIT_TRACE2_EVENT": str(trace)},
        capture_output=True,
        check=True,
    )
    return len(list(trace.iterdir()))


@pytest.mark.full_suite("two whole sweeps")
def test_more_trials_start_no_more_git_processes(tmp_path: Path) -> None:
    few, many = git_processes(tmp_path, 2), git_processes(tmp_path, 8)

    assert few == many
    assert 20 < many <= MOST_GIT
