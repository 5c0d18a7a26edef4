"""A search that nobody looks after: one merged spec, followed by `sweep cluster local` to its last results."""

from sweepledger.commands.local import ResultsPushed, RoundPushed
from sweepledger.commands.rounds.next_round import SearchEnded
from sweepledger.commands.rounds.round_commit import PushedRound
from tests.repository import Sandbox
from tests.searches import begun, hill


def played(sandbox: Sandbox) -> list[ResultsPushed | RoundPushed]:
    events = [event for event in sandbox.local() if isinstance(event, ResultsPushed | RoundPushed)]
    sandbox.pull()
    return events


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
