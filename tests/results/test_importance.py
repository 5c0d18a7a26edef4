"""Importance and main effects of parameters: known effects, significance, and reasons why there is none."""

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from msgspec import structs

from sweepledger.results.importance import (
    MOST_TRIALS,
    Importance,
    ParameterImportance,
    fit_additive_model,
    importance,
)
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.values import Value
from tests.builders import a_grid, a_record, an_expected_trial

PUBLISHED = (
    0.9347, 0.9426, 0.9301, 0.9397, 0.8285, 0.8883, 0.8129, 0.8737,
    0.9274, 0.9419, 0.9213, 0.9376, 0.8182, 0.8741, 0.8042, 0.8634,
)  # fmt: skip
"""Test accuracies of NVIDIA's sixteen CIFAR-10 trainings, in the order of their grid."""


def published() -> BatchRecords:
    values = iter(PUBLISHED)
    grid: dict[str, list[Value]] = {
        "max_learning_rate": [0.4, 0.6],
        "momentum": [0.9, 0.99],
        "cutout": [5, 12],
        "batch_size": [128, 512],
    }
    return a_grid(grid, lambda _: next(values))


def listed(
    assignments: Iterable[Mapping[str, Value]], score: Callable[[Mapping[str, Value]], float]
) -> BatchRecords:
    batch = a_grid({"a": [0]}, lambda _: 0.0)
    expected = [
        an_expected_trial(index, assignment=MappingProxyType(dict(each)))
        for index, each in enumerate(assignments)
    ]
    records = [
        a_record(trial.index, metrics=MappingProxyType({"test_accuracy": score(trial.assignment)}))
        for trial in expected
    ]
    lock = structs.replace(batch.lock, trials=len(expected))
    return BatchRecords(lock, tuple(expected), tuple(records))


def importance_of(batch: BatchRecords) -> Importance:
    return importance(summarise([batch], description=""))


def by_name(batch: BatchRecords) -> dict[str, ParameterImportance]:
    return {share.parameter: share for share in importance_of(batch).parameters}


def randomly(count: int, seed: int, **domains: Sequence[Value]) -> list[dict[str, Value]]:
    source = random.Random(seed)  # noqa: S311 - no secret
    return [{name: source.choice(values) for name, values in domains.items()} for _ in range(count)]


def noise(seed: int) -> Callable[[Mapping[str, Value]], float]:
    source = random.Random(seed)  # noqa: S311 - no secret
    return lambda _: source.gauss(0, 1)


def test_the_published_grid_is_told_as_an_analysis_of_variance_would() -> None:
    shares = by_name(published())

    assert list(shares) == ["momentum", "batch_size", "cutout", "max_learning_rate"]
    assert [f"{share.share:.3f}" for share in shares.values()] == ["0.794", "0.122", "0.003", "0.001"]
    assert [share.is_significant for share in shares.values()] == [True, True, False, False]
    values = [share.share for share in shares.values() if share.share is not None]
    assert importance_of(published()).rest == pytest.approx(1 - sum(values))
    assert [round(group.mean, 4) for group in shares["momentum"].groups] == [0.9344, 0.8454]


def test_a_sum_of_two_effects_is_shared_by_their_squares() -> None:
    grid: dict[str, list[Value]] = {"a": [0, 1], "b": [0, 1], "c": ["x", "y", "z"]}

    shares = by_name(a_grid(grid, lambda v: 3 * float(str(v["a"])) + float(str(v["b"]))))

    assert shares["a"].share == pytest.approx(0.9)
    assert shares["b"].share == pytest.approx(0.1)
    assert shares["c"].share == 0


def test_a_parameter_without_effect_is_seldom_more_than_chance() -> None:
    seen = 0
    for seed in range(30):
        batch = listed(randomly(40, seed, a=[1, 2, 3], b=["x", "y"]), noise(seed))
        seen += sum(share.is_significant for share in importance_of(batch).parameters)

    assert seen <= 6, "of 60"


