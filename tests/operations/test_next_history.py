"""The history of a search is its state: reverting, forking and merging commits do what the words say."""

from pathlib import Path

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.repository.workspace import Target
from sweepledger.operations.rounds.next_round import ResultsPending, RoundDue
from sweepledger.verbs.cluster.next_ import write_next
from tests.repository import Sandbox, replace_in
from tests.searches import active, begun, due, followed, hill, leave, record


def ask(sandbox: Sandbox, branch: str = "main") -> str:
    """Ask for the next round by a commit; give the batch's name."""
    (step,) = write_next(sandbox.workspace, base="HEAD")
    assert isinstance(step.step, RoundDue)
    sandbox.commit(f"Ask for round {step.step.round.number}")
    sandbox.git("push", "-q", "origin", branch)
    return step.step.batch.name


def test_reverted_last_results_recorded_anew_add_the_same_round(sandbox: Sandbox, results: Path) -> None:
    first = begun(sandbox)
    before = sandbox.git("rev-parse", "HEAD^{tree}")
    (collected,) = record(sandbox, results)
    sandbox.git("revert", "--no-edit", "HEAD")
    sandbox.push()

    assert sandbox.git("rev-parse", "HEAD^{tree}") == before
    step = followed(sandbox.workspace)
    assert isinstance(step.step, ResultsPending)
    assert (step.step.evidence.pending, step.step.evidence.observations) == ((first,), ())
    (again,) = record(sandbox, results)
    assert due(again).batch == due(collected).batch


def test_a_merge_of_two_branches_pools_their_evidence(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, settings="")
    record(sandbox, results)
    sandbox.git("checkout", "-q", "-b", "fork")
    replace_in(hill(sandbox), "seed: 7", "seed: 8")
    forked = ask(sandbox, "fork")
    for batch in active(sandbox.workspace, "HEAD"):
        leave(results, batch)
    commit_results(Target(sandbox.workspace.repository, "origin", "fork"), on_volume(results), {forked})
    sandbox.git("pull", "-q", "--ff-only", "origin", "fork")
    sandbox.git("checkout", "-q", "main")
    straight = ask(sandbox)
    record(sandbox, results)
    # Records are a file a batch, so only what is derived from them is in conflict.
    sandbox.git("merge", "-q", "--no-edit", "-X", "ours", "fork")

    step = followed(sandbox.workspace)

    assert due(step).round.number == 3
    pooled = {(observation.round, observation.trial) for observation in due(step).evidence.observations}
    assert sorted(number for number, _ in pooled if number is not None) == [1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert straight != forked
    ask(sandbox)
    record(sandbox, results)
    assert len((sandbox.root / "results/hill/summary.csv").read_text().splitlines()) == 1 + 12
