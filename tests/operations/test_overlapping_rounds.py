"""Overlapping rounds: several batches of a search are active, and a commit is still its whole state."""

import subprocess
from itertools import chain
from pathlib import Path
from typing import Any

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit, commit_results
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.rounds.next_round import ResultsPending, RoundDue, SearchEnded
from sweepledger.operations.rounds.round_commit import PushedBatch, push_idle_rounds
from sweepledger.repo.batches import StoredBatch
from sweepledger.verbs.cluster.next_ import write_next
from tests.operations.test_next import errors
from tests.repository import Sandbox, replace_in
from tests.searches import active, begun, due, followed, hill, leave

OVERLAP = "3, ahead: 3"
"""In the place of a size: three rounds may be active."""


def filled(sandbox: Sandbox, **changes: Any) -> list[StoredBatch]:
    """Begin a search, and let the collector add rounds until no more may be active."""
    begun(sandbox, size=OVERLAP, **{"rounds": 6, **changes})
    assert all(isinstance(pushed, PushedBatch) for pushed in push_idle_rounds(sandbox.target()))
    sandbox.pull()
    return by_number(sandbox)


def by_number(sandbox: Sandbox) -> list[StoredBatch]:
    return sorted(active(sandbox.workspace), key=lambda batch: batch.lock.number)


def ended(sandbox: Sandbox, results: Path, *batches: StoredBatch) -> tuple[ResultsCommit, ...]:
    """Let some of the active batches end, and the collector record them."""
    for batch in batches:
        leave(results, batch)
    made = commit_results(sandbox.target(), on_volume(results), ())
    sandbox.pull()
    return made


def requested(sandbox: Sandbox) -> list[str]:
    """List the trial of every row of every batch at HEAD."""
    folders = (
        path for state in ("active", "archive") for path in (sandbox.root / "overlays" / state).iterdir()
    )
    tables = [(path / "hyperparams.csv").read_text().splitlines()[1:] for path in folders if path.is_dir()]
    return [row.split(",")[0] for row in chain(*tables)]


def test_the_collector_keeps_as_many_rounds_active_as_the_spec_says(sandbox: Sandbox, results: Path) -> None:
    batches = filled(sandbox)

    assert [(batch.lock.round, batch.lock.ahead) for batch in batches] == [(1, 3), (2, 3), (3, 3)]
    subjects = sandbox.git("log", "-2", "--format=%s").splitlines()
    assert subjects == [f"next(hill): round {number}, 3 trials of tpe" for number in (3, 2)]
    assert errors(sandbox, "HEAD~2") == []
    step = followed(sandbox.workspace)
    assert isinstance(step.step, ResultsPending)
    assert step.step.evidence.pending == tuple(batch.name for batch in batches)
    assert len({*requested(sandbox)}) == 9

    (collected,) = ended(sandbox, results, batches[1])

    assert collected.batches == (batches[1].name,)
    assert due(collected).round.number == 4
    assert [batch.lock.round for batch in by_number(sandbox)] == [1, 3, 4]
    assert {observation.round for observation in due(collected).evidence.observations} == {2}
    assert len(due(collected).evidence.pending_trials) == 6


def test_a_search_ends_with_its_last_pending_round(sandbox: Sandbox, results: Path) -> None:
    filled(sandbox)
    steps = []
    while batches := by_number(sandbox):
        # The last one first: rounds end in any order.
        (collected,) = ended(sandbox, results, batches[-1])
        steps.append(collected.step)

    assert [type(step) for step in steps] == [RoundDue] * 3 + [ResultsPending] * 2 + [SearchEnded]
    assert (
        sandbox.git("log", "-1", "--format=%B").count("Next: none (rounds: all 6 rounds are recorded)") == 1
    )
    trials = requested(sandbox)
    assert len(trials) == len({*trials}) == 18


def test_two_collectors_add_one_round(sandbox: Sandbox, results: Path, tmp_path: Path) -> None:
    first, second, _ = filled(sandbox)
    clone = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(sandbox.remote), str(clone)], check=True)
    for name, value in (("user.name", "T"), ("user.email", "t@example.org")):
        subprocess.run(["git", "config", name, value], cwd=clone, check=True)
    leave(results, first)
    other = Target(Workspace.find(clone).repository, "origin", "main")
    here = sandbox.target()
    stale = here.tip()
    # Both have seen the same commit; the other one is faster with the first batch, and this one with the second.
    commit_results(other, on_volume(results), ())
    leave(results, second)
    made = commit_results(here, on_volume(results), ())
    again = commit_results(other, on_volume(results), ())
    list(push_idle_rounds(other))
    list(push_idle_rounds(here))
    sandbox.pull()

    assert stale != here.tip()
    assert [commit.batches for commit in made] == [(second.name,)]
    assert again == ()
    assert [batch.lock.round for batch in by_number(sandbox)] == [3, 4, 5]
    trials = requested(sandbox)
    assert len(trials) == len({*trials}) == 15


def test_a_round_too_many_is_refused(sandbox: Sandbox) -> None:
    filled(sandbox)
    extra = hill(sandbox, size="3, ahead: 4", rounds=6)
    write_next(sandbox.workspace, base="HEAD")
    replace_in(extra, "ahead: 4", "ahead: 3")
    base = sandbox.head()
    sandbox.commit("One more")

    (problem,) = errors(sandbox, base)
    assert "the records do not give this batch yet" in problem