@pytest.mark.parametrize(
    ("grid", "scored", "reason"),
    [
        pytest.param({"a": [1, 2, 3]}, float, "3 ok trials are too few, at least 8 are needed", id="few"),
        pytest.param(
            {"a": [1, 2, 3, 4], "b": [1, 2, 3]},
            lambda _: 0.5,
            "all values of the objective are equal",
            id="equal",
        ),
    ],
)
def test_few_trials_and_equal_objectives_tell_nothing(
    grid: dict[str, list[Value]], scored: Callable[[str], float], reason: str
) -> None:
    shares = importance_of(a_grid(grid, lambda v: scored(str(v["a"]))))

    assert {(share.share, share.reason) for share in shares.parameters} == {(None, reason)}
    assert shares.rest is None


def test_parameters_that_moved_together_have_one_share() -> None:
    pairs: list[dict[str, Value]] = [{"a": n % 4, "b": f"with {n % 4}", "c": n % 3} for n in range(24)]

    shares = by_name(listed(pairs, lambda v: float(str(v["a"])) + 0.1 * float(str(v["c"]))))

    assert shares["a"].confounded == ("b",)
    assert shares["a"].share == pytest.approx(0.99, abs=0.02)
    assert shares["b"].share is None
    assert shares["b"].reason == "confounded with a"
    assert shares["c"].confounded == ()


def test_a_conditional_parameter_explains_only_where_it_is() -> None:
    plain: dict[str, Value] = {"kind": "plain"}
    shallow: dict[str, Value] = {"kind": "rich", "depth": 1}
    trials = [plain] * 12 + [shallow] * 6 + [{**shallow, "depth": 2}] * 6

    shares = by_name(listed(trials, lambda v: (v["kind"] == "rich") + 0.5 * (v.get("depth") == 2)))

    assert shares["kind"].share == pytest.approx(0.9259, abs=0.01)
    assert shares["depth"].share == pytest.approx(0.0741, abs=0.01)
    assert [group.trials for group in shares["depth"].groups] == [6, 6]


def test_many_numbers_are_grouped_with_their_neighbours() -> None:
    share = by_name(a_grid({"a": list(range(100))}, lambda v: float(str(v["a"]))))["a"]

    assert share.is_grouped
    assert [(group.first, group.last) for group in share.groups][:2] == [(0, 12), (13, 24)]
    assert [group.trials for group in share.groups] == [13, 12, 13, 12, 13, 12, 13, 12]
    assert share.share == pytest.approx(0.98, abs=0.01)


def test_the_shares_do_not_depend_on_the_order_of_trials() -> None:
    trials = randomly(60, 3, a=[1, 2, 3], b=[1, 2], c=[0.1 * n for n in range(40)])

    def score(v: Mapping[str, Value]) -> float:
        return float(str(v["a"])) + float(str(v["b"])) * float(str(v["c"]))

    def rounded(batch: BatchRecords) -> dict[str, str]:
        return {name: f"{share.share:.6f}" for name, share in by_name(batch).items()}

    assert rounded(listed(trials, score)) == rounded(listed(reversed(trials), score))


