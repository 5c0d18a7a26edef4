"""What sweeps may use: limits of each, and the budgets of teams."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from sweepledger.model import forms, keys
from sweepledger.model.keys import MANY


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Limits for every sweep, in addition to its own budget."""

    max_trials: Annotated[int | None, Meta(ge=1, le=100_000, examples=[10000])] = None
    """Trials of one sweep, replicates included."""
    max_gpu_hours: Annotated[float | None, Meta(gt=0, examples=[2000])] = None
    """GPU hours of one sweep: trials * (retries + 1) * timeout * GPUs."""
    failures: Annotated[int, Meta(ge=0, le=100_000, examples=[10])] = 3
    """On a laptop, a batch pauses when this many of its trials have failed and none is ok; 0 switches that off."""


@dataclass(frozen=True, slots=True)
class TeamBudget:
    """What the sweeps of a team may use together in a month."""

    name: Annotated[str, keys.NAME]
    sweeps: Annotated[
        tuple[forms.SweepPattern, ...], Meta(min_length=1, max_length=100, examples=[["vision-*", "cifar"]])
    ] = ("*",)
    """Patterns of sweep names, where `*` matches any characters. Default: every sweep. A sweep counts towards every
    budget that names it."""
    gpu_hours: Annotated[float | None, Meta(gt=0, examples=[100])] = None
    """GPU hours per month."""
    money: Annotated[float | None, Meta(gt=0, examples=[500])] = None
    """Cost per month, in `currency`. Trials in pools without a price cost nothing."""


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """What sweeps may use."""

    limits: Annotated[
        SweepLimits, Meta(min_length=1, examples=[{"max_trials": 10000, "max_gpu_hours": 2000}])
    ] = SweepLimits()
    """Limits of every sweep, in addition to the budget of its spec."""
    currency: Annotated[forms.Currency, Meta(examples=["EUR"])] = ""
    """Currency of prices and budgets, shown after amounts."""
    budgets: Annotated[
        Mapping[
            forms.TeamName,
            Annotated[TeamBudget, Meta(min_length=1, examples=[{"sweeps": ["vision-*"], "gpu_hours": 100}])],
        ],
        MANY,
        keys.EntryName("team-vision"),
    ] = field(default_factory=keys.empty_mapping)
    """What the sweeps of a team may use in a month, by team: `sweep check` refuses a change that exceeds it, and `sweep
    cluster budget` shows what remains."""
