"""A search that nobody looks after: one merged spec, followed by `sweep cluster local` to its last results."""

from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.operations.rounds.next_round import RoundDue, SearchEnded
from sweepledger.operations.rounds.round_commit import PushedBatch
from tests.repository import Sandbox
from tests.searches import begun, hill


def played(sandbox: Sandbox) -> list[ResultsCommit | PushedBatch]:
    events = [event for event in sandbox.local() if isinstance(event, ResultsCommit | PushedBatch)]
    sandbox.pull()
    return events


def test_a_search_that_waits_for_nothing_but_its_next_round_goes_on_by_itself(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=1)
    (first,) = played(sandbox)
    hill(sandbox, size=2, rounds=2)
    sandbox.publish("Search on")

    result, collected = played(sandbox)

    assert isinstance(first, ResultsCommit)
    assert isinstance(result, PushedBatch)
    assert isinstance(result.due, RoundDue)
    assert result.due.round.number == 2
    assert sandbox.git("log", "-2", "--format=%s").splitlines()[1] == "next(hill): round 2, 2 trials of tpe"
    assert isinstance(collected, ResultsCommit)
    assert isinstance(collected.step, SearchEnded)
