"""What ending trials early has saved, as far as anybody can say: nobody trained what was not trained."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from generator.structs.record import Outcome, Status

GOOD_ENDS = ("patience", "target")
"""The rules whose trials are ok."""
EARLY = "stopped_early"
"""In the details of a record, by the launcher: the rule and the step."""


@dataclass(frozen=True, slots=True)
class Early:
    """The trials that did not run to their end because of a rule."""

    rules: Mapping[str, int]
    """How many by each, those that ended behind others first."""
    whole: int | None
    """Steps of a trial that ran to its end, their median; None where none did."""
    steps: int
    """That these trials lack, if each had been so long."""
    seconds: float
    """The same at each trial's own pace."""


def ended_early(outcomes: Iterable[Outcome]) -> Early | None:
    """Estimate what was saved; None where no trial was ended early."""
    listed = [one for one in outcomes if one.record is not None]
    ended = [one for one in listed if _rule(one)]
    if not ended:
        return None
    lengths = [_steps(one) for one in listed if one.status is Status.OK and not _rule(one)]
    whole = statistics.median_low([steps for steps in lengths if steps]) if any(lengths) else None
    steps, seconds = 0, 0.0
    for one in ended:
        own = _steps(one)
        if whole is not None and own and one.record is not None and whole > own:
            steps += whole - own
            seconds += one.record.seconds * (whole / own - 1)
    rules = Counter((one.status is not Status.PRUNED, _rule(one)) for one in ended)
    return Early({rule: rules[key] for key in sorted(rules) for rule in [key[1]]}, whole, steps, seconds)


def _steps(outcome: Outcome) -> int:
    """Say how far a trial came; 0 where it reported by no step."""
    record = outcome.record
    return record.curve[-1][0] if record is not None and record.curve else 0


def _rule(outcome: Outcome) -> str:
    """Name the rule that ended a trial; empty where none did. Details are a stranger's: only words count."""
    if outcome.status is Status.PRUNED:
        return outcome.reason or str(Status.PRUNED)
    told = outcome.record.details.get(EARLY) if outcome.record is not None else None
    rule = told.get("rule") if isinstance(told, Mapping) else None
    return next((known for known in GOOD_ENDS if known == rule), "") if outcome.status is Status.OK else ""
