"""`sweep local`: controller, node and collector on one machine, following a branch."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from generator.commands import collect
from generator.commands.cluster import Cluster, Refused
from generator.engine.local import events, machine
from generator.engine.local.engine import LocalEngine
from generator.engine.local.events import Progress
from generator.engine.local.launching import Desired
from generator.engine.local.store import conditions
from generator.errors import SpecError
from generator.repo.batches import StoredBatch
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
class Built:
    """A batch was rendered and may run."""

    batch: str
    metric: Metric


@dataclass(frozen=True, slots=True)
class Running:
    """How the trials of every active batch stand."""

    progress: dict[str, Progress]


@dataclass(frozen=True, slots=True)
class Collected:
    """A results commit landed."""

    found: collect.Collected


Event = Fetching | Fetched | Built | Refused | Running | Collected | events.Event


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
    told: set[str] = field(default_factory=set)
    """Batches that were announced."""

    def run(self) -> Iterator[Event]:
        """Look at the branch, run what it asks for, record what ended; again."""
        while True:
            yield Fetching(self.options.branch)
            commit = self.mirror.fetch()
            active = self.cluster.active(commit)
            yield Fetched(commit, tuple(batch.name for batch in active))
            desired, refused = self._desired(commit, active)
            yield from self._announce(active, desired, refused)
            yield from self._until_news(desired, refused)
            collected = tuple(self._collect())
            yield from map(Collected, collected)
            if self.options.once and not collected:
                if refused:
                    raise SpecError([problem for one in refused for problem in one.problems])
                return

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

    def _announce(
        self, active: tuple[StoredBatch, ...], desired: list[Desired], refused: list[Refused]
    ) -> Iterator[Event]:
        """Say of each batch once that it may run, or why it cannot."""
        metrics = {batch.name: batch.lock.metric for batch in active}
        news: dict[str, Event] = {
            one.batch.name: Built(one.batch.name, metrics[one.batch.name]) for one in desired
        }
        news |= {one.batch: one for one in refused}
        for name, event in news.items():
            if name not in self.told:
                self.told.add(name)
                yield event

    def _until_news(self, desired: list[Desired], refused: list[Refused]) -> Iterator[Event]:
        """Run until a batch has ended, or it is time to look at the branch again."""
        look_again = time.monotonic() + POLL_SECONDS
        untouched = {one.batch for one in refused}
        while True:
            yield from self.engine.step(desired, untouched=untouched)
            yield Running(self.engine.progress())
            ended = conditions(self.options.state)
            if (not desired and self.options.once) or any(ended.get(one.batch.name) for one in desired):
                return
            if not self.options.once and time.monotonic() >= look_again:
                return
            self.engine.wait(TICK_SECONDS)

    def _collect(self) -> tuple[collect.Collected, ...]:
        return collect.collect(
            collect.Target(self.mirror.repository, REMOTE, self.options.branch),
            self.options.state / "results",
            {name for name, condition in conditions(self.options.state).items() if condition},
        )
