"""What may win, and how what may not is listed beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from sweepledger.commands.collection.results_commit import commit_results
from sweepledger.commands.generate import update
from sweepledger.commands.reports import results
from sweepledger.commands.reports.results import Ineligibility
from sweepledger.commands.repository import catalog
from sweepledger.commands.repository.workspace import Target
from sweepledger.formats.summary_csv import SummaryRow
from sweepledger.repo import batches
from tests.commands.test_collect import leave
from tests.repository import TRAIN, Sandbox


def record(sandbox: Sandbox, volume: Path, *scores: float | None) -> None:
    """Record the newest batch; a trial without a score has failed."""
    batch = batches.in_work_tree(sandbox.root)[-1]
    for index, score in enumerate(scores):
        document = {"metrics": {"score": score}, "seconds": 10.0 - score} if score is not None else {}
        failed = {} if document else {"status": "failed", "reason": "exit-1", "metrics": {}}
        leave(volume, batch, index, **document, **failed)
    assert commit_results(Target(sandbox.workspace.repository, None, "main"), volume, {batch.name})


@pytest.fixture
def programs(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """Two programs, of which the older did better; the spec has dropped the best value of the newer."""
    sandbox.merged()
    record(sandbox, tmp_path, 5.0, 9.0, None)
    sandbox.write("code/train.py", TRAIN + "# another program\n")
    sandbox.spec(xs="1, 2, 3, 4")
    sandbox.commit("Change the code")
    update(sandbox.workspace, "peak")
    sandbox.spec(xs="1, 2, 4")
    sandbox.commit("Ask for them, and no longer for one")
    record(sandbox, tmp_path, 1.0, 3.0, 8.0, None)
    return sandbox


def test_only_trials_of_the_newest_recorded_program_that_the_spec_asks_for_may_win(programs: Sandbox) -> None:
    stored = batches.in_work_tree(programs.root)
    table = catalog.read_summary(programs.workspace.root, "peak")
    assert table is not None

    def batch_and_x(rows: tuple[SummaryRow, ...]) -> list[tuple[str, object]]:
        return [(row.batch, row.assignment["x"]) for row in rows]

    able = catalog.eligible_rows(table.rows, stored)

    assert batch_and_x(able) == [(stored[1].name, x) for x in (1, 2, 4)]
    # The newest program is the one of the newest batch of which anything is recorded.
    assert batch_and_x(catalog.eligible_rows(table.rows[:3], stored)) == [(stored[0].name, x) for x in (1, 2)]
    assert catalog.eligible_rows(table.rows, ()) == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["score", "seconds"])
def test_what_may_not_win_is_listed_after_what_may(programs: Sandbox, by: str) -> None:
    ranking = results.results(programs.workspace, "peak", by=by)

    listed = [(row.metrics.get("score"), why) for row, why in zip(ranking.rows, ranking.barred, strict=True)]
    best = [(3.0, None), (1.0, None)]
    others = [(9.0, Ineligibility.PROGRAM), (8.0, Ineligibility.SPEC), (5.0, Ineligibility.PROGRAM)]
    assert listed == [*best, *others, (None, Ineligibility.SPEC), (None, None)]
    assert results.results(programs.workspace, "peak", top=3).barred == (None, None, Ineligibility.PROGRAM)


def test_a_place_is_given_only_to_what_may_win(
    programs: Sandbox, run_sweep: Callable[..., CompletedProcess[str]]
) -> None:
    shown = run_sweep("results", "peak", cwd=programs.root).stdout.splitlines()
    document = json.loads(run_sweep("results", "peak", "--format", "json", cwd=programs.root).stdout)

    assert "not ranked" in shown[0]
    assert [line.split()[0] for line in shown[1:3]] == ["1", "2"]
    assert ["older program" in line for line in shown[1:]] == [False] * 2 + [True, False, True, False, False]
    assert [line.startswith(" ") for line in shown[1:]] == [False] * 2 + [True] * 4 + [False]
    assert [trial["not_ranked"] for trial in document["data"]["trials"]][1:4] == [
        None,
        "older program",
        "not in spec",
    ]
