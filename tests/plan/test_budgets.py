"""Team budgets: which sweeps count towards them, and when they are exceeded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.plan.budgets import BudgetUnit, Charge, balances, charge, counts_towards, reservation
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.run_config import Resources, RunConfig
from sweepledger.structs.settings import TeamBudget

GPU = RunConfig(resources=Resources("4", "16Gi", gpu=2), timeout_seconds=1800, retries=1, max_disruptions=3)
POOL = Pool("gpus", NodeCapacity("16", "64Gi", gpu=8), price=8.0)
TEAMS = {
    "vision": TeamBudget("vision", ("vision-*", "cifar"), gpu_hours=100, money=50),
    "everybody": TeamBudget("everybody", gpu_hours=300),
}
AMOUNTS = st.lists(st.floats(0, 1e6, allow_nan=False), max_size=8)


def test_a_reservation_lasts_until_the_timeout_of_every_attempt_and_disrupted_attempt() -> None:
    result = reservation("cifar", GPU, POOL, trials=10)

    assert result.gpu_hours == 10 * (2 + 3) * 0.5 * 2
    assert result.money == pytest.approx(10 * (2 + 3) * 0.5 * 8.0 / 4)  # four such trials fill a node


def test_a_trial_of_several_pods_is_charged_for_all_of_them() -> None:
    several = RunConfig(resources=Resources("4", "16Gi", gpu=8), nodes=4)

    assert charge("cifar", several, POOL, 3600) == Charge("cifar", 32, 32)


@pytest.mark.parametrize(
    ("sweep", "counted"), [("vision-a", True), ("cifar", True), ("cifar-2", False), ("my-vision-a", False)]
)
def test_a_sweep_counts_towards_the_budgets_that_name_it(sweep: str, *, counted: bool) -> None:
    assert counts_towards(TEAMS["vision"], sweep) is counted
    assert counts_towards(TEAMS["everybody"], sweep)


def test_every_limit_of_every_team_has_a_balance() -> None:
    results = balances(
        TEAMS,
        used=[Charge("vision-a", 30, 10), Charge("text", 200, 0)],
        reserved=[Charge("cifar", 40, 5)],
        requested=[Charge("vision-b", 31, 1)],
    )

    assert [(balance.team, balance.unit, balance.remaining) for balance in results] == [
        ("everybody", BudgetUnit.GPU_HOURS, -1),
        ("vision", BudgetUnit.GPU_HOURS, -1),
        ("vision", BudgetUnit.MONEY, 34),
    ]
    assert [balance.is_exceeded for balance in results] == [True, True, False]


def test_a_change_without_trials_exceeds_no_budget() -> None:
    (balance,) = balances({"a": TeamBudget("a", gpu_hours=1)}, used=[Charge("x", 5, 0)], reserved=[])

    assert balance.remaining == -4
    assert not balance.is_exceeded


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.floats(0.5, 1e6))
def test_passed_changes_fit(used: list[float], first: list[float], second: list[float], limit: float) -> None:
    budgets = {"a": TeamBudget("a", gpu_hours=limit)}
    spent, item, other = ([Charge("x", hours, 0) for hours in amounts] for amounts in (used, first, second))
    (before,) = balances(budgets, used=spent, reserved=[], requested=item)
    (after,) = balances(budgets, used=spent, reserved=item, requested=other)

    if before.requested and after.requested and not before.is_exceeded and not after.is_exceeded:
        assert sum(used) + sum(first) + sum(second) <= limit * (1 + 1e-9)
