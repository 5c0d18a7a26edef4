"""A glance says what reading the whole file says."""

import math

import pytest

from sweepledger.formats import batch_yaml, summary_csv
from sweepledger.formats.excerpts import LockExcerpt, read_lock_excerpt, read_summary_excerpt
from sweepledger.render.overlay import overlay
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Status
from tests.formats.test_summary_csv import an_outcome
from tests.sweeps import SETTINGS, a_batch, real_bases


@pytest.mark.parametrize("goal", list(Goal), ids=str)
def test_the_best_of_the_newest_program_and_the_counts(goal: Goal) -> None:
    outcomes = [an_outcome(index) for index in range(4)]
    text = summary_csv.write(outcomes, objective="score")
    rows = summary_csv.read(text).rows
    metric = Metric(next(iter(rows[0].metrics)), goal)

    seen = read_summary_excerpt(text, LockExcerpt(4, metric, rows[0].program))

    pick = max if goal is Goal.MAXIMIZE else min
    scored = [value for row in rows if (value := row.metric(metric.name)) is not None]
    assert (seen.trials, seen.ok) == (4, sum(row.status is Status.OK for row in rows))
    assert seen.value == pick(scored, default=math.nan)
    assert read_summary_excerpt(text, LockExcerpt(4, metric, "0" * 64)).value is None
    assert read_summary_excerpt(text, None).trial is None


@pytest.mark.parametrize("text", ["", "no summary\n", "trial,status,program\nt0,ok\n"])
def test_what_is_no_summary_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|end"):
        read_summary_excerpt(text, None)


def test_a_lock_says_what_its_glance_says() -> None:
    made = overlay(a_batch(), real_bases(), SETTINGS)
    content = made.tree[batch_yaml.LOCK_FILE]
    held = batch_yaml.read(content)

    seen = read_lock_excerpt(content)

    assert (seen.trials, seen.program) == (held.trials, held.program.digest)
    assert (seen.metric.name, seen.metric.goal) == (held.metric.name, held.metric.goal)


@pytest.mark.parametrize("text", ["{not: [a, lock", "trials: 3\nmetric: 4\nprogram: 5\n", ""])
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a lock"):
        read_lock_excerpt(text.encode())
