"""What is known of the attempts at a batch when it is to be recorded; whoever knows of one adds to it."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.commands.recorded import expected, lock_digest
from generator.formats import record
from generator.repo import volume
from generator.repo.batches import StoredBatch
from generator.results import BatchResults, judge, substitutes
from generator.structs.record import Record

FOREIGN = "foreign"
"""Of a record that is of another trial, or of none."""


@dataclass(frozen=True)
class Gathered:
    """The records of a batch; the volume is read once, whatever happens to the branch meanwhile."""

    batch: StoredBatch
    records: tuple[Record, ...]
    passed_over: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Why files were, a word each, by the trial in whose place they lie."""

    @classmethod
    def read(cls, results: Path, batch: StoredBatch, *, only: Iterable[int] | None = None) -> "Gathered":
        """Read what the results volume holds, of some trials or of all.

        Raises StorageError, UnreadableError for a broken batch.

        A trial sees the whole table, so in its own folder it can write of any other: that is passed over.
        """
        records: list[Record] = []
        passed_over: dict[int, tuple[str, ...]] = {}
        trials = range(len(batch.vetted().rows))
        for index in trials if only is None else only:
            for found in map(record.read, volume.attempts(results, batch.name, index)):
                if isinstance(found, Record) and found.index == index:
                    records.append(found)
                else:
                    why = FOREIGN if isinstance(found, Record) else found.reason
                    passed_over[index] = (*passed_over.get(index, ()), why)
        return cls(batch, tuple(records), passed_over)

    @property
    def corrupt(self) -> tuple[str, ...]:
        """Say why files were passed over, a word each."""
        return tuple(why for _, reasons in sorted(self.passed_over.items()) for why in reasons)

    @property
    def results(self) -> BatchResults:
        """Give what outcomes are judged by."""
        return BatchResults(self.batch.lock, expected(self.batch), self.records)

    @property
    def concluded(self) -> BatchResults:
        """Give what is to be recorded: with a record of ours where nothing that a trial left can be used."""
        found = self.results
        records = (*found.records, *substitutes(found, self.passed_over))
        return replace(found, records=records, lock_digest=lock_digest(self.batch))

    def is_settled(self, over: Container[int] = ()) -> bool:
        """Tell whether every trial is final, `over`, or has used up its attempts; by what is believed."""
        return all(
            outcome.status.is_final or outcome.index in over or outcome.attempts > self.batch.lock.retries
            for outcome in judge(self.results).outcomes
        )

    @property
    def is_final(self) -> bool:
        """Tell whether no further attempt at any trial could change anything."""
        return all(outcome.status.is_final for outcome in judge(self.results).outcomes)
