"""A glance says what reading the whole file says."""

import math

import pytest

from generator.formats import lock, summary
from generator.formats.glance import Asked, glance_at_lock, glance_at_summary
from generator.render.overlay import overlay
from generator.structs.record import Status
from generator.structs.sweep import Goal, Metric
from tests.formats.test_summary_csv import an_outcome
from tests.sweeps import SETTINGS, a_batch, real_bases


@pytest.mark.parametrize("goal", list(Goal), ids=str)
def test_the_best_of_the_newest_program_and_the_counts(goal: Goal) -> None:
    outcomes = [an_outcome(index) for index in range(4)]
    text = summary.write(outcomes, objective="score")
    rows = summary.read(text).rows
    metric = Metric(next(iter(rows[0].metrics)), goal)

    seen = glance_at_summary(text, Asked(4, metric, rows[0].program))

    pick = max if goal is Goal.MAXIMIZE else min
    scored = [value for row in rows if (value := row.metric(metric.name)) is not None]
    assert (seen.trials, seen.ok) == (4, sum(row.status is Status.OK for row in rows))
    assert seen.value == pick(scored, default=math.nan)
    assert glance_at_summary(text, Asked(4, metric, "0" * 64)).value is None
    assert glance_at_summary(text, None).trial is None


@pytest.mark.parametrize("text", ["", "no summary\n", "trial,status,program\nt0,ok\n"])
def test_what_is_no_summary_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|end"):
        glance_at_summary(text, None)


def test_a_lock_says_what_its_glance_says() -> None:
    made = overlay(a_batch(), real_bases(), SETTINGS)
    content = made.tree[lock.LOCK_FILE]
    held = lock.read(content)

    seen = glance_at_lock(content)

    assert (seen.trials, seen.program) == (held.trials, held.program.digest)
    assert (seen.metric.name, seen.metric.goal) == (held.metric.name, held.metric.goal)


@pytest.mark.parametrize("text", ["{not: [a, lock", "trials: 3\nmetric: 4\nprogram: 5\n", ""])
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a lock"):
        glance_at_lock(text.encode())
