"""The decision alone: no process, no file, and a clock that is a number."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepledger.engine.local.job_controller import (
    MAX_DELAY_SECONDS,
    Action,
    CreateJob,
    FailedAttempt,
    FinishJob,
    IndexState,
    IndexStates,
    JobCondition,
    JobState,
    KillPod,
    ObservedState,
    PodState,
    PruneJob,
    RefuseEdit,
    StartPod,
    reconcile,
)
from sweepledger.engine.local.job_spec import BatchSpec, JobSpec, ResourceAmounts
from sweepledger.structs.record import Status
from tests.engine.batches import ROOMY, indexed, jobs, parsed

OK = IndexState(Status.OK)
DIVERGED = IndexState(Status.DIVERGED)
PRUNED = IndexState(Status.PRUNED)


def failed(*codes: int, at: float = 0.0) -> IndexState:
    return IndexState(None, tuple(FailedAttempt(code, at) for code in codes))


def seen(
    job: JobSpec,
    indexes: Mapping[int, IndexState] | None = None,
    *,
    pods: tuple[PodState, ...] = (),
    capacity: ResourceAmounts = ROOMY,
    slots: int | None = None,
) -> ObservedState:
    state = JobState(job.digest, 0.0, indexes=IndexStates(indexes))
    return ObservedState({job.name: state}, pods, capacity, slots)


def pod(job: JobSpec, index: int, *, stopping: bool = False, started: float = 0.0) -> PodState:
    return PodState(f"u{index}", job.name, index, started, job.pod.requests, stopping=stopping)


def started(actions: tuple[Action, ...]) -> list[int]:
    return [action.index for action in actions if isinstance(action, StartPod)]


def one(does: int, **changes: int) -> tuple[BatchSpec, JobSpec]:
    batch = parsed(indexed([""] * does, **changes))  # type: ignore[arg-type]
    return batch, batch.jobs[0]


def test_new_jobs_are_created_before_pods_start() -> None:
    batch, job = one(2)

    assert reconcile([batch], ObservedState({}, (), ROOMY), 0.0) == (CreateJob(job.name),)


def test_lower_indexes_start_first_and_parallelism_is_kept() -> None:
    batch, job = one(5, parallelism=2)

    assert started(reconcile([batch], seen(job), 0.0)) == [0, 1]
    assert started(reconcile([batch], seen(job, {0: OK}, pods=(pod(job, 1),)), 0.0)) == [2]


def test_pods_that_are_being_stopped_still_use_capacity() -> None:
    batch, job = one(5, parallelism=2)

    pods = (pod(job, 0, stopping=True), pod(job, 1))

    assert started(reconcile([batch], seen(job, pods=pods), 0.0)) == []


def test_pods_fit_the_machine() -> None:
    batch, job = one(5, parallelism=5)
    two_cpus, two_gib = ResourceAmounts(2000, 1 << 40), ResourceAmounts(64_000, 2 << 30)

    assert started(reconcile([batch], seen(job, capacity=two_cpus), 0.0)) == [0, 1]
    assert started(reconcile([batch], seen(job, capacity=two_gib), 0.0)) == [0, 1]
    assert started(reconcile([batch], seen(job, slots=3), 0.0)) == [0, 1, 2]
    assert started(reconcile([batch], seen(job, slots=3, pods=(pod(job, 4),)), 0.0)) == [0, 1]


def test_batches_share_the_machine_in_their_order() -> None:
    first, second = parsed(indexed([""])), parsed(indexed(["", ""], name="lr-b2-00000002"))
    states = {job.name: JobState(job.digest, 0.0) for batch in (first, second) for job in batch.jobs}

    actions = reconcile([first, second], ObservedState(states, (), ROOMY, 2), 0.0)

    assert actions == (StartPod("lr-b1-00000001", 0, 0), StartPod("lr-b2-00000002", 0, 0))


def test_a_failed_index_waits_longer_after_each_failure() -> None:
    batch, job = one(1, retries=20)

    def ready_after(failures: int) -> float:
        state = {0: failed(*[1] * failures, at=100.0)}
        return next(
            wait / 4 for wait in range(1000) if started(reconcile([batch], seen(job, state), 100 + wait / 4))
        )

    assert [ready_after(count) for count in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0]
    assert ready_after(20) == MAX_DELAY_SECONDS


def test_a_clock_that_was_set_back_delays_no_index() -> None:
    batch, job = one(1, retries=1)

    assert started(reconcile([batch], seen(job, {0: failed(1, at=1e9)}), 5.0)) == [0]


def test_other_indexes_start_before_a_waiting_one() -> None:
    batch, job = one(3, parallelism=1, retries=1)

    assert started(reconcile([batch], seen(job, {0: failed(1, at=10.0)}), 10.5)) == [1]


def test_an_attempt_gets_the_number_of_failures_before_it() -> None:
    batch, job = one(1, retries=2)

    assert reconcile([batch], seen(job, {0: failed(1, 137)}), 99.0) == (StartPod(job.name, 0, 2),)


def test_a_job_is_complete_when_every_index_is_ok() -> None:
    batch, job = one(2)

    assert reconcile([batch], seen(job, {0: OK, 1: OK}), 0.0) == (
        FinishJob(job.name, JobCondition.COMPLETE, "CompletionsReached"),
    )


def test_a_pruned_trial_counts_as_completed_for_its_job() -> None:
    batch, job = one(2, parallelism=1)

    assert started(reconcile([batch], seen(job, {0: PRUNED}), 0.0)) == [1]
    assert reconcile([batch], seen(job, {0: PRUNED, 1: OK}), 0.0) == (
        FinishJob(job.name, JobCondition.COMPLETE, "CompletionsReached"),
    )


@pytest.mark.parametrize("lost", [DIVERGED, failed(42), failed(1, 1)], ids=["diverged", "42", "spent"])
def test_a_job_with_a_failed_index_fails_when_the_others_have_finished(lost: IndexState) -> None:
    batch, job = one(2, retries=1)

    early = reconcile([batch], seen(job, {0: lost}), 99.0)
    late = reconcile([batch], seen(job, {0: lost, 1: OK}), 99.0)

    assert started(early) == [1]
    assert late == (FinishJob(job.name, JobCondition.FAILED, "FailedIndexes"),)


def test_a_bad_sweep_ends_the_pods_first_and_then_the_job() -> None:
    batch, job = one(4, retries=3)
    state = {0: failed(43)}

    first = reconcile([batch], seen(job, state, pods=(pod(job, 1), pod(job, 2, stopping=True))), 99.0)
    second = reconcile([batch], seen(job, state, pods=(pod(job, 1, stopping=True),)), 99.0)
    third = reconcile([batch], seen(job, state), 99.0)

    assert first == (KillPod("u1", "PodFailurePolicy"),)
    assert second == ()
    assert third == (FinishJob(job.name, JobCondition.FAILED, "PodFailurePolicy"),)


def test_a_bad_sweep_stops_every_job_of_its_batch_but_the_complete() -> None:
    batch = parsed(jobs(["", "", ""]))
    states = {job.name: JobState(job.digest, 0.0) for job in batch.jobs}
    names = [job.name for job in batch.jobs]
    states[names[0]] = JobState(batch.jobs[0].digest, 0.0, indexes=IndexStates({0: OK}))
    states[names[1]] = JobState(batch.jobs[1].digest, 0.0, indexes=IndexStates({1: failed(43)}))

    actions = reconcile([batch], ObservedState(states, (), ROOMY), 99.0)

    assert actions == (
        FinishJob(names[0], JobCondition.COMPLETE, "CompletionsReached"),
        FinishJob(names[1], JobCondition.FAILED, "PodFailurePolicy"),
        FinishJob(names[2], JobCondition.FAILED, "BatchStopped"),
    )


def test_bad_hyperparameters_stop_only_their_own_job() -> None:
    batch = parsed(jobs(["", ""]))
    states = {job.name: JobState(job.digest, 0.0) for job in batch.jobs}
    first, second = batch.jobs
    states[first.name] = JobState(first.digest, 0.0, indexes=IndexStates({0: DIVERGED}))

    actions = reconcile([batch], ObservedState(states, (), ROOMY), 99.0)

    assert actions == (
        FinishJob(first.name, JobCondition.FAILED, "FailedIndexes"),
        StartPod(second.name, 1, 0),
    )


def test_a_single_job_fails_after_its_last_attempt() -> None:
    batch = parsed(jobs([""], retries=1))
    (job,) = batch.jobs

    assert started(reconcile([batch], seen(job, {0: failed(1)}), 99.0)) == [0]
    assert reconcile([batch], seen(job, {0: failed(1, 1)}), 99.0) == (
        FinishJob(job.name, JobCondition.FAILED, "FailedIndexes"),
    )


def test_too_many_failed_indexes_end_the_job_early() -> None:
    batch, job = one(4)
    strict = replace(job, max_failed=1)
    state = {0: DIVERGED, 1: DIVERGED}

    actions = reconcile([replace(batch, jobs=(strict,))], seen(job, state), 99.0)

    assert actions == (FinishJob(job.name, JobCondition.FAILED, "MaxFailedIndexesExceeded"),)


def test_a_job_past_its_deadline_fails() -> None:
    batch, job = one(2)
    short = replace(job, deadline=10.0)

    assert started(reconcile([replace(batch, jobs=(short,))], seen(job), 10.0)) == [0, 1]
    assert reconcile([replace(batch, jobs=(short,))], seen(job), 10.5) == (
        FinishJob(job.name, JobCondition.FAILED, "DeadlineExceeded"),
    )


def test_a_pod_past_its_deadline_is_killed_once() -> None:
    batch, job = one(1)

    assert reconcile([batch], seen(job, pods=(pod(job, 0),)), 300.5) == (KillPod("u0", "deadline"),)
    assert reconcile([batch], seen(job, pods=(pod(job, 0, stopping=True),)), 300.5) == ()


def test_jobs_that_are_not_desired_are_pruned_after_their_pods() -> None:
    _, job = one(2)

    assert reconcile([], seen(job, pods=(pod(job, 0),)), 0.0) == (KillPod("u0", "pruned"),)
    assert reconcile([], seen(job, pods=(pod(job, 0, stopping=True),)), 0.0) == ()
    assert reconcile([], seen(job), 0.0) == (PruneJob(job.name),)


def test_an_untouched_job_is_left_alone() -> None:
    _, job = one(2)

    assert reconcile([], seen(job, pods=(pod(job, 0),)), 0.0, untouched=[job.name]) == ()


def test_a_changed_job_is_refused_and_not_touched() -> None:
    batch, job = one(2)
    other = replace(job, digest="other")

    actions = reconcile([batch], seen(other, pods=(pod(job, 0),)), 0.0)

    assert actions == (RefuseEdit(job.name),)


def test_an_ended_job_starts_nothing_whatever_its_records_contain() -> None:
    batch, job = one(2)
    state = JobState(job.digest, 0.0, JobCondition.FAILED)

    assert reconcile([batch], ObservedState({job.name: state}, (), ROOMY), 99.0) == ()


@dataclass
class World:
    """A machine that exists in numbers only: outcomes are drawn, engines are killed now and then."""

    batch: BatchSpec
    slots: int
    jobs: dict[str, JobState] = field(default_factory=dict)
    pods: dict[str, PodState] = field(default_factory=dict)
    starts: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    now: float = 0.0

    def observed(self) -> ObservedState:
        return ObservedState(dict(self.jobs), tuple(self.pods.values()), ROOMY, self.slots)

    def index(self, job: str, number: int) -> IndexState:
        return self.jobs[job].indexes.get(number, IndexState())

    def act(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case CreateJob(name):
                    digest = next(job.digest for job in self.batch.jobs if job.name == name)
                    self.jobs[name] = JobState(digest, self.now)
                case StartPod(name, number, failures):
                    self.start(name, number, failures)
                case KillPod(uid):
                    self.pods[uid] = replace(self.pods[uid], stopping=True)
                case FinishJob(name, condition):
                    assert not [pod for pod in self.pods.values() if pod.job == name]
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
        self.pods[f"{number}-{self.starts[number]}"] = PodState(
            f"{number}-{self.starts[number]}", name, number, self.now, ResourceAmounts(1000)
        )

    def end(self, uid: str, code: int) -> None:
        gone = self.pods.pop(uid)
        state = self.index(gone.job, gone.index)
        if code == 0:
            state = replace(state, result=Status.OK)
        elif code == 42:
            state = replace(state, result=Status.DIVERGED)
        else:
            state = replace(state, failures=(*state.failures, FailedAttempt(code, self.now)))
        job = self.jobs[gone.job]
        self.jobs[gone.job] = replace(job, indexes=IndexStates({**job.indexes, gone.index: state}))

    def crash(self) -> None:
        self.lost.update(pod.index for pod in self.pods.values())
        self.pods.clear()


BATCHES = st.builds(
    lambda shape, count, parallelism, retries: parsed(
        indexed([""] * count, parallelism=parallelism, retries=retries)
        if shape
        else jobs([""] * count, retries=retries)
    ),
    st.booleans(),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 2),
)
CODES = st.sampled_from([0, 0, 0, 1, 1, 42, 137, 43])


@settings(max_examples=120, deadline=None)
@given(BATCHES, st.integers(1, 4), st.data())
def test_every_batch_ends_and_all_invariants_hold(batch: BatchSpec, slots: int, data: st.DataObject) -> None:
    world = World(batch, slots)
    job = batch.jobs[0]
    for _ in range(300):
        world.act(reconcile([batch], world.observed(), world.now))
        assert len(world.pods) <= slots
        for name, count in Counter(pod.job for pod in world.pods.values()).items():
            assert count <= next(one.parallelism for one in batch.jobs if one.name == name)
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
            world.act(reconcile([batch], world.observed(), world.now))
            for uid in list(world.pods):
                world.end(uid, 0)

    assert {state.condition is not None for state in world.jobs.values()} == {True}
    assert reconcile([batch], world.observed(), world.now) == ()
    for number, count in world.starts.items():
        assert count <= 1 + job.retries + world.lost[number]


@settings(max_examples=60, deadline=None)
@given(BATCHES, st.data())
def test_an_index_with_a_result_is_never_started(batch: BatchSpec, data: st.DataObject) -> None:
    states = st.builds(
        IndexState,
        st.sampled_from([None, Status.OK, Status.DIVERGED, Status.PRUNED]),
        st.lists(
            st.builds(FailedAttempt, st.sampled_from([0, 1, 42, 137]), st.floats(0, 10)), max_size=3
        ).map(tuple),
    )
    indexes = {job.name: {index: data.draw(states) for index in job.indexes} for job in batch.jobs}
    known = {
        job.name: JobState(job.digest, 0.0, indexes=IndexStates(indexes[job.name])) for job in batch.jobs
    }

    actions = reconcile([batch], ObservedState(known, (), ROOMY), data.draw(st.floats(0, 1000)))

    for action in actions:
        if isinstance(action, StartPod):
            assert indexes[action.job][action.index].result is None


def test_a_paused_job_starts_nothing_and_kills_nothing() -> None:
    (job,) = parsed(indexed(["", "", ""], parallelism=2)).jobs
    paused = replace(job, is_paused=True)
    batch = replace(parsed(indexed(["", "", ""], parallelism=2)), jobs=(paused,))

    assert reconcile([batch], seen(paused, pods=(pod(job, 0),)), 1.0) == ()
    assert reconcile([batch], seen(paused, {0: OK, 1: OK, 2: OK}), 1.0) == (
        FinishJob(job.name, JobCondition.COMPLETE, "CompletionsReached"),
    )


def test_a_pause_does_not_count_against_the_deadline_of_a_job() -> None:
    (job,) = parsed(indexed(["", ""], parallelism=2)).jobs
    late = replace(job, deadline=10.0)
    batch = replace(parsed(indexed(["", ""], parallelism=2)), jobs=(replace(late, is_paused=True),))

    assert reconcile([batch], seen(late), 11.0) == ()


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
        assert (states.finished, states.successes) == (
            len(results),
            sum(result.is_success for result in results),
        )
        assert states.failing == {number: known for number, known in states.items() if known.failures}
        assert states.without_finished(range(7)) == range(first, 7)
