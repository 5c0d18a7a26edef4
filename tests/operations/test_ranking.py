"""What may win, and how what may not is listed beside it."""

from pathlib import Path

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.reports import results
from sweepledger.operations.reports.comparison import compare_sweeps
from sweepledger.operations.reports.results import Ineligibility
from sweepledger.operations.reports.status import sweep_statuses
from sweepledger.operations.repository import catalog
from sweepledger.operations.repository.workspace import Target
from sweepledger.structs.record import SummaryRow
from tests.builders import present
from tests.operations.test_collect import leave
from tests.repository import TRAIN, Sandbox


def record(sandbox: Sandbox, volume: Path, *scores: float | None) -> None:
    """Record the newest batch; a trial without a score has failed."""
    batch = sandbox.batches()[-1]
    for index, score in enumerate(scores):
        document = {"metrics": {"score": score}, "seconds": 10.0 - score} if score is not None else {}
        failed = {} if document else {"status": "failed", "reason": "exit-1", "metrics": {}}
        leave(volume, batch, index, **document, **failed)
    assert commit_results(Target(sandbox.workspace.repository, None, "main"), on_volume(volume), {batch.name})


@pytest.fixture
def programs(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """Two programs, of which the older did better; the spec has dropped the best value of the newer."""
    sandbox.merged()
    record(sandbox, tmp_path, 5.0, 9.0, None)
    sandbox.write("code/train.py", TRAIN + "# another program\n")
    sandbox.spec(xs="1, 2, 3, 4")
    sandbox.commit("Change the code")
    sandbox.generate("peak", update=True)
    sandbox.spec(xs="1, 2, 4")
    sandbox.commit("Ask for them, and no longer for one")
    record(sandbox, tmp_path, 1.0, 3.0, 8.0, None)
    return sandbox


def test_only_trials_of_the_newest_recorded_program_that_the_spec_asks_for_may_win(programs: Sandbox) -> None:
    stored = programs.batches()
    table = catalog.read_summary(programs.workspace.root, "peak")
    assert table is not None

    def batch_and_x(rows: tuple[SummaryRow, ...]) -> list[tuple[str, object]]:
        return [(row.batch, row.assignment["x"]) for row in rows]

    able = catalog.eligible_rows(table.rows, stored)

    assert batch_and_x(able) == [(stored[1].name, x) for x in (1, 2, 4)]
    # The newest program is the one of the newest batch of which anything is recorded.
    assert batch_and_x(catalog.eligible_rows(table.rows[:3], stored)) == [(stored[0].name, x) for x in (1, 2)]
    assert catalog.eligible_rows(table.rows, ()) == ()


def test_trials_that_may_not_win_are_listed_last(programs: Sandbox) -> None:
    ranking = results.rank_trials(programs.workspace, "peak", by="seconds")

    listed = [(row.metrics.get("score"), why) for row, why in zip(ranking.rows, ranking.barred, strict=True)]
    best = [(3.0, None), (1.0, None)]
    others = [(9.0, Ineligibility.PROGRAM), (5.0, Ineligibility.PROGRAM), (None, Ineligibility.SPEC)]
    assert listed == [*best, (8.0, Ineligibility.SPEC), (None, None), *others]
    assert results.rank_trials(programs.workspace, "peak", top=3).barred == (None, None, Ineligibility.SPEC)
    with pytest.raises(UsageError) as caught:
        results.rank_trials(programs.workspace, "peak", by="nope")
    assert caught.value.hint == "metrics: score, seconds"


def test_a_place_is_given_only_to_what_may_win(programs: Sandbox) -> None:
    shown = programs.sweep("results", "peak").stdout.splitlines()[:8]

    assert "not ranked" in shown[0]
    assert [line.split()[0] for line in shown[1:3]] == ["1", "2"]
    assert ["older program" in line for line in shown[1:]] == [False] * 4 + [True, True, False]
    assert [line.startswith(" ") for line in shown[1:]] == [False, False, True, False, True, True, True]


def listed(sandbox: Sandbox, *, all_programs: bool = False) -> list[tuple[object, str | None]]:
    ranking = results.rank_trials(sandbox.workspace, "peak", all_programs=all_programs)
    return [
        (row.metrics.get("score"), why and str(why))
        for row, why in zip(ranking.rows, ranking.barred, strict=True)
    ]


def test_the_program_of_head_is_ranked_or_the_newest(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    record(sandbox, tmp_path, 5.0, 2.0, None)
    changed = sandbox.commit("Change the code", {"code/train.py": TRAIN + "# another program\n"})
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask for all of them again")
    record(sandbox, tmp_path, 9.0, 7.0, 8.0)
    newest = [(9.0, None), (8.0, None), (7.0, None)]
    assert listed(sandbox)[:3] == newest
    sandbox.git("revert", "--no-edit", changed)

    assert listed(sandbox) == [
        *((5.0, None), (2.0, None), (None, None)),
        *((score, "newer program") for score in (9.0, 8.0, 7.0)),
    ]
    (shown,) = sweep_statuses(sandbox.workspace, state=sandbox.root / ".sweepledger")
    assert present(shown.best).value == 5.0
    comparison = compare_sweeps(sandbox.workspace, "peak", "peak@HEAD~1")
    best = [present(side.statistics.best).value for side in (comparison.a, comparison.b)]
    assert best == [5.0, 9.0]
    assert comparison.warnings == (
        "peak: 3 trials of other programs are left out",
        "peak@HEAD~1: 3 trials of other programs are left out",
    )
    scores = [(score, None) for score in (9.0, 8.0, 7.0, 5.0, 2.0, None)]
    assert listed(sandbox, all_programs=True) == scores
    document = sandbox.data("results", "peak", "--all-programs")
    assert [trial["program"] == document["head_program"] for trial in document["trials"]] == [False] * 3 + [
        True
    ] * 3

    sandbox.commit("Change it once more", {"code/train.py": TRAIN + "# a third program\n"})
    assert listed(sandbox)[:3] == newest, "no trial has run the code of HEAD"
    assert ", HEAD's" not in sandbox.sweep("results", "peak").stdout


def test_first_tries_of_a_mended_program_are_last(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    record(sandbox, tmp_path, None, None, None)
    sandbox.commit("Mend it", {"code/train.py": TRAIN + "# mended\n"})
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask for all of them again")
    record(sandbox, tmp_path, None, 7.0, 8.0)

    older = (None, "older program")
    assert listed(sandbox) == [(8.0, None), (7.0, None), (None, None), older, older, older]
