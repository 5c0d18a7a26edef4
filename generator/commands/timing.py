"""What a commit tells about time: recorded trials of a program, and what a pool is busy with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed

from generator.commands import recorded
from generator.errors import RepositoryError
from generator.formats import pods, record
from generator.formats.glance import glance_at_lock
from generator.formats.launch import LAUNCH_FILE
from generator.formats.lock import LOCK_FILE
from generator.plan import Asked, Past, past
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository
from generator.structs.names import split_batch_name
from generator.structs.program import Program
from generator.structs.record import Record
from generator.structs.settings import Pool
from generator.structs.sweep import Run
from generator.structs.values import Value

MOST_RECORDS = 5000
"""Of one program: more make no forecast better, and take time to read."""
MOST_BATCHES = 200
MANIFESTS = "job.yaml"


@dataclass(frozen=True)
class Timing:
    """The batches of a commit, asked about time."""

    repository: Repository
    commit: str | None
    standing: tuple[StoredBatch, ...]
    _pasts: dict[str, Past] = field(default_factory=dict)
    """By the program's digest; each looked up once."""

    def past(self, program: Program, sweep: str) -> Past:
        """Read what is recorded of a program, the newest batches of the sweep first."""
        digest = program.digest
        if digest not in self._pasts:
            self._pasts[digest] = self._past(program, sweep)
        return self._pasts[digest]

    def ahead(self, pool: Pool) -> tuple[Asked, ...]:
        """List what is active in a pool."""
        named = f'\npool: "{pool.name}"\n'.encode()
        found = [one for one in self.standing if one.is_active and _says(one, named)]
        batches.load(found)
        made = ((one, run_of(one)) for one in batches.legible(found))
        return tuple(
            Asked(run, [row.values for row in one.rows], pool, self.past(one.lock.program, one.sweep))
            for one, run in made
            if run is not None
        )

    def _past(self, program: Program, sweep: str) -> Past:
        said = program.code.tree.encode()
        archived = [one for one in self.standing if not one.is_active and _says(one, said)]
        same = [one for one in archived if _runs(one, program.digest)]
        same.sort(key=lambda one: (one.sweep == sweep, *(split_batch_name(one.name) or ())[1:]), reverse=True)
        chosen: list[StoredBatch] = []
        for one in batches.legible(same[:MOST_BATCHES]):
            if sum(other.lock.trials for other in chosen) < MOST_RECORDS:
                chosen.append(one)
        held = self.repository.read(self.commit, *map(recorded.records_file, chosen)) if chosen else {}
        batches.load(chosen)
        return past([(one.name, tuple(_records(one, held))) for one in chosen])


def run_of(batch: StoredBatch) -> Run | None:
    """Read how a batch's trials run, from its own files; None where these do not say it."""
    try:
        manifests, launch = batch.contents.read(MANIFESTS), batch.contents.read(LAUNCH_FILE)
    except KeyError:
        return None
    lock = batch.lock
    found = pods.asked(manifests, launch, lock.shape, trials=lock.trials)
    return None if found is None else changed(found, retries=lock.retries, pool=lock.pool)


def _says(batch: StoredBatch, text: bytes) -> bool:
    """Search a lock for some words: to parse thousands takes seconds."""
    try:
        return text in batch.contents.read(LOCK_FILE)
    except KeyError:
        return False


def _runs(batch: StoredBatch, program: str) -> bool:
    """Tell whether a batch's program is the one with this digest."""
    try:
        return glance_at_lock(batch.contents.read(LOCK_FILE)).program == program
    except ValueError:
        return False


def _records(batch: StoredBatch, held: Mapping[str, bytes]) -> Iterable[tuple[Record, Mapping[str, Value]]]:
    """Pair the records that can be read with what they ran."""
    text = held.get(recorded.records_file(batch), b"").decode(errors="replace")
    try:
        rows = batch.rows
    except RepositoryError:
        return
    for one in record.read_lines(text):
        if isinstance(one, Record) and one.index < len(rows):
            yield one, rows[one.index].values
