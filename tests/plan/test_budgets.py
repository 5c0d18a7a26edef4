"""Arithmetic of budgets: who counts towards what, and when there is no room left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.plan import Charge, Unit, balances, charge, counts, promise
from generator.structs.settings import Allowance, Node, Pool
from generator.structs.sweep import Resources, Run

GPU = Run(resources=Resources("4", "16Gi", gpu=2), timeout_seconds=1800, retries=1)
POOL = Pool("gpus", Node("16", "64Gi", gpu=8), price=8.0)
TEAMS = {
    "vision": Allowance("vision", ("vision-*", "cifar"), gpu_hours=100, money=50),
    "everybody": Allowance("everybody", gpu_hours=300),
}
AMOUNTS = st.lists(st.floats(0, 1e6, allow_nan=False), max_size=8)


def test_a_promise_is_what_every_attempt_takes_until_its_timeout() -> None:
    found = promise("cifar", GPU, POOL, trials=10)

    assert found.gpu_hours == 10 * 2 * 0.5 * 2
    assert found.money == pytest.approx(10 * 2 * 0.5 * 8.0 / 4)  # four such trials fill a node


def test_a_trial_of_several_pods_is_charged_for_all_of_them() -> None:
    several = Run(resources=Resources("4", "16Gi", gpu=8), nodes=4)

    assert charge("cifar", several, POOL, 3600) == Charge("cifar", 32, 32)


def test_what_runs_where_nothing_has_a_price_costs_nothing() -> None:
    assert promise("cifar", GPU, None, 10).money == 0


@pytest.mark.parametrize(
    ("sweep", "counted"), [("vision-a", True), ("cifar", True), ("cifar-2", False), ("my-vision-a", False)]
)
def test_a_sweep_counts_towards_the_budgets_that_name_it(sweep: str, *, counted: bool) -> None:
    assert counts(TEAMS["vision"], sweep) is counted
    assert counts(TEAMS["everybody"], sweep)


def test_every_limit_of_every_team_has_a_balance() -> None:
    found = balances(
        TEAMS,
        used=[Charge("vision-a", 30, 10), Charge("text", 200, 0)],
        promised=[Charge("cifar", 40, 5)],
        asked=[Charge("vision-b", 31, 1)],
    )

    assert [(one.team, one.unit, one.left) for one in found] == [
        ("everybody", Unit.GPU_HOURS, -1),
        ("vision", Unit.GPU_HOURS, -1),
        ("vision", Unit.MONEY, 34),
    ]
    assert [one.is_exceeded for one in found] == [True, True, False]


def test_what_asks_for_nothing_exceeds_nothing() -> None:
    (found,) = balances({"a": Allowance("a", gpu_hours=1)}, used=[Charge("x", 5, 0)], promised=[])

    assert found.left == -4
    assert not found.is_exceeded


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.floats(0.5, 1e6))
def test_two_that_were_let_pass_one_after_the_other_fit_together(
    used: list[float], first: list[float], second: list[float], limit: float
) -> None:
    budgets = {"a": Allowance("a", gpu_hours=limit)}
    spent, one, other = ([Charge("x", hours, 0) for hours in amounts] for amounts in (used, first, second))
    (before,) = balances(budgets, used=spent, promised=[], asked=one)
    (after,) = balances(budgets, used=spent, promised=one, asked=other)

    if before.asked and after.asked and not before.is_exceeded and not after.is_exceeded:
        assert sum(used) + sum(first) + sum(second) <= limit * (1 + 1e-9)
