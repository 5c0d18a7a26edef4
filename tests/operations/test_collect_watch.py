"""A collector that watches: it records a batch as soon as it has ended, and the next round follows at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.operations.collection.collector import POLL_SECONDS, Collection, watch_cluster
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.rounds.next_round import RoundDue, SearchEnded
from tests.operations.clusters import Cluster
from tests.repository import Sandbox
from tests.searches import active, begun, leave


class Watch:
    """A watched cluster whose time passes only while the collector sleeps, when the next thing happens."""

    def __init__(self, sandbox: Sandbox, results: Path, cluster: Cluster) -> None:
        self.sandbox, self.results, self.cluster = sandbox, results, cluster
        self.now, self.slept = 1_800_000_000.0, 0
        self.happenings: list[Callable[[], None]] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += 1
        if self.happenings:
            self.happenings.pop(0)()

    def over(self, seconds: float) -> list[Collection]:
        target = self.sandbox.target()
        return list(
            watch_cluster(
                *(target, lambda: on_volume(self.results), Kubectl(), self.cluster.namespace, seconds),
                clock=lambda: self.now,
                sleep=self.sleep,
            )
        )

    def apply(self) -> None:
        """Create the Job of each active batch that has none, as a controller would."""
        self.sandbox.pull()
        for batch in active(self.sandbox.workspace):
            self.cluster.job(batch.name)

    def end(self) -> None:
        """Let every active batch end, and the next one be applied later."""
        self.sandbox.pull()
        for batch in active(self.sandbox.workspace):
            leave(self.results, batch)
            self.cluster.end(batch.name, "Complete")


@pytest.fixture
def watch(sandbox: Sandbox, results: Path, cluster: Cluster) -> Watch:
    begun(sandbox, size=1, rounds=3, settings=f"next: collector\nnamespace: {cluster.namespace}\n")
    made = Watch(sandbox, results, cluster)
    made.apply()
    return made


def test_each_round_follows_the_one_before_within_one_run(watch: Watch) -> None:
    watch.happenings = [watch.end, watch.apply, watch.end, watch.apply, watch.end]

    collections = watch.over(600)

    steps = [commit.step for collection in collections for commit in collection.collected]
    assert [type(step) for step in steps] == [RoundDue, RoundDue, SearchEnded]
    assert watch.slept == 5, "it ended when no batch was active, long before its time"
    assert len(Collection.joined(collections).collected) == 3


def test_it_ends_in_time_for_the_next_run(watch: Watch) -> None:
    began = watch.now

    (only,) = watch.over(60)

    assert only.collected == ()
    assert began + 60 - POLL_SECONDS <= watch.now <= began + 60
