"""What trials cost, by month: computing time of every sweep, and the charges of teams with a budget."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """What the sweeps of a team used in a month."""

    month: str
    team: str
    gpu_hours: float
    money: float


@dataclass(frozen=True, slots=True)
class MonthlyTime:
    """Computing time of all trials that were recorded in a month."""

    month: str
    seconds: float
    sweeps: int


def monthly_times(sweeps: Iterable[Mapping[str, float]]) -> tuple[MonthlyTime, ...]:
    """Return the computing time by month, newest first, from the seconds by month of each sweep."""
    seconds: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for by_month in sweeps:
        for month, spent in by_month.items():
            seconds[month] += spent
            count[month] += 1
    return tuple(MonthlyTime(month, seconds[month], count[month]) for month in sorted(seconds, reverse=True))
