"""Whether the end of an attempt is the end of its trial is told with it."""

from collections.abc import Callable
from typing import Any

import pytest

from sweepledger.engine.local import events
from tests.engine.batches import Machine, ends, indexed, jobs

SHAPES = pytest.mark.parametrize("made", [indexed, jobs], ids=["indexed", "jobs"])


@pytest.mark.sampled(1)
@SHAPES
def test_a_failed_attempt_states_the_number_of_attempts(
    machine: Machine, made: Callable[..., list[dict[str, Any]]]
) -> None:
    happened = machine.run(made(["fail-first:1"], retries=1))

    assert [(event.attempt.number, event.attempts) for event in ends(happened)] == [(1, 2), (2, None)]


@pytest.mark.sampled(1)
@SHAPES
def test_the_last_attempt_is_final(machine: Machine, made: Callable[..., list[dict[str, Any]]]) -> None:
    happened = machine.run(made(["exit:3"], retries=1))

    assert [event.attempts for event in ends(happened)] == [2, None]
    assert sum(isinstance(event, events.RetryScheduled) for event in happened) == 1


def test_an_attempt_that_ends_its_whole_job_is_final(machine: Machine) -> None:
    happened = machine.run(indexed(["exit:43"], retries=3))

    assert [event.attempts for event in ends(happened)] == [None]
