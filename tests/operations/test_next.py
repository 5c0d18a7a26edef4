"""Rounds of a search: each a function of the spec, the records in git, the seed and its number."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweepledger.errors import IdleError, UsageError
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.repository.workspace import Target
from sweepledger.operations.rounds.next_round import ResultsPending, RoundBlocked, RoundDue, SearchEnded
from sweepledger.operations.rounds.round_commit import PushedBatch, push_idle_rounds
from sweepledger.problems import Severity
from sweepledger.search.adaptive import Round
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.verbs.cluster.next_ import (
    SearchStep,
    engine_warnings,
    evidence_weights,
    push_next,
    write_next,
)
from tests.builders import present
from tests.repository import Sandbox, replace_in
from tests.searches import active, begun, due, followed, hill, leave, record


def test_a_results_commit_adds_the_next_round_until_the_last(sandbox: Sandbox, results: Path) -> None:
    names = [begun(sandbox, rounds=3)]
    assert [(again.batch, again.is_pending) for again in sandbox.generate()] == [(None, False)]

    for number in (2, 3):
        (collected,) = record(sandbox, results)
        assert due(collected).round.number == number
        names.append(due(collected).batch.name)
        assert [later.batch for later in sandbox.generate()] == [None], "the collector alone goes on"
        assert [batch.name for batch in active(sandbox.workspace)] == [names[-1]]
        message = sandbox.git("log", "-1", "--format=%B")
        assert message.startswith("results(hill): ")
        assert f"\nNext: {names[-1]} (round {number}, 3 trials, optuna " in message
    (last,) = record(sandbox, results)

    assert isinstance(last.step, SearchEnded)
    assert last.step.reason == "rounds"
    assert "\nNext: none (rounds: all 3 rounds are recorded)\n" in sandbox.git("log", "-1", "--format=%B")
    assert active(sandbox.workspace) == ()
    assert sandbox.git("rev-list", "--count", "HEAD~3..HEAD").strip() == "3"


def test_an_empty_clone_draws_the_same_next_batch(sandbox: Sandbox, results: Path, tmp_path: Path) -> None:
    begun(sandbox, rounds=3)
    record(sandbox, results)
    subprocess.run(["git", "clone", "-q", str(sandbox.remote), str(tmp_path / "clone")], check=True)
    clone = Sandbox(sandbox.remote, tmp_path / "clone")
    (batch,) = clone.active()
    requested = clone.root / "overlays/active" / batch
    want = {path.name: path.read_bytes() for path in requested.iterdir()}
    # The commit asks for the following batch itself: without that it has to be worked out anew.
    clone.git("rm", "-rq", str(requested))
    clone.commit("Forget it")

    (step,) = write_next(clone.workspace, base="HEAD")

    assert (due(step).round.number, due(step).batch.name) == (2, batch)
    assert {path.name: path.read_bytes() for path in requested.iterdir()} == want


def test_the_collector_adds_no_round_that_a_person_reviews(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, settings="")

    (collected,) = record(sandbox, results)

    assert collected.step is None
    assert active(sandbox.workspace) == ()
    assert "Next:" not in sandbox.git("log", "-1", "--format=%B")
    (step,) = write_next(sandbox.workspace)
    assert isinstance(step.step, RoundDue)
    sandbox.git("checkout", "-q", "-b", "round-2")
    sandbox.commit("Ask for round 2")
    assert errors(sandbox, "origin/main") == []


def errors(sandbox: Sandbox, base: str) -> list[str]:
    report = sandbox.check(base=base)
    return [str(problem) for problem in report.problems if problem.severity is Severity.ERROR]


def test_a_sweep_without_rounds_is_none_and_no_search_is_no_fault(sandbox: Sandbox) -> None:
    sandbox.spec()

    with pytest.raises(UsageError, match="peak has no rounds: its method is grid"):
        write_next(sandbox.workspace, ["peak"])
    with pytest.raises(IdleError, match="no sweep here has rounds"):
        write_next(sandbox.workspace)


def test_a_budget_ends_a_search_before_a_round_beyond_it(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, more="budget: {max_trials: 5}\n", rounds=9)
    (first,) = record(sandbox, results)
    assert due(first).batch.lock.trials == 2

    (second,) = record(sandbox, results)

    assert isinstance(second.step, SearchEnded)
    assert second.step.reason == "budget"


def test_a_changed_spec_goes_on_from_the_evidence_there_is(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, rounds=1)
    (first,) = record(sandbox, results)
    assert isinstance(first.step, SearchEnded)
    hill(sandbox, rounds=2, method="cma-es")
    sandbox.commit("Go on with another sampler")

    step = followed(sandbox.workspace)

    assert isinstance(step.step, RoundDue)
    assert step.step.round.number == 2
    assert [observation.round for observation in step.step.evidence.observations] == [1, 1, 1]
    assert step.step.batch.lock.method == "cma-es"


def test_another_round_than_the_records_give_is_refused(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, settings="")
    record(sandbox, results)
    text = hill(sandbox).read_text()
    sandbox.write("sweeps/hill.yaml", text.replace("seed: 7", "seed: 8"))
    (other,) = write_next(sandbox.workspace)
    sandbox.write("sweeps/hill.yaml", text)
    assert isinstance(other.step, RoundDue)
    sandbox.commit("Ask for a round that nobody drew")

    (error,) = errors(sandbox, "origin/main")

    assert error.startswith(f"overlays/active/{other.step.batch.name}: the records do not give this batch")
    assert error.splitlines()[0].endswith("[drift]")


def test_another_engine_is_named(sandbox: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(sandbox, settings="")
    record(sandbox, results)
    (step,) = write_next(sandbox.workspace)
    made = due(step).round
    sandbox.commit("Ask for round 2")

    def newer(*arguments: Any, **options: Any) -> Any:
        outcome = next_round(*arguments, **options)
        return replace(outcome, engine="optuna 9.9.9") if isinstance(outcome, Round) else outcome

    monkeypatch.setattr("sweepledger.operations.rounds.next_round.next_round", newer)

    (problem,) = errors(sandbox, "origin/main")

    assert f"it was drawn by {made.engine}; here is optuna 9.9.9" in problem
    assert "[engine-differs]" in problem
    sandbox.git("reset", "-q", "--hard", "HEAD~1")
    (later,) = write_next(sandbox.workspace)
    (warning,) = engine_warnings(later.step)
    assert (warning.code, warning.severity) == ("engine-differs", Severity.WARNING)
    assert "round 2 is drawn by optuna 9.9.9, the one before by optuna" in warning.message


RIVAL = """#!/bin/sh
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
[ ! -e lost ] || exit 0
touch lost
made=$(git -c user.name=R -c user.email=r@example.org commit-tree main^{tree} -p main -m rival)
git update-ref refs/heads/main "$made"
"""
"""A hook that lets another commit win the branch, once."""

REFUSE = """#!/bin/sh
while read -r old new ref; do
  [ -z "$(git diff --name-only --diff-filter=A "$old" "$new" -- overlays/active)" ] || exit 1
