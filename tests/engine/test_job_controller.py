"""The decision alone: no process, no file, and a clock that is a number."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sweepledger.engine.local.events import JobCondition, JobCreated, JobFinished
from sweepledger.engine.local.job_controller import (
    MAX_DELAY_SECONDS,
    Action,
    FailedAttempt,
    IndexState,
    IndexStates,
    JobState,
    KillPod,
    ObservedState,
    StartPod,
    reconcile,
)
from sweepledger.engine.local.local_batch import DesiredBatch, LocalBatch, LocalPod, ResourceAmounts
from sweepledger.structs.record import Status
from tests.engine.batches import ROOMY, indexed

OK = IndexState(Status.OK)
DIVERGED = IndexState(Status.DIVERGED)
PRUNED = IndexState(Status.PRUNED)


def failed(*codes: int, at: float = 0.0) -> IndexState:
    return IndexState(None, tuple(FailedAttempt(code, at) for code in codes))


def seen(
    job: LocalBatch,
    indexes: Mapping[int, IndexState] | None = None,
    *,
    pods: tuple[LocalPod, ...] = (),
    capacity: ResourceAmounts = ROOMY,
    slots: int | None = None,
) -> ObservedState:
    states = {job.name: IndexStates(indexes)}
    return ObservedState({job.name: JobState(job.digest, 0.0)}, states, pods, capacity, slots)


def pod(job: LocalBatch, index: int, *, stopping: bool = False, started: float = 0.0) -> LocalPod:
    desired = DesiredBatch(job, Path("code"))
    return LocalPod(desired, index, 0, f"u{index}", started, stopping="it must" if stopping else None)


def started(actions: tuple[Action, ...]) -> list[int]:
    return [action.index for action in actions if isinstance(action, StartPod)]


def one(does: int, **changes: int) -> LocalBatch:
    return indexed([""] * does, **changes)  # type: ignore[arg-type]


def test_lower_indexes_start_first_and_parallelism_is_kept() -> None:
    job = one(5, parallelism=2)
    stopping = (pod(job, 0, stopping=True), pod(job, 1))

    assert started(reconcile([job], seen(job), 0.0)) == [0, 1]
    assert started(reconcile([job], seen(job, {0: OK}, pods=(pod(job, 1),)), 0.0)) == [2]
    assert started(reconcile([job], seen(job, pods=stopping), 0.0)) == [], "they still use capacity"


def test_pods_fit_the_machine() -> None:
    job = one(5, parallelism=5)
    two_cpus, two_gib = ResourceAmounts(2000, 1 << 40), ResourceAmounts(64_000, 2 << 30)

    assert started(reconcile([job], seen(job, capacity=two_cpus), 0.0)) == [0, 1]
    assert started(reconcile([job], seen(job, capacity=two_gib), 0.0)) == [0, 1]
    assert started(reconcile([job], seen(job, slots=3), 0.0)) == [0, 1, 2]
    assert started(reconcile([job], seen(job, slots=3, pods=(pod(job, 4),)), 0.0)) == [0, 1]


def test_batches_share_the_machine_in_their_order() -> None:
    first, second = indexed([""]), indexed(["", ""], name="lr-b2-00000002")
    states = {job.name: JobState(job.digest, 0.0) for job in (first, second)}

    actions = reconcile([first, second], ObservedState(states, {}, (), ROOMY, 2), 0.0)

    assert actions == (StartPod("lr-b1-00000001", 0, 0), StartPod("lr-b2-00000002", 0, 0))


def test_a_failed_index_waits_longer_after_each_failure() -> None:
    job = one(1, retries=20)

    def ready_after(failures: int) -> float:
        state = {0: failed(*[1] * failures, at=100.0)}
        return next(
            wait / 4 for wait in range(1000) if started(reconcile([job], seen(job, state), 100 + wait / 4))
        )

    assert [ready_after(count) for count in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0]
    assert ready_after(20) == MAX_DELAY_SECONDS
    assert started(reconcile([job], seen(job, {0: failed(1, at=1e9)}), 5.0)) == [0], "a clock was set back"
    other = one(3, parallelism=1, retries=1)
    assert started(reconcile([other], seen(other, {0: failed(1, at=10.0)}), 10.5)) == [1]


def test_a_pruned_trial_counts_as_completed_for_its_job() -> None:
    job = one(2, parallelism=1)

    assert started(reconcile([job], seen(job, {0: PRUNED}), 0.0)) == [1]
    assert reconcile([job], seen(job, {0: PRUNED, 1: OK}), 0.0) == (
        JobFinished(job.name, JobCondition.COMPLETE, "CompletionsReached"),
    )


@pytest.mark.parametrize("lost", [DIVERGED, failed(42), failed(1, 1)], ids=["diverged", "42", "spent"])
def test_a_job_with_a_failed_index_fails_when_the_others_have_finished(lost: IndexState) -> None:
    job = one(2, retries=1)

    early = reconcile([job], seen(job, {0: lost}), 99.0)
    late = reconcile([job], seen(job, {0: lost, 1: OK}), 99.0)

    assert started(early) == [1]
    assert late == (JobFinished(job.name, JobCondition.FAILED, "FailedIndexes"),)


def test_a_bad_sweep_ends_the_pods_first_and_then_the_job() -> None:
    job = one(4, retries=3)
    state = {0: failed(43)}

    first = reconcile([job], seen(job, state, pods=(pod(job, 1), pod(job, 2, stopping=True))), 99.0)
    second = reconcile([job], seen(job, state, pods=(pod(job, 1, stopping=True),)), 99.0)
    third = reconcile([job], seen(job, state), 99.0)

    assert first == (KillPod("u1", "PodFailurePolicy"),)
    assert second == ()
    assert third == (JobFinished(job.name, JobCondition.FAILED, "PodFailurePolicy"),)


def test_too_many_failed_indexes_end_the_job_early() -> None:
    job = one(4)
    strict = replace(job, max_failed=1)
    state = {0: DIVERGED, 1: DIVERGED}

    actions = reconcile([strict], seen(job, state), 99.0)

    assert actions == (JobFinished(job.name, JobCondition.FAILED, "MaxFailedIndexesExceeded"),)


def test_a_job_past_its_deadline_fails() -> None:
    job = one(2)
    short = replace(job, deadline=10.0)

    assert started(reconcile([short], seen(job), 10.0)) == [0, 1]
    assert reconcile([short], seen(job), 10.5) == (
        JobFinished(job.name, JobCondition.FAILED, "DeadlineExceeded"),
    )


def test_a_pod_past_its_deadline_is_killed_once() -> None:
    job = one(1)

    assert reconcile([job], seen(job, pods=(pod(job, 0),)), 300.5) == (KillPod("u0", "deadline"),)
    assert reconcile([job], seen(job, pods=(pod(job, 0, stopping=True),)), 300.5) == ()


@dataclass
class World:
    """A machine that exists in numbers only: outcomes are drawn, engines are killed now and then."""

    job: LocalBatch
    slots: int
    jobs: dict[str, JobState] = field(default_factory=dict)
    indexes: dict[str, IndexStates] = field(default_factory=dict)
    pods: dict[str, LocalPod] = field(default_factory=dict)
    starts: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    now: float = 0.0

    def observed(self) -> ObservedState:
        return ObservedState(self.jobs, self.indexes, tuple(self.pods.values()), ROOMY, self.slots)

    def index(self, job: str, number: int) -> IndexState:
        return self.indexes.get(job, IndexStates()).get(number, IndexState())

    def act(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case JobCreated(name):
                    self.jobs[name] = JobState(self.job.digest, self.now)
                case StartPod(name, number, failures):
                    self.start(name, number, failures)
                case KillPod(uid):
                    self.pods[uid] = replace(self.pods[uid], stopping="it must")
                case JobFinished(name, condition):
                    assert not [pod for pod in self.pods.values() if pod.batch.name == name]
                    self.jobs[name] = replace(self.jobs[name], condition=condition)
                case _:
                    raise AssertionError(action)

    def start(self, name: str, number: int, failures: int) -> None:
        state = self.index(name, number)
        assert state.result is None
        assert failures == len(state.failures)
        assert self.jobs[name].condition is None
        assert number not in {pod.index for pod in self.pods.values()}
        self.starts[number] += 1
        uid, desired = f"{number}-{self.starts[number]}", DesiredBatch(self.job, Path("code"))
        self.pods[uid] = LocalPod(desired, number, failures, uid, self.now)

    def end(self, uid: str, code: int) -> None:
        gone = self.pods.pop(uid)
        state = self.index(gone.batch.name, gone.index)
        if code == 0:
            state = replace(state, result=Status.OK)
        elif code == 42:
            state = replace(state, result=Status.DIVERGED)
        else:
            state = replace(state, failures=(*state.failures, FailedAttempt(code, self.now)))
        self.indexes[gone.batch.name] = IndexStates(
            {**self.indexes.get(gone.batch.name, {}), gone.index: state}
        )

    def crash(self) -> None:
        self.lost.update(pod.index for pod in self.pods.values())
        self.pods.clear()


BATCHES = st.builds(
    lambda count, parallelism, retries: indexed([""] * count, parallelism=parallelism, retries=retries),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 2),
)
CODES = st.sampled_from([0, 0, 0, 1, 1, 42, 137, 43])


@settings(max_examples=50, deadline=None)
@given(BATCHES, st.integers(1, 4), st.data())
def test_every_batch_ends_and_all_invariants_hold(job: LocalBatch, slots: int, data: st.DataObject) -> None:
    world = World(job, slots)
    for _ in range(300):
        world.act(reconcile([job], world.observed(), world.now))
        assert len(world.pods) <= slots
        assert len(world.pods) <= job.parallelism
        world.now += data.draw(st.sampled_from([0.0, 0.5, 100.0]))
        if world.pods:
            uid = data.draw(st.sampled_from(sorted(world.pods)))
            match data.draw(st.sampled_from(["end", "end", "end", "wait", "crash"])):
                case "end":
                    world.end(uid, data.draw(CODES))
                case "crash":
                    world.crash()
        elif all(state.condition for state in world.jobs.values()) and world.jobs:
            break
    else:
        world.now += 1e6
        for _ in range(60):
            world.act(reconcile([job], world.observed(), world.now))
            for uid in list(world.pods):
                world.end(uid, 0)

    assert {state.condition is not None for state in world.jobs.values()} == {True}
    assert reconcile([job], world.observed(), world.now) == ()
    for number, count in world.starts.items():
        assert count <= 1 + job.retries + world.lost[number]


def test_a_paused_job_starts_nothing_kills_nothing_and_does_not_reach_its_deadline() -> None:
    job = replace(one(3, parallelism=2), is_paused=True)

    assert reconcile([job], seen(job, pods=(pod(job, 0),)), 1.0) == ()
    assert reconcile([replace(job, deadline=10.0)], seen(job), 11.0) == ()
    assert reconcile([job], seen(job, {0: OK, 1: OK, 2: OK}), 1.0) == (
        JobFinished(job.name, JobCondition.COMPLETE, "CompletionsReached"),
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([OK, DIVERGED, failed(1), IndexState()]))))
def test_counts_are_those_of_all_states_after_any_changes(changes: list[tuple[int, IndexState]]) -> None:
    states = IndexStates()
    for index, state in changes:
        states[index] = state
        first = next(
            (number for number in range(7) if number not in states or states[number].result is None), 7
        )

        assert states == dict(states.items())
        results = [known.result for known in states.values() if known.result is not None]
        assert states.finished == len(results)
        assert states.successes == sum(result.is_success for result in results)
        assert states.failing == {number: known for number, known in states.items() if known.failures}
        assert states.without_finished(range(7)) == range(first, 7)
