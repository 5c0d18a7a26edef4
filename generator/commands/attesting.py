"""What pods know of the attempts at a batch: records that the results volume does not hold, or not yet."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import InitVar, dataclass, field, replace

from generator.commands.gathered import Gathered
from generator.commands.recorded import expected
from generator.engine import endings
from generator.engine.cluster import evidence, parts, pods
from generator.engine.cluster.kubectl import Kubectl
from generator.engine.cluster.observed import Held
from generator.engine.cluster.pods import Phase, TrialPod
from generator.engine.endings import Asked, Ending
from generator.repo.batches import StoredBatch
from generator.structs.record import Record, Status

LAG_SECONDS = 600
"""How long after its Job's end a batch waits for records of trials that ended well.

An NFS client may take a folder for what it was a minute ago, other shared volumes for some minutes; ten are
two looks of a collector that runs every five. What is not there by then does not come.
"""
SILENT_CODES = {Status.OK: 0, Status.PRUNED: 0, Status.DIVERGED: endings.BAD_HYPERPARAMETERS}
"""How a launcher ends that finds a final record and leaves none of its own."""


@dataclass(frozen=True)
class Waiting:
    """A batch whose Job has ended before all that its trials left could be read."""

    batch: str
    trials: int
    """That ended well, and whose records are nowhere."""
    pods: int
    """That have not ended."""
    until: float
    """When it is recorded without, in seconds since 1970."""


def attest(
    kubectl: Kubectl, namespace: str, found: Gathered, held: Held, *, now: float
) -> Gathered | Waiting:
    """Add to a batch's records what its pods tell; or say for what it has to wait. Raises ClusterError."""
    trials, name = found.batch.lock.trials, found.batch.name
    account = Account(asked_of(found.batch), found.records)
    account.hear(pods.of_batch(kubectl, namespace, name, pods.NOT_SUCCEEDED), now)
    succeeded = held.succeeded(trials)
    lacking = succeeded - account.final.keys()
    if lacking:
        account.hear(pods.of_batch(kubectl, namespace, name, pods.SUCCEEDED), now, only=lacking)
        lacking = succeeded - account.final.keys()
    until = (held.finished or 0.0) + LAG_SECONDS
    alive = 0 if held.is_running else account.alive
    if (lacking or alive) and now < until:
        return Waiting(name, len(lacking), alive, until)
    explained = tuple(map(account.explained, found.records))
    return replace(found, records=(*explained, *account.records()))


def asked_of(batch: StoredBatch) -> tuple[Asked, ...]:
    """Say what the records of every trial of a batch look like."""
    lock = batch.lock
    data = None if lock.program.data is None else lock.program.data.digest
    return tuple(
        Asked(
            batch=lock.name,
            index=one.index,
            trial=one.trial,
            row=one.row,
            code=lock.program.code.tree,
            data=data,
            seed=lock.seed_base + one.replicate,
        )
        for one in expected(batch)
    )


@dataclass
class Account:
    """Who said what of a batch's attempts; of each pod only what is needed is kept."""

    asked: tuple[Asked, ...]
    known: InitVar[Iterable[Record]] = ()
    final: dict[int, Status] = field(default_factory=dict)
    """The trials that are decided, by a record to believe."""
    alive: int = 0
    """Pods that have not ended."""
    _known: set[tuple[int, str]] = field(default_factory=set)
    """The attempts that left a record, by index and pod: a trial may name another's pod."""
    _causes: dict[tuple[int, str], str | None] = field(default_factory=dict)
    """What their launchers could not know of their end."""
    _begun: dict[int, list[float]] = field(default_factory=dict)
    """When the attempts at a trial began, as far as they are known."""
    _told: list[Record] = field(default_factory=list)
    _silent: list[tuple[int, float, Ending]] = field(default_factory=list)
    """Pods without a record: their trial, when they were made, how they ended."""

    def __post_init__(self, known: Iterable[Record]) -> None:
        for record in known:
            if record.index < len(self.asked) and self.asked[record.index].expects(record):
                self._take(record)

    def hear(self, witnesses: Iterable[TrialPod], now: float, *, only: Container[int] | None = None) -> None:
        """Take in pods as they come."""
        for pod in witnesses:
            if pod.index >= len(self.asked) or (only is not None and pod.index not in only):
                continue
            phase = pod.phase(now)
            if not phase.is_over:
                # One that waits for a node or an image writes nothing any more.
                self.alive += phase is not Phase.WAITING
            elif (pod.index, pod.uid) in self._known:
                self._causes[pod.index, pod.uid] = evidence.cause(pod)
            else:
                self._judge(pod)

    def explained(self, record: Record) -> Record:
        """Give a record with the cause that the cluster knows."""
        return endings.explained(record, self._causes.get((record.index, record.uid)))

    def records(self) -> Iterator[Record]:
        """Yield the records that the volume does not hold, each attempt's own."""
        yield from self._told
        for index, created, ended in self._silent:
            if ended.reason is None and ended.code == SILENT_CODES.get(self.final.get(index, Status.MISSING)):
                continue  # it found its trial decided, and did nothing
            number = ended.attempt or 1 + sum(begun < created for begun in self._begun[index])
            made = evidence.substitute(self.asked[index], replace(ended, attempt=number))
            if made is not None:
                yield made

    def _judge(self, pod: TrialPod) -> None:
        told = evidence.testimony(pod, self.asked[pod.index])
        if told is not None:
            self._told.append(endings.explained(told, evidence.cause(pod)))
            self._take(told)
        else:
            self._begun.setdefault(pod.index, []).append(pod.created)
            self._silent.append((pod.index, pod.created, evidence.ending(pod)))

    def _take(self, record: Record) -> None:
        self._known.add((record.index, record.uid))
        began = parts.moment({"at": record.started}, "at")
        self._begun.setdefault(record.index, []).append(began or 0.0)
        if record.status.is_final and self.final.get(record.index) is not Status.OK:
            self.final[record.index] = record.status
