"""Where the trials of active batches stand in a cluster: by the objects that run them, and by their pods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from generator.commands.observing import look as look_at
from generator.commands.stalled import stalled
from generator.commands.standing import Standing
from generator.commands.workspace import Workspace
from generator.engine.cluster import pods
from generator.engine.cluster.kubectl import Kubectl
from generator.engine.cluster.observed import Held
from generator.engine.cluster.pods import Phase, TrialPod
from generator.errors import UnreadableError
from generator.repo.batches import StoredBatch

MOST_NODES = 5
"""That are named."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

STANDINGS = {
    Phase.RUNNING: Standing.RUNNING,
    Phase.LOST: Standing.NODE_LOST,
    Phase.WAITING: Standing.PENDING,
}
RANKS = {phase: rank for rank, phase in enumerate(STANDINGS)}
"""Of several pods of a trial the first counts."""


@dataclass(frozen=True)
class Remark:
    """What a person should know of a batch in the cluster."""

    batch: str
    what: str
    """node lost, stalled or waiting."""
    says: str
    hint: str


@dataclass(frozen=True)
class Live:
    """What the cluster says of a batch."""

    standings: Mapping[str, Standing]
    """By the trial's id."""
    remarks: tuple[Remark, ...] = ()


def look(
    workspace: Workspace, kubectl: Kubectl, active: Iterable[StoredBatch], *, tip: str | None, now: float
) -> dict[str, Live]:
    """Say where the trials of some active batches stand, of those that can be read. Raises ClusterError."""
    settings = workspace.settings
    seen = look_at(kubectl, settings.namespace, active)
    held = [(one, seen.held[one.name]) for one in seen.active]
    stuck = {one.batch: one for one in stalled(workspace.repository, tip, held, results=None, now=now)}
    found = {}
    for batch, runners in held:
        try:
            trials = [row.trial for row in batch.rows]
        except UnreadableError:
            continue
        about = _About(runners, batch.lock.trials, is_stalled=batch.name in stuck)
        if runners.runners:
            about.hear(pods.of_batch(kubectl, settings.namespace, batch.name, pods.NOT_SUCCEEDED), now)
        remarks = [*about.remarks(batch.name)]
        if batch.name in stuck:
            one = stuck[batch.name]
            hint = (
                f"the collector records it if every trial left a record; else {one.hint(settings.controller)}"
            )
            remarks.append(Remark(batch.name, str(Standing.STALLED), one.lacks, hint))
        found[batch.name] = Live(dict(zip(trials, about.standings(), strict=True)), tuple(remarks))
    return found


@dataclass
class _About:
    """What is known of a batch's trials, by index."""

    held: Held
    trials: int
    is_stalled: bool
    _phases: dict[int, Phase] = field(default_factory=dict)
    """Of those that have a pod which is not over."""
    _failed: set[int] = field(default_factory=set)
    """Those with an attempt that failed."""
    _lost: Counter[str] = field(default_factory=Counter)
    """Pods by their node."""
    _waiting: Counter[str] = field(default_factory=Counter)
    """Pods by what they wait for."""

    def hear(self, found: Iterable[TrialPod], now: float) -> None:
        """Take in pods as they come."""
        for pod in found:
            phase = pod.phase(now)
            if pod.failures or phase is Phase.FAILED:
                self._failed.add(pod.index)
            if phase.is_over:
                continue
            self._phases[pod.index] = min(phase, self._phases.get(pod.index, phase), key=RANKS.__getitem__)
            if phase is Phase.LOST:
                self._lost[pod.node] += 1
            elif phase is Phase.WAITING and pod.waits_for:
                self._waiting[pod.waits_for] += 1

    def standings(self) -> Sequence[Standing]:
        """Say where each trial stands, in the order of the table."""
        over = self.held.over(self.trials)
        queued = self.held.suspended(self.trials)
        rest = Standing.STALLED if self.is_stalled else Standing.PENDING
        return [
            Standing.ENDED
            if index in over
            else self._standing(index, Standing.QUEUED if index in queued else rest)
            for index in range(self.trials)
        ]

    def _standing(self, index: int, rest: Standing) -> Standing:
        phase = self._phases.get(index)
        found = rest if phase is None else STANDINGS[phase]
        is_tried = found in {Standing.RUNNING, Standing.PENDING}
        return Standing.RETRYING if is_tried and index in self._failed else found

    def remarks(self, batch: str) -> Iterator[Remark]:
        """Say what keeps trials from going on."""
        if self._lost:
            names = sorted(self._lost)
            shown = ", ".join(names[:MOST_NODES]) + (" …" if len(names) > MOST_NODES else "")
            says = f"{self._lost.total()} pod(s) are on {shown}, of which nothing is heard"
            hint = (
                "they go on when the node is back; if it is not to come back, `kubectl delete node NAME`, "
                f"or `kubectl taint node NAME {OUT_OF_SERVICE}`, and their trials are tried again"
            )
            yield Remark(batch, str(Standing.NODE_LOST), says, hint)
        if self._waiting:
            told = ", ".join(f"{count} for {reason}" for reason, count in sorted(self._waiting.items()))
            hint = f"`kubectl describe pods -l sweepledger.dev/batch={batch}` says more"
            yield Remark(batch, "waiting", f"pods wait: {told}", hint)