@pytest.mark.full_suite("large inputs")
def test_of_very_many_trials_enough_are_taken() -> None:
    grid: dict[str, list[Value]] = {"a": list(range(10)), "b": list(range(MOST_TRIALS // 10 + 1))}

    shares = by_name(a_grid(grid, lambda v: float(str(v["a"]))))

    assert sum(group.trials for group in shares["a"].groups) == MOST_TRIALS
    assert shares["a"].share == pytest.approx(1, abs=1e-6)


def test_an_outlier_does_not_decide() -> None:
    grid: dict[str, list[Value]] = {"a": list(range(6)), "b": list(range(6))}
    batch = a_grid(
        grid,
        lambda v: 1e9 if (v["a"], v["b"]) == (2, 3) else float(str(v["a"])),
        metric=Metric("loss", Goal.MINIMIZE),
    )

    result = importance_of(batch)

    assert result.scale.beyond == 1
    assert result.parameters[0].parameter == "a"
    assert (result.parameters[0].share or 0) > 0.7


def test_backfitting_finds_the_least_squares_of_an_unbalanced_design() -> None:
    # By hand: y = 1 + 2a + 4b, exactly, over cells with unequal counts.
    cells = [(0, 0), (0, 0), (0, 1), (1, 0), (1, 1), (1, 1), (1, 1)]

    result = fit_additive_model(
        [1.0 + 2 * a + 4 * b for a, b in cells], [[a for a, _ in cells], [b for _, b in cells]]
    )

    assert result.left == pytest.approx(0, abs=1e-9)
    assert result.explained == pytest.approx((4 * 12 / 7, 16 * 12 / 7), abs=1e-4)
    assert result.free == 4


@pytest.mark.parametrize(
    ("values", "goal", "stretch"),
    [
        pytest.param([1.0, 2.0], Goal.MINIMIZE, (1.0, 2.0, False, 0), id="plain"),
        pytest.param([*range(1, 10), 900], Goal.MINIMIZE, (1.0, 9.0, False, 1), id="a-bad-outlier"),
        pytest.param([*range(1, 10), 900], Goal.MAXIMIZE, (1.0, 900.0, False, 0), id="a-good-one"),
        pytest.param([*range(1, 10), -900], Goal.MAXIMIZE, (1.0, 9.0, False, 1), id="a-bad-one-below"),
        pytest.param([1e-3, 1.0], Goal.MINIMIZE, (1e-3, 1.0, True, 0), id="losses"),
        pytest.param([1e-3, 1.0], Goal.MAXIMIZE, (1e-3, 1.0, False, 0), id="large-is-good"),
        pytest.param([], Goal.MAXIMIZE, (0.0, 1.0, False, 0), id="none"),
    ],
)
def test_the_spread_counts(values: list[float], goal: Goal, stretch: tuple[float, float, bool, int]) -> None:
    spread = ObjectiveScale.of(values, goal)

    assert (spread.low, spread.high, spread.log, spread.beyond) == stretch


# Main effects


def test_trials_without_a_result_are_left_out_of_the_means() -> None:
    batch = a_grid({"a": [0, 1, 2], "b": [0, 1]}, lambda values: None if values["a"] == 2 else 0.5)

    parameters = by_name(batch)

    assert [group.first for group in parameters["a"].groups] == [0, 1]
    assert [group.trials for group in parameters["b"].groups] == [2, 2]


def test_a_trial_without_the_parameter_is_in_none_of_its_groups() -> None:
    batch = a_grid({"a": [0, 1, 2]}, lambda values: float(str(values["a"])))
    expected = tuple(
        replace(row, assignment=MappingProxyType({"x": row.index} if row.index else {}))
        for row in batch.expected
    )

    (x,) = importance_of(replace(batch, expected=expected)).parameters

    assert [group.first for group in x.groups] == [1, 2]


@pytest.mark.parametrize(
    ("objectives", "goal", "beyond"),
    [
        pytest.param([0.9, 0.91, 0.92, 0.93, 0.94] * 3 + [0.14], Goal.MAXIMIZE, 1, id="one bad accuracy"),
        pytest.param([1.0, 1.1, 1.2, 1.3, 1.4] * 3 + [80.0], Goal.MINIMIZE, 1, id="one bad loss"),
        pytest.param([0.001, 0.01, 0.1, 5.0] * 4, Goal.MINIMIZE, 0, id="losses of several magnitudes"),
        pytest.param([0.5, 0.6, 0.7, 0.8] * 4, Goal.MAXIMIZE, 0, id="none"),
    ],
)
def test_means_and_medians_include_outliers(objectives: list[float], goal: Goal, beyond: int) -> None:
    grid: dict[str, list[Value]] = {"a": ["x", "y"], "b": list(range(8))}
    places = iter(objectives)

    result = importance_of(a_grid(grid, lambda _: next(places), metric=Metric("score", goal)))

    (share,) = [each for each in result.parameters if each.parameter == "a"]
    assert result.scale.beyond == beyond
    for group, own in zip(share.groups, (objectives[:8], objectives[8:]), strict=True):
        assert group.mean == pytest.approx(statistics.mean(own))
        assert group.median == pytest.approx(statistics.median(own))


def test_huge_objectives_have_a_mean() -> None:
    batch = a_grid({"a": [0, 1], "b": [0, 1]}, lambda values: 1.7e308 if values["a"] else -1.7e308)

    assert [group.mean for group in by_name(batch)["a"].groups] == [-1.7e308, 1.7e308]