done
"""
"""A hook that takes results, and no new batch."""


def hook(sandbox: Sandbox, text: str) -> None:
    path = sandbox.remote / "hooks/pre-receive"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_a_collector_that_loses_the_branch_or_runs_twice_adds_the_round_once(
    sandbox: Sandbox, results: Path
) -> None:
    begun(sandbox)
    hook(sandbox, RIVAL)

    (collected,) = record(sandbox, results)

    assert [batch.name for batch in active(sandbox.workspace)] == [due(collected).batch.name]
    subjects = sandbox.git("log", "-2", "--format=%s").splitlines()
    assert subjects[1] == "rival"
    assert subjects[0].startswith("results(hill)")
    assert sandbox.collect(results) == ()
    assert sandbox.git("log", "-2", "--format=%s").splitlines() == subjects


def test_results_are_recorded_where_a_server_rejects_a_round(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox)
    hook(sandbox, REFUSE)

    (collected,) = record(sandbox, results)

    assert isinstance(collected.step, RoundBlocked)
    assert "\nNext: none (blocked: the round was refused: " in sandbox.git("log", "-1", "--format=%B")
    (blocked,) = push_idle_rounds(sandbox.target())
    assert isinstance(blocked, RoundBlocked)
    hook(sandbox, "#!/bin/sh\n")
    (pushed,) = push_idle_rounds(sandbox.target())
    assert isinstance(pushed, PushedBatch)
    assert isinstance(pushed.due, RoundDue)
    assert pushed.due.round.number == 2


def test_an_undrawn_round_waits(sandbox: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(sandbox)

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("in a library")

    with monkeypatch.context() as patch:
        patch.setattr("sweepledger.operations.rounds.next_round.next_round", broken)
        (collected,) = record(sandbox, results)
        (blocked,) = push_idle_rounds(sandbox.target())
    assert isinstance(blocked, RoundBlocked)
    assert isinstance(collected.step, RoundBlocked)
    assert "ZeroDivisionError" in collected.step.reason

    (pushed,) = push_idle_rounds(sandbox.target())

    assert isinstance(pushed, PushedBatch)


def test_where_a_person_merges_a_workflow_asks_on_a_branch_once(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, settings="next: workflow\n")
    record(sandbox, results)
    target = sandbox.target(is_reviewed=True)

    (step,) = push_next(sandbox.workspace, target)
    (again,) = push_next(sandbox.workspace, target)

    assert again.pushed is None
    assert isinstance(again.step, RoundDue), "it is due, and proposed already"
    assert again.step.batch.name == present(step.pushed).due.batch.name
    head = sandbox.head()
    listed = sandbox.git("ls-remote", "origin", "refs/heads/next/*").split()
    assert listed == [present(step.pushed).commit, f"refs/heads/next/hill/{head[:12]}"]


def test_cancelling_the_running_round_ends_the_search(sandbox: Sandbox, results: Path) -> None:
    name = begun(sandbox)
    sandbox.cancel("hill", push=True)

    (collected,) = sandbox.collect(results, alive=())

    assert isinstance(collected.step, SearchEnded)
    assert collected.step.reason == "cancelled"
    assert name in collected.step.text


def weights(step: SearchStep) -> list[tuple[str, int]]:
    return [(weight.use, weight.trials) for weight in evidence_weights(due(step))]


def test_a_warm_start_reads_another_space_as_the_spec_says(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, "dale", rounds=1)
    record(sandbox, results)
    spec = hill(sandbox, more="start: [dale]\n")
    sandbox.commit("Start from there")
    alike = followed(sandbox.workspace)
    wider = spec.read_text().replace("  x: {min", "  z: {min: 0.0, max: 1.0}\n  height: {min")
    spec.write_text(wider.replace("  bias: {values: [0.0, 0.5]}\n", ""))
    sandbox.commit("Start from another space")
    apart = followed(sandbox.workspace)
    mapping = "{sweep: dale, rename: {x: height}, values: {z: 0.25}, ignore: [bias]}"
    replace_in(spec, "start: [dale]", f"start: [{mapping}]")
    shown = sandbox.sweep("plan", "hill").stdout
    sandbox.commit("Say how its trials are read")

    step = followed(sandbox.workspace)

    assert [observation.round for observation in due(alike).evidence.observations] == [None] * 3
    assert [weights(each) for each in (alike, apart, step)] == [
        [("as they are", 3)],
        [("outside", 3)],
        [("as they are", 3)],
    ]
    observations = due(step).evidence.observations
    assert [sorted(one.configuration) for one in observations] == [["height", "z"]] * 3
    assert {one.configuration["z"] for one in observations} == {0.25}
    assert "dale is read with x as height, z = 0.25, without bias" in " ".join(shown.split())
    explained = sandbox.sweep("cluster", "next", "hill", "--check", "--explain").stdout
    assert "3 trials of a warm start are used" in explained


PRICED = "pools: {cpu: {node: {cpu: 4, memory: 8Gi}, price: 1.0}}\ndefaults: {pool: cpu}\ncurrency: EUR\n"


@pytest.mark.parametrize(("seconds", "is_borne"), [(30.0, True), (60.0, False)])
def test_a_round_uses_the_budget(sandbox: Sandbox, results: Path, seconds: float, *, is_borne: bool) -> None:
    team = "budgets: {vision: {sweeps: ['hill'], money: 0.02}}\n"
    begun(sandbox, settings=f"next: collector\n{PRICED}{team}")
    month = sandbox.git("log", "-1", "--format=%cs")[:7]
    ended = {"started": f"{month}-01T00:00:00Z", "finished": f"{month}-01T00:01:00Z", "seconds": seconds}
    for batch in active(sandbox.workspace):
        leave(results, batch, **ended)

    (collected,) = sandbox.collect(results)

    # At most 0.0125 EUR is promised to a round, and as much have three trials of a minute cost.
    if is_borne:
        assert due(collected)
    else:
        assert isinstance(collected.step, RoundBlocked)
        assert collected.step.reason.startswith("the budget of vision has less than ")


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
