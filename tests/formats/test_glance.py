"""A glance says what reading the whole file says."""

import math

import pytest

from sweepledger.formats import summary_csv
from sweepledger.formats.summary_csv import read_summary_excerpt
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Status
from tests.builders import a_lock, a_program
from tests.formats.test_summary_csv import an_outcome


@pytest.mark.parametrize("goal", list(Goal), ids=str)
def test_the_best_of_the_newest_program_and_the_counts(goal: Goal) -> None:
    outcomes = [an_outcome(index, program=a_program().digest) for index in range(4)]
    text = summary_csv.write(outcomes, objective="score")
    rows = summary_csv.read(text).rows
    metric = Metric(next(iter(rows[0].metrics)), goal)

    seen = read_summary_excerpt(text, a_lock(trials=4, metric=metric, program=a_program()))

    pick = max if goal is Goal.MAXIMIZE else min
    scored = [value for row in rows if (value := row.metric(metric.name)) is not None]
    assert (seen.trials, seen.ok) == (4, sum(row.status is Status.OK for row in rows))
    assert seen.value == pick(scored, default=math.nan)
    assert (
        read_summary_excerpt(text, a_lock(trials=4, metric=metric, program=a_program(image="other"))).value
        is None
    )
    assert read_summary_excerpt(text, None).trial is None


@pytest.mark.parametrize("text", ["", "no summary\n", "trial,status,program\nt0,ok\n"])
def test_what_is_no_summary_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|end"):
        read_summary_excerpt(text, None)
