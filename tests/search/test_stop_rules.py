"""Thresholds from recorded learning curves, with the meaning of W&B, Katib and Optuna."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.stopping.hyperband import HyperbandStop
from sweepledger.stopping.patience import PatienceStop
from sweepledger.stopping.percentile import PercentileStop
from sweepledger.stopping.target import TargetStop
from sweepledger.stopping.thresholds import MAX_THRESHOLDS
from sweepledger.structs.early_stopping import LearningCurve
from sweepledger.structs.metric import Goal, Metric

UP, DOWN = Metric("accuracy", Goal.MAXIMIZE), Metric("loss", Goal.MINIMIZE)


def a_curve(*values: float | None, whole: bool = True) -> LearningCurve:
    return LearningCurve(tuple(enumerate(values, start=1)), whole)


def thresholds(rule: Any, metric: Metric, *curves: LearningCurve) -> dict[int, float]:
    rules = rule.compile(metric, curves)
    return {step: limit for item in rules for step, limit in item["thresholds"]}


FIVE = tuple(a_curve(last / 20, last / 10) for last in (1, 2, 3, 4, 9))


def test_the_median_of_the_best_so_far_is_the_threshold_of_each_step() -> None:
    assert thresholds(PercentileStop(), UP, *FIVE) == {1: 0.15, 2: 0.3}


def test_a_percentile_counts_from_the_worst_up() -> None:
    assert thresholds(PercentileStop(percentile=25), UP, *FIVE) == {1: 0.1, 2: 0.2}
    assert thresholds(PercentileStop(percentile=60), UP, *FIVE[:4]) == pytest.approx({1: 0.14, 2: 0.28})


def test_the_first_batch_stops_nothing() -> None:
    for rule in (PercentileStop(), HyperbandStop(min_iter=1)):
        assert rule.compile(UP, ()) == ()
        assert rule.compile(UP, [LearningCurve((), True)]) == ()


def test_fewer_curves_than_min_trials_stop_nothing() -> None:
    assert PercentileStop(min_trials=6).compile(UP, FIVE) == ()
    assert PercentileStop(min_trials=5).compile(UP, FIVE)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(((1, 0.9), (2, 0.8), (1, 0.9)), id="folds"),
        pytest.param(((2, 0.9), (2, 0.8)), id="a step twice"),
        pytest.param(((5, 0.9), (6, None), (1, 0.9)), id="after a value that is not finite"),
    ],
)
@pytest.mark.parametrize("rule", [PercentileStop(), HyperbandStop(min_iter=1)], ids=["median", "hyperband"])
def test_a_curve_that_begins_again(rule: Any, points: tuple[tuple[int, float | None], ...]) -> None:
    again = [LearningCurve(points, True)] * 9

    assert thresholds(rule, UP, *FIVE, *again) == thresholds(rule, UP, *FIVE)
    assert thresholds(rule, UP, *again) == {}


def test_only_steps_that_enough_trials_reached_have_a_threshold() -> None:
    short = [a_curve(0.1)] * 3

    assert thresholds(PercentileStop(min_trials=4), UP, *short, a_curve(0.1, 0.2)) == {1: 0.1}


def test_the_median_uses_only_ok_trials() -> None:
    pruned = [a_curve(0.0, whole=False)] * 9

    assert thresholds(PercentileStop(), UP, *FIVE, *pruned) == {1: 0.15, 2: 0.3}


@pytest.mark.parametrize(
    ("first", "last", "steps"), [(1, None, [1, 2]), (2, None, [2]), (1, 1, [1]), (3, None, [])]
)
def test_thresholds_lie_between_min_iter_and_max_iter(first: int, last: int | None, steps: list[int]) -> None:
    assert list(thresholds(PercentileStop(min_iter=first, max_iter=last), UP, *FIVE)) == steps


def test_hyperbands_threshold_at_each_band_is_the_best_one_in_eta() -> None:
    curves = [a_curve(*[0.1 * rank + 0.01 * step for step in range(1, 10)]) for rank in range(9)]

    values = thresholds(HyperbandStop(max_iter=27, s=3), UP, *curves)

    # Of nine the best three are one in three: the fourth, at the place 9 / 3, is the threshold W&B takes.
    assert values == {step: pytest.approx(0.5 + 0.01 * step) for step in (1, 3, 9)}
    assert list(thresholds(HyperbandStop(min_iter=2, eta=2), UP, *curves)) == [2, 4, 8]


def test_hyperband_counts_trials_pruned_later_and_requires_eta_curves() -> None:
    pruned = [a_curve(0.1, whole=False), a_curve(0.2, whole=False)]

    assert thresholds(HyperbandStop(min_iter=1), UP, *pruned) == {}
    assert thresholds(HyperbandStop(min_iter=1), UP, *pruned, a_curve(0.3)) == {1: 0.2}


def test_strict_compares_the_value_at_the_band_and_not_the_best_before() -> None:
    curves = [a_curve(0.9, 0.5, 0.1 * rank) for rank in (1, 2, 3)]

    (strict,) = HyperbandStop(min_iter=3, strict=True).compile(UP, curves)
    (usual,) = HyperbandStop(min_iter=3).compile(UP, curves)

    named = {"goal": "maximize", "rule": "hyperband"}
    assert strict == {**named, "value": "last", "thresholds": [[3, 0.2]]}
    assert usual == {**named, "value": "best", "thresholds": [[3, 0.9]]}


def test_a_value_that_is_not_finite_is_the_worst_and_no_threshold() -> None:
    nan = a_curve(None, None)

    assert thresholds(PercentileStop(), UP, nan, a_curve(0.1, 0.2), a_curve(0.3, 0.4)) == {1: 0.1, 2: 0.2}
    assert thresholds(PercentileStop(), UP, nan, nan, a_curve(0.3)) == {}
    assert thresholds(PercentileStop(), DOWN, nan, nan, a_curve(0.3)) == {}


def test_patience_and_target_need_no_curves() -> None:
    assert PatienceStop(3, min_delta=0.01, min_iter=5, max_iter=9).compile(UP, ()) == (
        {"goal": "maximize", "rule": "patience", "reports": 3, "margin": 0.01, "from": 5, "until": 9},
    )
    assert TargetStop(min_iter=2).compile(Metric("a", Goal.MAXIMIZE, target=0.9), ()) == (
        {"goal": "maximize", "rule": "target", "reach": 0.9, "from": 2},
    )
    assert TargetStop().compile(UP, ()) == ()


def test_long_curves_give_no_more_thresholds_than_a_curve_has_points() -> None:
    curves = [
        LearningCurve(tuple((step, 0.5) for step in range(start, 5000, 7)), True) for start in (1, 2, 3)
    ]

    (rule,) = PercentileStop().compile(UP, curves)

    assert len(rule["thresholds"]) <= MAX_THRESHOLDS


VALUES = st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3)), min_size=1, max_size=8)


@given(
    st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=12),
    st.sampled_from(
        [
            PercentileStop(),
            PercentileStop(percentile=80),
            HyperbandStop(min_iter=1),
            HyperbandStop(max_iter=9, s=2, eta=2, strict=True),
        ]
    ),
    st.randoms(use_true_random=False),
)
def test_rules_are_independent_of_the_order_of_curves_and_turn_with_the_goal(
    results: list[tuple[list[float | None], bool]], rule: Any, chance: random.Random
) -> None:
    curves = [a_curve(*values, whole=whole) for values, whole in results]
    turned = [
        a_curve(*[value if value is None else -value for value in values], whole=whole)
        for values, whole in results
    ]
    shuffled = chance.sample(curves, len(curves))

    actual = thresholds(rule, UP, *curves)

    assert thresholds(rule, UP, *shuffled) == actual
    assert thresholds(rule, DOWN, *turned) == pytest.approx({step: -limit for step, limit in actual.items()})
    assert all(math.isfinite(limit) for limit in actual.values())
