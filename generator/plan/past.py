"""What is recorded of a program's attempts, as far as time is concerned: values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from generator.structs.record import Record
from generator.structs.values import Value


@dataclass(frozen=True, slots=True)
class Timed:
    """A trial that came to its end."""

    batch: str
    assignment: Mapping[str, Value]
    seconds: float
    """Of its command."""


@dataclass(frozen=True, slots=True)
class Past:
    """What recorded batches of one program tell about time."""

    ended: tuple[Timed, ...] = ()
    broken: tuple[float, ...] = ()
    """Seconds of attempts that failed, which are started again as long as retries are left."""
    overheads: tuple[float, ...] = ()
    """Seconds that a slot spends on each attempt beside its command, one mean a batch."""

    @property
    def failing(self) -> float:
        """The share of attempts that fail."""
        attempts = len(self.ended) + len(self.broken)
        return len(self.broken) / attempts if attempts else 0.0


NOTHING = Past()
"""No batch of the program is recorded."""


def past(batches: Sequence[tuple[str, Sequence[tuple[Record, Mapping[str, Value]]]]]) -> Past:
    """Take from batches, each with its records and their assignments, what tells about time."""
    found = [(name, record, values) for name, held in batches for record, values in held]
    return Past(
        tuple(Timed(name, values, one.seconds) for name, one, values in found if one.status.is_final),
        tuple(one.seconds for _, one, _ in found if not one.status.is_final),
        tuple(
            overhead
            for _, held in batches
            if (overhead := overhead_of([record for record, _ in held])) is not None
        ),
    )


def overhead_of(records: Sequence[Record]) -> float | None:
    """Work out how long a slot is idle between two commands; None where no slot was used twice.

    A start follows the end that made room for it: with so many at once, the next start belongs to the first
    end. Records tell whole seconds, so only the mean says anything.
    """
    spans = sorted((_at(one.started), _at(one.finished)) for one in records)
    at_once = _most_at_once(spans)
    ends = sorted(end for _, end in spans)
    gaps = [start - ends[place] for place, (start, _) in enumerate(spans[at_once:])]
    if not gaps:
        return None
    inside = fmean(_at(one.finished) - _at(one.started) - one.seconds for one in records)
    return max(0.0, fmean(gaps) + inside)


def makespan_of(records: Sequence[Record]) -> float:
    """Give the seconds from the first start to the last end."""
    return max(_at(one.finished) for one in records) - min(_at(one.started) for one in records)


def _at(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    # Ends sort before starts of the same second.
    events = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    most = running = 0
    for _, change in events:
        running += change
        most = max(most, running)
    return max(most, 1)
