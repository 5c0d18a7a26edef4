"""A search that nobody looks after: one merged spec, followed by `sweep cluster local` to its last results."""

import pytest

from sweepledger.commands.local import ResultsPushed, RoundPushed
from sweepledger.commands.rounds.next_round import RoundDue, SearchEnded
from sweepledger.commands.rounds.round_commit import PushedRound
from tests.repository import Sandbox
from tests.searches import active, begun, hill


def played(sandbox: Sandbox) -> list[ResultsPushed | RoundPushed]:
    events = [event for event in sandbox.local() if isinstance(event, ResultsPushed | RoundPushed)]
    sandbox.pull()
    return events


@pytest.mark.full_suite("whole searches")
def test_a_merged_spec_runs_every_round_and_each_is_recorded_once(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=3)
    before = int(sandbox.git("rev-list", "--count", "HEAD"))

    steps = [event.commit.step for event in played(sandbox) if isinstance(event, ResultsPushed)]

    assert [isinstance(step, RoundDue) for step in steps] == [True, True, False]
    assert isinstance(steps[-1], SearchEnded)
    assert steps[-1].reason == "rounds"
    assert int(sandbox.git("rev-list", "--count", "HEAD")) == before + 3
    rows = (sandbox.root / "results/hill/summary.csv").read_text().splitlines()[1:]
    assert [row.split(",")[5] for row in rows] == ["ok"] * 6
    assert active(sandbox.workspace, "HEAD") == ()


def test_a_search_that_waits_for_nothing_but_its_next_round_goes_on_by_itself(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=1)
    (first,) = played(sandbox)
    hill(sandbox, size=2, rounds=2)
    sandbox.publish("Search on")

    result, collected = played(sandbox)

    assert isinstance(first, ResultsPushed)
    assert isinstance(result, RoundPushed)
    assert isinstance(result.round, PushedRound)
    assert result.round.due.round.number == 2
    assert sandbox.git("log", "-2", "--format=%s").splitlines()[1] == "next(hill): round 2, 2 trials of tpe"
    assert isinstance(collected, ResultsPushed)
    assert isinstance(collected.commit.step, SearchEnded)
