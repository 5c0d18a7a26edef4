"""Whether the end of an attempt is the end of its trial is told with it."""

from sweepledger.engine.local import events
from tests.engine.batches import Machine, ends, indexed


def test_a_failed_attempt_states_the_number_of_attempts(machine: Machine) -> None:
    happened = machine.run(indexed(["fail-first:1"], retries=1))

    assert [(event.attempt.number, event.attempts) for event in ends(happened)] == [(1, 2), (2, None)]


def test_the_last_attempt_is_final(machine: Machine) -> None:
    happened = machine.run(indexed(["exit:3"], retries=1))

    assert [event.attempts for event in ends(happened)] == [2, None]
    assert sum(isinstance(event, events.RetryScheduled) for event in happened) == 1


def test_an_attempt_that_ends_its_whole_job_is_final(machine: Machine) -> None:
    happened = machine.run(indexed(["exit:43"], retries=3))

    assert [event.attempts for event in ends(happened)] == [None]
