"""Static sweeps in rounds: the same trials in the same order, some at a time, until results end them."""

from pathlib import Path
from typing import Any

import pytest

from sweepledger.operations.rounds.next_round import RoundDue, SearchEnded
from sweepledger.repo.batches import StoredBatch
from sweepledger.verbs.cluster.next_ import write_next
from tests.repository import Sandbox, replace_in
from tests.searches import active, begun, due, hill, record

SEVEN: dict[str, Any] = {"method": "random", "size": 3, "rounds": 9, "more": "run_cap: 7\n"}
"""Seven random configurations, three at a time."""


def stored(sandbox: Sandbox) -> list[StoredBatch]:
    return sorted(sandbox.batches(), key=lambda batch: batch.lock.number)


def trials(sandbox: Sandbox) -> list[str]:
    """List the digests of all trials of the repository, in the order in which they were requested."""
    return [trial.digest for batch in stored(sandbox) for trial in batch.trials]


def finished(sandbox: Sandbox, results: Path) -> list[Any]:
    steps = []
    while active(sandbox.workspace):
        steps += [commit.step for commit in record(sandbox, results)]
    return steps


def test_the_rounds_of_a_static_sweep_are_its_trials_in_their_order(sandbox: Sandbox, results: Path) -> None:
    hill(sandbox, method="random", size=99, rounds=1, more="run_cap: 7\n")
    sandbox.new_batch()
    whole = [trial.digest for trial in stored(sandbox)[0].trials]
    sandbox.git("clean", "-qfdx", "overlays", "sweeps", "base")

    begun(sandbox, **SEVEN)
    steps = finished(sandbox, results)

    assert [(batch.lock.trials, batch.lock.round, batch.lock.method) for batch in stored(sandbox)] == [
        (3, 1, "random"),
        (3, 2, "random"),
        (1, 3, "random"),
    ]
    assert trials(sandbox) == whole
    assert [type(step) for step in steps] == [RoundDue, RoundDue, SearchEnded]
    assert steps[-1].reason == "exhausted"
    assert sandbox.git("log", "-1", "--format=%B").count("Next: none (exhausted: all 7 configurations") == 1

    hill(sandbox, **{**SEVEN, "more": "run_cap: 9\n"})
    (step,) = write_next(sandbox.workspace)
    assert (due(step).round.number, len(due(step).trials)) == (4, 2), "further values, in a further round"
    assert len(trials(sandbox)) == len({*trials(sandbox)}) == 9
    sandbox.commit("Ask for more")
    assert sandbox.check().problems == ()


@pytest.mark.parametrize(
    ("size", "goal", "reason"),
    [("2", "maximize, target: -9", "target"), ("2, patience: 1", "maximize", "patience")],
    ids=["target", "patience"],
)
def test_results_end_a_static_sweep(
    sandbox: Sandbox, results: Path, size: str, goal: str, reason: str
) -> None:
    spec = hill(sandbox, **{**SEVEN, "size": size})
    replace_in(spec, "goal: maximize}", f"goal: {goal}}}")
    sandbox.write("sweepledger.yaml", "version: 1\nnext: collector\n")
    sandbox.publish_batches("Ask for a sweep")

    steps = finished(sandbox, results)

    assert steps[-1].reason == reason
    assert len(trials(sandbox)) < 7


def test_a_sweep_that_began_without_rounds_goes_on_with_them(sandbox: Sandbox, results: Path) -> None:
    hill(sandbox, **{**SEVEN, "more": "run_cap: 3\n"})
    spec = sandbox.root / "sweeps/hill.yaml"
    with_rounds = spec.read_text()
    sandbox.write("sweepledger.yaml", "version: 1\nnext: collector\n")
    spec.write_text(with_rounds.replace("rounds: {size: 3, max: 9}\n", ""))
    sandbox.publish_batches("Ask at once")
    record(sandbox, results)

    spec.write_text(with_rounds.replace("run_cap: 3", "run_cap: 7"))
    (step,) = write_next(sandbox.workspace)

    assert isinstance(step.step, RoundDue)
    assert (step.step.round.number, len(step.step.trials)) == (1, 3)
    assert {observation.round for observation in step.step.evidence.observations} == {0}
