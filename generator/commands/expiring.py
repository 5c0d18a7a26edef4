"""Whether the folders of one batch may go, and how they do.

What is deleted nobody brings back. So whatever is not certain, on the branch or on a volume, lets them stay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property

from generator.commands import recorded
from generator.engine import endings
from generator.errors import GeneratorError, UnreadableError
from generator.formats import record
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository, last_change
from generator.repo.shelf import GONE, Shelf
from generator.results import BatchResults, judge
from generator.results.tree import RESULTS
from generator.structs.record import Record

RESULTS_VOLUME = "results"


class State(StrEnum):
    """What became of a batch's folders."""

    EXPIRED = "expired"
    """They are gone, or would be."""
    KEPT = "kept"
    """Their time has not come."""
    LATE = "late"
    """A trial left a record that git lacks: a person decides."""
    FAILED = "failed"
    """The storage refused."""


Reason = tuple[State, str]
"""Why a batch's folders stay."""


@dataclass(frozen=True)
class Fate:
    """A batch of which some volume has a folder."""

    batch: str
    state: State
    volumes: tuple[str, ...]
    says: str = ""


def _goes_on(batch: StoredBatch) -> bool:
    try:
        return bool(batch.lock.parents)
    except UnreadableError:
        return True


@dataclass(frozen=True)
class Branch:
    """What the branch holds, as it was fetched."""

    repository: Repository
    tip: str

    @cached_property
    def archived(self) -> Mapping[str, StoredBatch]:
        """Every batch that no controller is asked to run any more."""
        stored = batches.in_commit(self.repository, self.tip)
        active = {batch.name for batch in stored if batch.is_active}
        return {batch.name: batch for batch in stored if batch.name not in active}

    @cached_property
    def going_on(self) -> frozenset[str]:
        """Sweeps with a batch under way whose trials go on from checkpoints of others, as far as known."""
        stored = batches.in_commit(self.repository, self.tip)
        return frozenset(batch.sweep for batch in stored if batch.is_active and _goes_on(batch))

    @cached_property
    def files(self) -> frozenset[str]:
        """Every file below `results/`."""
        return frozenset(self.repository.files(self.tip, RESULTS))


@dataclass(frozen=True)
class Case:
    """A batch, and all that is asked before its folders go."""

    batch: str
    branch: Branch
    shelves: Mapping[str, Shelf]
    """Those that hold a folder of it; of the results last, for a run that is cut short."""
    before: float
    """What is younger stays."""

    @property
    def gone(self) -> str:
        """What the folders are called while they go."""
        return f"{GONE}{self.batch}"

    @property
    def records(self) -> str:
        """Where an archived batch's records lie in the repository."""
        return recorded.records_file(self.branch.archived[self.batch])

    def holding(self, name: str) -> tuple[Shelf, ...]:
        """List the volumes that hold a folder of this name."""
        return tuple(shelf for shelf in self.shelves.values() if shelf.holds(name))

    def why_not(self, *names: str) -> Reason | None:
        """Say what speaks against it, the branch's word first, then that of folders of these names."""
        return self._unsettled() or self._young(names) or self._late(names)

    def _unsettled(self) -> Reason | None:
        """Demand that the branch holds the batch in its archive, and its records for long enough."""
        if self.batch not in self.branch.archived:
            return State.KEPT, "is not in overlays/archive/ on the branch"
        if self.records not in self.branch.files:
            return State.KEPT, f"{self.records} is not on the branch"
        if self.branch.archived[self.batch].sweep in self.branch.going_on:
            return State.KEPT, "trials of its sweep that are under way may go on from its checkpoints"
        came = last_change(self.branch.repository, self.branch.tip, self.records)
        if came is None or came > self.before:
            return State.KEPT, f"its records came to the branch {_shown(came)}"
        return None

    def _young(self, names: Iterable[str]) -> Reason | None:
        """Demand that nothing has been written for as long: of two clocks one may be wrong."""
        times = [shelf.newest(name) for name in names for shelf in self.holding(name)]
        newest = max(times, default=self.before)
        return (State.KEPT, f"a file of it was written {_shown(newest)}") if newest > self.before else None

    def _late(self, names: Iterable[str]) -> Reason | None:
        """Demand that git has every record that the collector would take."""
        shelf = self.shelves.get(RESULTS_VOLUME)
        if shelf is None:
            return None
        held = [name for name in (*names, self.gone) if shelf.holds(name)]
        found = _lines(
            self.branch.archived[self.batch], (left for name in held for left in shelf.records(name))
        )
        content = self.branch.repository.read(self.branch.tip, self.records)[self.records]
        late = len(found - _known(content.decode(errors="replace")))
        return (State.LATE, f"{late} record(s) of its trials are not in {self.records}") if late else None


def _lines(stored: StoredBatch, left: Iterable[tuple[str, bytes]]) -> set[str]:
    """Give what the collector would record of these, each in its canonical form."""
    read = ((folder, record.read(content)) for folder, content in left)
    found = tuple(one for folder, one in read if isinstance(one, Record) and str(one.index) == folder)
    judged = judge(BatchResults(stored.lock, recorded.expected(stored), found))
    return {attempt.line for attempts in judged.attempts for attempt in attempts}


def _known(text: str) -> set[str]:
    """Give the lines that git holds, and those from which they came where the cluster knew the cause."""
    read = (one for one in record.read_lines(text) if isinstance(one, Record))
    return {*text.split("\n"), *(record.to_line(endings.as_left(one)) for one in read)}


def fate_of(case: Case, *, dry_run: bool) -> Fate:
    """Decide and do; what the storage refuses of one batch stops no other."""
    held = tuple(case.shelves)
    try:
        reason = case.why_not(case.batch)
        if reason is None and not dry_run:
            reason = _remove(case)
    except GeneratorError as error:
        return Fate(case.batch, State.FAILED, held, str(error))
    state, says = reason or (State.EXPIRED, "")
    return Fate(case.batch, state, held, says)


def _remove(case: Case) -> Reason | None:
    """End what an earlier run began; then take the folders from their name, look again, and remove them.

    A pod that still had one open may have written after the first look.
    """
    for shelf in case.holding(case.gone):
        shelf.remove(case.gone)
    taken: list[Shelf] = []
    try:
        for shelf in case.holding(case.batch):
            shelf.move(case.batch, case.gone)
            taken.append(shelf)
        reason = case.why_not(case.gone)
    except GeneratorError:
        _put_back(case, taken)
        raise
    if reason is not None:
        _put_back(case, taken)
        return reason
    for shelf in taken:
        shelf.remove(case.gone)
    return None


def _put_back(case: Case, taken: Iterable[Shelf]) -> None:
    for shelf in taken:
        shelf.move(case.gone, case.batch)


def _shown(time: float | None) -> str:
    if time is None:
        return "at a time that nobody can tell"
    try:
        return f"at {datetime.fromtimestamp(int(time), UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # a trial may say what it likes
        return "at a time that no calendar has"
