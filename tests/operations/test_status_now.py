"""`sweep status` is true at every moment: while trials run, after an interruption, and before a pull."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

import pytest

from sweepledger.engine.local.events import PodEnded, PodStarted
from sweepledger.operations.cluster_local import Built
from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.operations.reports.results import rank_trials
from sweepledger.operations.reports.status import SweepStatus, sweep_statuses
from sweepledger.repo.state import create_state
from tests.builders import present
from tests.command_line import run_sweep
from tests.operations.recording import record_batch
from tests.operations.test_collect import leave
from tests.repository import Sandbox, append_to


def now(sandbox: Sandbox) -> SweepStatus:
    (shown,) = sweep_statuses(sandbox.workspace, state=sandbox.root / ".sweepledger")
    return shown


def test_trials_run_only_as_long_as_an_engine_does(sandbox: Sandbox) -> None:
    sandbox.name_person()
    program = sandbox.root / "code/train.py"
    program.write_text(f"import time\ntime.sleep(60)\n{program.read_text()}")
    sandbox.commit("Take long")
    sandbox.spec()
    events = sandbox.run("peak")
    list(takewhile(lambda event: not isinstance(event, PodStarted), events))

    during = now(sandbox).counts
    events.close()
    shown = sandbox.sweep("status")

    assert during["running"] == 2
    assert during["interrupted"] == 0
    assert now(sandbox).counts["running"] == 0
    assert now(sandbox).counts["interrupted"] == 2
    assert "peak: interrupted: `sweep run peak` continues it here" in shown.stdout


def finished_here(sandbox: Sandbox, *scores: float | None) -> None:
    """Let trials of the active batch finish here without a commit; one without a score has failed for good."""
    (batch,) = [one for one in sandbox.batches() if one.is_active]
    for index, score in enumerate(scores):
        document = (
            {"metrics": {"score": score}}
            if score is not None
            else {"status": "failed", "reason": "exit-1", "metrics": {}}
        )
        for attempt in range(1 if score is not None else batch.lock.run.retries + 1):
            uid = f"uid-{index}-{attempt}"
            leave(
                sandbox.root / ".sweepledger/results", batch, index, uid=uid, attempt=attempt + 1, **document
            )


def record_here(sandbox: Sandbox) -> ResultsCommit:
    """Record on the branch that is checked out what has finished here."""
    (commit,) = sandbox.collect(sandbox.root / ".sweepledger/results", {sandbox.batch().name}, push=False)
    return commit


def listed(sandbox: Sandbox) -> list[tuple[object, bool]]:
    ranking = rank_trials(sandbox.workspace, "peak")
    return [(row.metrics.get("score"), (row.batch, row.index) in ranking.unrecorded) for row in ranking.rows]


def test_what_has_finished_and_is_not_recorded_is_known_and_marked(sandbox: Sandbox) -> None:
    sandbox.merged()
    finished_here(sandbox, 5.0, 9.0)

    shown = now(sandbox).best
    table = sandbox.sweep("results", "peak").stdout

    assert (present(shown).value, present(shown).recorded) == (9.0, False)
    assert "not recorded yet)" in sandbox.sweep("status").stdout
    assert listed(sandbox) == [(9.0, True), (5.0, True)]
    assert table.count("not recorded yet") == 2
    assert json.loads(sandbox.sweep("results", "peak", "--output", "json").stdout) == []


@pytest.mark.parametrize(
    ("score", "best", "expected"),
    [
        (8.0, (8.0, False), [(8.0, True), (6.0, False), (2.0, False), (1.0, False)]),
        (None, (6.0, True), [(6.0, False), (2.0, False), (1.0, False), (None, True)]),
    ],
    ids=["better", "failed for good"],
)
def test_a_later_batch_competes_with_what_is_recorded(
    sandbox: Sandbox, score: float | None, best: tuple[float, bool], expected: list[tuple[object, bool]]
) -> None:
    sandbox.merged()
    finished_here(sandbox, 1.0, 6.0, 2.0)
    record_here(sandbox)
    sandbox.spec(xs="1, 2, 3, 4")
    sandbox.generate("peak")
    sandbox.commit("Ask for one more")
    finished_here(sandbox, score)

    shown = now(sandbox).best

    assert (present(shown).value, present(shown).recorded) == best
    assert listed(sandbox) == expected


def test_a_run_that_is_resumed_knows_the_best_before_it(sandbox: Sandbox) -> None:
    sandbox.use_as_laptop()
    sandbox.spec(xs="2, 3, 1")
    sandbox.commit("Ask")
    events = sandbox.run("peak", parallel=1)
    first = next(event for event in events if isinstance(event, PodEnded)).metrics["score"] or 0.0
    events.close()

    again = sandbox.run("peak", parallel=1)
    built = next(event for event in again if isinstance(event, Built))
    again.close()

    assert built.best is not None
    assert built.best >= first


def test_equal_numbers_of_other_values_are_doubted(sandbox: Sandbox) -> None:
    sandbox.merged()
    finished_here(sandbox, 0.25, 0.25, 0.25)

    (doubt,) = now(sandbox).doubts

    assert doubt.startswith("all 3 trials of peak-b1-")
    assert [problem.code for problem in record_here(sandbox).problems] == ["results-doubtful"]
    assert now(sandbox).doubts == (doubt,)
    assert f"peak: {doubt}" in " ".join(sandbox.sweep("status").stdout.split())


def test_results_that_are_not_pulled_are_not_pending(sandbox: Sandbox) -> None:
    sandbox.merged()
    create_state(sandbox.workspace.repository)
    list(sandbox.local(state=sandbox.root / ".sweepledger"))

    assert now(sandbox).counts == Counter({"recorded": 3})
    assert "`git pull origin main` brings results here" in sandbox.sweep("status").stdout

    sandbox.pull()

    assert now(sandbox).counts == Counter({"ok": 3})


def test_an_overlay_that_was_edited_by_hand_is_named_with_the_way_back(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    append_to(sandbox.root / f"overlays/active/{batch}/job.yaml", "# mine\n")

    done = sandbox.sweep("status")

    assert (
        f"overlays/active/{batch}: warning: was edited by hand: overlays/active/{batch}/job.yaml"
        in done.stderr
    )
    assert f"`git checkout -- overlays/active/{batch}`" in done.stderr
    assert done.returncode == 0


@pytest.mark.full_suite("two whole commands")
def test_watching_ends_when_no_batch_is_active(sandbox: Sandbox) -> None:
    sandbox.name_person()
    sandbox.spec()
    program = sandbox.root / "code/train.py"
    program.write_text(f"import time\ntime.sleep(1)\n{program.read_text()}")
    sandbox.commit("Take a second")
    assert sandbox.sweep("generate", "peak").returncode == 0
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(run_sweep, "status", "--watch", "--format", "json", cwd=sandbox.root)
        assert sandbox.sweep("run", "peak").returncode == 0

        done = watching.result()

    (shown,) = json.loads(done.stdout)["data"]["sweeps"]
    assert (shown["ok"], shown["active"]) == (3, [])


def links(sandbox: Sandbox) -> dict[str, object]:
    done = sandbox.sweep("status", "peak", "--format", "json")
    (sweep,) = json.loads(done.stdout)["data"]["sweeps"]
    return dict(sweep["links"])


def test_the_pull_request_is_the_one_that_the_merge_names(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "peak")
    sandbox.spec()
    made = sandbox.new_batch()
    sandbox.commit("Ask for a sweep")
    sandbox.git("checkout", "-q", "main")
    base = sandbox.head()
    named = {
        "Ask for a sweep": None,
        "Merge pull request #12 from team/peak": 12,
        "Where is the peak? (#13)": 13,
        "Merge '…' (!14)": 14,
    }

    for subject, number in named.items():
        sandbox.git("reset", "-q", "--hard", base)
        sandbox.git("merge", "-q", "--no-ff", "-m", subject, "peak")
        sandbox.git("push", "-q", "--force", "origin", "main")
        assert links(sandbox) == {
            "spec": "sweeps/peak.yaml",
            "batches": [{"folder": f"overlays/active/{made.name}", "pull_request": number}],
            "results": None,
        }
    record_batch(sandbox, made.name, lambda _: 1.0)
    sandbox.write("results/peak/README.md", "# peak\n")
    assert links(sandbox)["results"] == "results/peak/README.md"
    assert f"  overlays/archive/{made.name} (#14)\n" in sandbox.sweep("status", "peak").stdout
