"""What every store of records is held to: what trials leave is recorded once, whole, and of the right trial alone.

The stores are those of the table, and so are the tests; a store adds what its pods do to `WRITERS`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from sweepledger.bucket.layout import ObjectKind
from sweepledger.bucket.objects import Bucket
from sweepledger.bucket.results import BucketResults
from sweepledger.bucket.transfer import Uploader
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.workloads import BatchWorkloads, Workload
from sweepledger.operations.collection.cluster_evidence import AllExcept, ClusterBatches, PodStore
from sweepledger.operations.collection.collector import Collection, record_from_cluster
from sweepledger.operations.collection.record_store import RecordStore, RecordStores, open_store
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import BATCH_LABEL, RECORD_FINALIZER, STORE_CONTAINER
from sweepledger.structs.settings import ResultsSettings, ResultsStore
from tests.engine.trial_pods import a_pod, ended
from tests.operations.test_collect import column, leave
from tests.operations.test_several_datasets import BUCKET
from tests.repository import Sandbox, append_to

END = 1_767_225_615.0
"""When the Job of a batch has ended, in seconds since 1970."""
LATE = END + 3600
"""Later than a collector waits for pods and for records."""


@dataclass(frozen=True)
class Attempt:
    """What a pod has of the end of its trial."""

    lock: BatchLock
    index: int
    uid: str
    content: bytes
    """The record, as the launcher has written it."""


Said = tuple[str, Mapping[str, Any] | None]
"""The termination message of the launcher, and that of a sidecar if there is one."""


def write_to_volume(folder: Path, attempt: Attempt) -> Said:
    path = folder / attempt.lock.name / attempt.lock.place(attempt.index) / f"{attempt.uid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(attempt.content)
    return "", None


def write_message(_: Path, attempt: Attempt) -> Said:
    return attempt.content.decode(), None


def write_to_bucket(folder: Path, attempt: Attempt) -> Said:
    uploader = Uploader(a_bucket(folder), attempt.lock.name, attempt.index, attempt.uid)
    sha256 = uploader.save(ObjectKind.RECORD, attempt.content).sha256
    said = {"store": 1, "complete": True, "records": {attempt.uid: sha256}}
    return json.dumps({"sha256": sha256}), said


def a_bucket(folder: Path) -> Bucket:
    """Return a folder that stands for a bucket."""
    return Bucket(f"file://{folder}")


WRITERS: Mapping[str, Callable[[Path, Attempt], Said]] = {
    "api": write_message,
    "bucket": write_to_bucket,
    "claim": write_message,
    "volume": write_to_volume,
}
"""How a pod leaves a record in each store, and what it says of it when it ends."""


@dataclass
class Pods:
    """The pods of a namespace, as kubectl gives them."""

    manifests: list[dict[str, Any]] = field(default_factory=list)

    def pages(
        self, path: str, selector: str, *, size: int = 100, fields: str = ""
    ) -> Iterator[tuple[dict[str, Any], ...]]:
        assert path.endswith("/pods")
        assert size
        batch = selector.partition("=")[2]
        wanted = {"": ("Succeeded", "Failed", "Running"), "status.phase=Succeeded": ("Succeeded",)}
        phases = wanted.get(fields, ("Failed", "Running"))
        yield tuple(
            manifest
            for manifest in self.manifests
            if manifest["status"]["phase"] in phases
            and batch in {"", manifest["metadata"]["labels"][BATCH_LABEL]}
            and f"({manifest['metadata']['labels'][BATCH_LABEL]})" not in selector
        )

    def remove_finalizer(self, kind: str, names: Iterable[str], namespace: str, finalizer: str) -> None:
        assert (kind, namespace, finalizer) == ("pods", "trials", RECORD_FINALIZER)
        gone = set(names)
        self.manifests = [pod for pod in self.manifests if pod["metadata"]["name"] not in gone]


@dataclass
class Scene:
    """A merged batch of three trials with a store, its pods, and what a collector makes of them."""

    sandbox: Sandbox
    store: ResultsStore
    folder: Path
    pods: Pods = field(default_factory=Pods)

    @property
    def batch(self) -> StoredBatch:
        return self.sandbox.batch()

    def record(self, index: int, uid: str = "", **changes: Any) -> Attempt:
        """Return the attempt of a pod that has written a record."""
        uid = uid or f"uid-{index}"
        written = leave(self.folder / "written", self.batch, index, uid=uid, **changes)
        return Attempt(self.batch.lock, index, uid, written.read_bytes())

    def ends(self, attempt: Attempt, code: int = 0) -> None:
        """Let a pod leave its record, and end."""
        writer = WRITERS.get(self.store) or import_module(f"writer_to_{self.store}").write
        message, sidecar = writer(self.folder / "place", attempt)
        self.pods.manifests = [pod for pod in self.pods.manifests if pod["metadata"]["uid"] != attempt.uid]
        self._add(attempt, "Failed" if code else "Succeeded", ended(code, message=message), sidecar)

    def runs(self, attempt: Attempt) -> None:
        """Let a pod run on."""
        self._add(attempt, "Running", {"running": {}}, None)

    def _add(
        self, attempt: Attempt, phase: str, state: dict[str, Any], said: Mapping[str, Any] | None
    ) -> None:
        held = [RECORD_FINALIZER] if self.store.facts.holds_pods else []
        labels = {BATCH_LABEL: attempt.lock.name}
        pod = a_pod(attempt.uid, attempt.index, phase, state=state, labels=labels, finalizers=held)
        if said is not None:
            status = {"name": STORE_CONTAINER, "state": ended(0, message=json.dumps(said))}
            pod["status"]["initContainerStatuses"] = [status]
        self.pods.manifests.append(pod)

    def stores(self, before: Callable[[], object] = bool) -> RecordStores:
        """Return what a collector opens; something may happen before it does."""

        def opened(store: ResultsStore) -> RecordStore:
            before()
            if store.facts.has_sidecar:  # the settings name a bucket on the network
                return BucketResults(a_bucket(self.folder / "place"))
            settings = ResultsSettings(store=store)
            return open_store(store, settings, self.sandbox.workspace.repository, self.folder / "place")

        return RecordStores(self.store, opened)

    def look(self, stores: RecordStores | None = None) -> Collection:
        """Collect once, after the end of the Job."""
        target = self.sandbox.target()
        tip = target.tip()
        (batch,) = self.sandbox.batches()
        active = (batch,) if batch.is_active else ()
        job = BatchWorkloads(
            (Workload(None, has_ended=True, is_complete=True, finished=END, is_suspended=False),)
        )
        observed = ClusterBatches(active, {each.name: job for each in active}, AllExcept(frozenset()))
        store = PodStore(cast("Kubectl", self.pods), "trials", LATE, stores or self.stores())
        collection = record_from_cluster(target, observed, store, tip)
        assert collection.failures == ()
        return collection

    def recorded(self) -> list[str]:
        """Collect, and return the status of each trial as main has it then."""
        assert self.look().collected
        self.sandbox.pull()
        return column(self.sandbox, "status")


@pytest.fixture(params=list(ResultsStore))
def scene(sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    store: ResultsStore = request.param
    settings = BUCKET if store.facts.has_sidecar else f"results: {{store: {store}}}\n"
    append_to(sandbox.root / "sweepledger.yaml", settings)
    sandbox.commit("Choose a store")
    sandbox.merged()
    assert sandbox.batch().lock.store is store
    return Scene(sandbox, store, tmp_path)


def test_what_trials_leave_is_recorded_once(scene: Scene) -> None:
    opened = scene.stores().of(scene.batch)
    assert not opened.has_begun(scene.batch.name)
    assert opened.last_change(scene.batch.name) is None
    assert [*opened.records(scene.batch.name, 0, scene.batch.lock.place(0))] == []
    for index in range(3):
        scene.ends(scene.record(index))

    assert scene.recorded() == ["ok", "ok", "ok"]
    assert column(scene.sandbox, "metrics.score") == ["0", "0.5", "1"]
    assert scene.look().collected == ()
    assert len(scene.pods.manifests) == (0 if scene.store.facts.holds_pods else 3), "held until git has them"


def test_a_record_that_was_cut_or_of_another_trial_is_no_result(scene: Scene) -> None:
    whole, other = scene.record(1), scene.record(0, "forger", metrics={"score": 9.0})
    scene.ends(scene.record(0))
    scene.ends(Attempt(whole.lock, 1, whole.uid, whole.content[: len(whole.content) // 2]), code=1)
    scene.ends(Attempt(other.lock, 2, "forger", other.content), code=1)

    first, *others = scene.recorded()

    assert first == "ok"
    assert {*others} <= {"failed", "missing"}
    assert column(scene.sandbox, "metrics.score")[0] == "0"


def test_a_record_that_comes_late_takes_the_place_of_the_missing_one(scene: Scene) -> None:
    scene.ends(scene.record(0))
    scene.ends(scene.record(1))
    late = scene.record(2)
    scene.runs(late)
    assert scene.recorded() == ["ok", "ok", "missing"]

    scene.ends(late)

    assert scene.recorded() == ["ok", "ok", "ok"]
    assert scene.look().collected == ()


def test_of_two_collectors_that_read_the_same_records_one_commits(scene: Scene) -> None:
    for index in range(3):
        scene.ends(scene.record(index))
    others: list[int] = []

    def another_collects() -> None:
        if not others:
            others.append(0)
            others[0] = len(scene.look().collected)

    assert scene.look(scene.stores(another_collects)).collected == ()

    assert others == [1]
    scene.sandbox.pull()
    assert column(scene.sandbox, "status") == ["ok", "ok", "ok"]
