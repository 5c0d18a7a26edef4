"""An estimate of the computing time that early stopping saved."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sweepledger.structs.record import Status, TrialResult

GOOD_ENDS = ("patience", "target")
"""Rules that end a trial with the status ok."""
EARLY = "stopped_early"
"""Key in the details of a record, written by the launcher: the rule and the step."""


@dataclass(frozen=True, slots=True)
class EarlyStopping:
    """Trials that a rule stopped early, and the estimated saving."""

    rules: Mapping[str, int]
    """Number of trials by rule; rules that prune come first."""
    whole: int | None
    """Median number of steps of the trials that ran to the end; None if none did."""
    steps: int
    """Steps that these trials would have taken in addition."""
    seconds: float
    """Their duration, at each trial's own pace."""


def early_stopping(outcomes: Iterable[TrialResult], compared: str) -> EarlyStopping | None:
    """Return the estimate by the steps of a metric; None if no trial was stopped early."""
    listed = [one for one in outcomes if one.record is not None]
    ended = [one for one in listed if _rule(one)]
    if not ended:
        return None
    lengths = [_steps(one, compared) for one in listed if one.status is Status.OK and not _rule(one)]
    whole = statistics.median_low([steps for steps in lengths if steps]) if any(lengths) else None
    steps, seconds = 0, 0.0
    for one in ended:
        own = _steps(one, compared)
        if whole is not None and own and one.record is not None and whole > own:
            steps += whole - own
            seconds += one.record.seconds * (whole / own - 1)
    rules = Counter((one.status is not Status.PRUNED, _rule(one)) for one in ended)
    return EarlyStopping(
        {rule: rules[key] for key in sorted(rules) for rule in [key[1]]}, whole, steps, seconds
    )


def _steps(outcome: TrialResult, compared: str) -> int:
    """Return the last step at which a trial reported a metric; 0 if it reported none."""
    points = outcome.record.curve(compared) if outcome.record is not None else ()
    return points[-1][0] if points else 0


def _rule(outcome: TrialResult) -> str:
    """Return the rule that stopped a trial early; empty if none did. Details are untrusted: only known names count."""
    if outcome.status is Status.PRUNED:
        return outcome.reason or str(Status.PRUNED)
    details = outcome.record.details.get(EARLY) if outcome.record is not None else None
    rule = details.get("rule") if isinstance(details, Mapping) else None
    return next((known for known in GOOD_ENDS if known == rule), "") if outcome.status is Status.OK else ""
