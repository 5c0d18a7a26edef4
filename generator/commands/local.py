"""`sweep local`: controller, node and collector on one machine, following a branch."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from generator.commands import collect, ledger
from generator.commands.cluster import Cluster, Refused
from generator.commands.collect import UnrecordedError
from generator.commands.going_on import go_on
from generator.commands.onward import Pushed
from generator.commands.searching import Blocked
from generator.commands.workspace import Workspace
from generator.engine import datasets
from generator.engine.local import events, machine
from generator.engine.local.engine import LocalEngine
from generator.engine.local.events import Progress
from generator.engine.local.launching import Desired
from generator.engine.local.observed import Condition
from generator.engine.local.store import conditions
from generator.errors import RepositoryError, SpecError, UnreadableError
from generator.repo.batches import ACTIVE, StoredBatch
from generator.repo.git import REMOTE, Mirror
from generator.structs.sweep import Metric

POLL_SECONDS = 15.0
"""Between two looks at the branch; Argo CD's default is longer, a person's patience shorter."""
TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Options:
    """How to play the cluster."""

    url: str
    branch: str
    state: Path
    once: bool = False
    """Stop when nothing is active any more."""
    jobs: int | None = None
    """Most pods at once; None: as many as fit."""
    without_gpu: bool = False
    workspace: Workspace | None = None
    """Where the person stands, to tell of batches there that nobody follows."""
    followed: str = ""
    """The branch, as the person calls it."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """About to look at the branch."""

    branch: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """The branch stands here, and asks for these batches."""

    commit: str
    active: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unpushed:
    """The work tree holds batches that the branch does not: whoever follows it never sees them."""

    batches: tuple[str, ...]
    branch: str
    are_committed: bool


@dataclass(frozen=True, slots=True)
class Built:
    """A batch was rendered and may run."""

    batch: str
    metric: Metric
    unverified: str | None = None
    """Its data, where they are known by a version alone: nobody can tell whether they are what it says."""


@dataclass(frozen=True, slots=True)
class Running:
    """How the trials of every active batch stand."""

    progress: dict[str, Progress]


@dataclass(frozen=True, slots=True)
class Trouble:
    """The remote could not be read, or refused; what runs goes on, and it is tried again."""

    message: str


@dataclass(frozen=True, slots=True)
class Collected:
    """A results commit landed."""

    found: collect.Collected


@dataclass(frozen=True, slots=True)
class Asked:
    """A commit landed that asks for a round of a search, or something keeps it from being asked for."""

    found: Pushed | Blocked


Event = Fetching | Fetched | Unpushed | Built | Refused | Running | Trouble | Collected | Asked | events.Event


def local(options: Options) -> Iterator[Event]:
    """Follow the branch and run what it asks for; yields what happens.

    Killed at any moment and started again, it goes on: no trial runs again once its result exists.
    Raises SpecError, where the machine lacks what every batch asks for, RepositoryError, StorageError.
    """
    mirror = Mirror(options.state, options.url, options.branch)
    cluster = Cluster(mirror, options.state)
    with LocalEngine(options.state, slots=options.jobs, without_gpu=options.without_gpu) as engine:
        yield from _Loop(options, mirror, cluster, engine).run()


@dataclass
class _Loop:
    options: Options
    mirror: Mirror
    cluster: Cluster
    engine: LocalEngine
    desired: list[Desired] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    pending: tuple[str, ...] = ()
    """Cancelled batches that are not recorded yet."""
    seen: str | None = None
    """The commit that was looked at last."""
    unseen: frozenset[str] = frozenset()
    """The work tree's batches that the branch did not hold then."""
    told: dict[str, type] = field(default_factory=dict)
    """What was said of each batch."""

    def run(self) -> Iterator[Event]:
        """Look at the branch, run what it asks for, record what ended; again."""
        while True:
            yield Fetching(self.options.branch)
            try:
                yield from self._look()
            except RepositoryError as error:
                if self.seen is None or (self.options.once and self.engine.is_settled):
                    raise
                yield Trouble(str(error))  # trials that run go on; the next look may find the remote again
            yield from self._until_news()
            try:
                collected = self._collect()
            except RepositoryError as error:
                yield from map(Collected, error.done if isinstance(error, UnrecordedError) else ())
                if self.options.once and self.engine.is_settled:
                    raise
                yield Trouble(str(error))
                self.engine.wait(POLL_SECONDS)
                continue
            yield from map(Collected, collected)
            if self.options.once and not collected and self._is_idle():
                if self.refused:
                    raise SpecError([problem for one in self.refused for problem in one.problems])
                return

    def _look(self) -> Iterator[Event]:
        commit = self.mirror.fetch()
        if commit != self.seen:
            for found in go_on(self._target):
                yield Asked(found)
                commit = found.commit if isinstance(found, Pushed) else commit
        active = self.cluster.active(commit)
        if commit != self.seen:
            yield Fetched(commit, tuple(batch.name for batch in active))
            yield from self._unpushed(commit)
        self.seen = commit
        self.desired, self.refused = self._desired(commit, active)
        self.pending = self.cluster.pending(commit)
        yield from self._announce(active)

    def _unpushed(self, commit: str) -> Iterator[Event]:
        workspace = self.options.workspace
        if workspace is None:
            return
        head = workspace.repository.commit("HEAD")
        committed = ledger.batch_names(workspace.repository, head, ACTIVE)
        own = committed | ledger.active_here(workspace)
        unseen = own - ledger.batch_names(self.mirror.repository, commit)
        if unseen - self.unseen:
            yield Unpushed(tuple(sorted(unseen)), self.options.followed, unseen <= committed)
        self.unseen = unseen

    def _is_idle(self) -> bool:
        """Tell whether nothing runs, and nothing that could run is without its end."""
        ended = conditions(self.options.state)
        return not self.pending and all(ended.get(one.batch.name) for one in self.desired)

    def _desired(self, commit: str, active: tuple[StoredBatch, ...]) -> tuple[list[Desired], list[Refused]]:
        """Part what can run on this machine from what cannot."""
        desired: list[Desired] = []
        refused: list[Refused] = []
        for batch in active:
            found = self.cluster.desired(commit, batch)
            if isinstance(found, Refused):
                refused.append(found)
                continue
            lacking = machine.refuse(
                [found.batch], self.engine.capacity, without_gpu=self.options.without_gpu
            )
            if lacking:
                refused.append(Refused(batch.name, lacking))
            else:
                desired.append(found)
        return desired, refused

    def _announce(self, active: tuple[StoredBatch, ...]) -> Iterator[Event]:
        """Say of each batch once that it may run, or why it cannot."""
        locks = {batch.name: batch for batch in active}
        news: dict[str, Event] = {one.batch.name: _built(locks[one.batch.name]) for one in self.desired}
        news |= {one.batch: one for one in self.refused}
        for name, event in news.items():
            if self.told.get(name) is not type(event):
                self.told[name] = type(event)
                yield event

    def _until_news(self) -> Iterator[Event]:
        """Run until a batch has ended, or it is time to look at the branch again."""
        look_again = time.monotonic() + POLL_SECONDS
        untouched = {one.batch for one in self.refused}
        while True:
            yield from self.engine.step(self.desired, untouched=untouched)
            yield Running(self.engine.progress())
            if not self.desired and not self.pending and self.options.once:
                return
            if self._has_ended(conditions(self.options.state)) or time.monotonic() >= look_again:
                return
            self.engine.wait(TICK_SECONDS)

    def _has_ended(self, known: Mapping[str, Condition | None]) -> bool:
        """Tell whether there is anything to record: a Job that says so, a cancelled batch without Jobs."""
        return any(known.get(one.batch.name) for one in self.desired) or any(
            name not in known for name in self.pending
        )

    @property
    def _target(self) -> collect.Target:
        return collect.Target(self.mirror.repository, REMOTE, self.options.branch)

    def _collect(self) -> tuple[collect.Collected, ...]:
        """Record what has ended. Until a Job says so, neither the volume nor the remote is looked at."""
        known = conditions(self.options.state)
        if not self._has_ended(known):
            return ()
        ended = {name for name, condition in known.items() if condition}
        try:
            return collect.collect(self._target, self.options.state / "results", ended, alive=known)
        except UnrecordedError as error:
            told = tuple(f"{ACTIVE}/{one.batch}/" for one in self.refused)
            news = [one for one in error.failures if not _is_among(one, told)]
            if news:
                raise UnrecordedError(error.done, news) from error
            return error.done


def _is_among(failure: RepositoryError, folders: tuple[str, ...]) -> bool:
    """Tell whether something cannot be read in one of some folders."""
    return isinstance(failure, UnreadableError) and failure.problems[0].file.startswith(folders)


def _built(batch: StoredBatch) -> Built:
    data = batch.lock.program.data
    told = None if data is None or datasets.is_verifiable(data.digest) else f"{data.name} {data.digest}"
    return Built(batch.name, batch.lock.metric, told)
