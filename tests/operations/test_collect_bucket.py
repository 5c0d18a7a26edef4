"""`results.store: bucket`: what counts is what pods of a real API server confirm, and pods stay until git has it."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from sweepledger.bucket.layout import ObjectKind
from sweepledger.bucket.objects import Bucket
from sweepledger.bucket.results import BucketResults
from sweepledger.bucket.transfer import Uploader
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.operations.collection.collector import Collection, collect_from_cluster
from sweepledger.operations.collection.record_store import RecordStore, RecordStores
from sweepledger.operations.record_stores.messages import MessageResults
from sweepledger.structs.settings import ResultsSettings, ResultsStore
from tests.bucket import servers
from tests.bucket.servers import NoServerError
from tests.operations.clusters import ENDED_AT, MOMENT, Cluster
from tests.operations.test_collect import column, leave, recorded, stored
from tests.operations.test_collect_pods import FINALIZERS, held
from tests.operations.test_several_datasets import BUCKET
from tests.repository import Sandbox, append_to

SEALS = b"0123456789abcdef" * 4


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.full_suite("object storage"))])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bucket]:
    """An empty bucket: a folder that stands for one, or a real S3 server."""
    if request.param == "folder":
        yield Bucket(f"file://{tmp_path / 'bucket'}")
        return
    (tmp_path / "server").mkdir()
    try:
        with servers.running("s3", tmp_path / "server") as server:
            yield Bucket(server.url, secrets=server.secrets)
    except NoServerError as error:
        pytest.skip(f"skipped: {error}")


def in_a_bucket(sandbox: Sandbox) -> None:
    """Let the results of new batches go to a bucket."""
    append_to(sandbox.root / "sweepledger.yaml", BUCKET)
    sandbox.commit("Keep results in a bucket")


@pytest.fixture
def batch(sandbox: Sandbox, cluster: Cluster) -> str:
    """A merged batch of three trials whose results go to a bucket."""
    in_a_bucket(sandbox)
    name = sandbox.merged()
    assert stored(sandbox).lock.store is ResultsStore.BUCKET
    return name


def ended_sidecar(said: dict[str, Any]) -> dict[str, Any]:
    """Return the status of a sidecar that ended with this message."""
    state = {"exitCode": 0, "message": json.dumps(said), "startedAt": MOMENT, "finishedAt": MOMENT}
    container = {"name": "store", "image": "a.example/c", "imageID": "", "ready": False, "restartCount": 0}
    return {**container, "state": {"terminated": state}}


class Trials:
    """The pods of a batch, and what their sidecars have written."""

    def __init__(self, cluster: Cluster, sandbox: Sandbox, bucket: Bucket, folder: Path) -> None:
        self.cluster, self.sandbox, self.bucket, self.folder = cluster, sandbox, bucket, folder

    def record(self, index: int, uid: str, **changes: Any) -> bytes:
        return leave(self.folder, stored(self.sandbox), index, uid=uid, **changes).read_bytes()

    def save(self, index: int, uid: str, content: bytes, key: bytes | None = None) -> str:
        """Write a record as a sidecar does; return its digest."""
        return (
            Uploader(self.bucket, stored(self.sandbox).name, index, uid, key)
            .save(ObjectKind.RECORD, content)
            .sha256
        )

    def started(self, index: int, name: str = "") -> str:
        """Make a held pod; return its uid."""
        name = name or f"pod-{index}"
        return self.cluster.attempt(stored(self.sandbox).name, index, name, finalizers=FINALIZERS)

    def ended(
        self,
        name: str,
        message: str = "",
        *,
        code: int = 0,
        complete: bool = True,
        records: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Say how launcher and sidecar of a pod have ended."""
        said = {"store": 1, "complete": complete, "records": dict(records)}
        self.cluster.ended(name, code, message, initContainerStatuses=[ended_sidecar(said)])

    def attempt(self, index: int, **changes: Any) -> None:
        """Make a pod that has ended well: record in the bucket, its digest in the message."""
        uid = self.started(index)
        sha256 = self.save(index, uid, self.record(index, uid, **changes))
        self.ended(f"pod-{index}", json.dumps({"sha256": sha256}), records={uid: sha256})


@pytest.fixture
def trials(cluster: Cluster, sandbox: Sandbox, batch: str, bucket: Bucket, tmp_path: Path) -> Trials:
    cluster.job(batch, trials=3)
    return Trials(cluster, sandbox, bucket, tmp_path / "records")


def look(trials: Trials, key: bytes | None = None) -> Collection:
    """Collect a second after the end of every Job and pod."""
    target = trials.sandbox.target()
    results, cluster = BucketResults(trials.bucket, key), trials.cluster
    stores = RecordStores.all_in(results)
    return collect_from_cluster(target, stores, Kubectl(), cluster.namespace, clock=lambda: ENDED_AT + 1)


def test_the_push_releases_pods(trials: Trials, sandbox: Sandbox, cluster: Cluster, batch: str) -> None:
    for index in range(3):
        trials.attempt(index)
    assert look(trials).collected == (), "the Job goes on"
    assert held(cluster) == ["pod-0", "pod-1", "pod-2"]
    cluster.end(batch, "Complete", completedIndexes="0-2")

    collection = look(trials)

    assert recorded(sandbox, collection.collected) == {"0": "ok", "1": "ok", "2": "ok"}
    assert not any("not all files" in remark for remark in collection.remarks)
    assert held(cluster) == []
    assert look(trials).collected == ()


def test_unconfirmed_is_not_counted(trials: Trials, sandbox: Sandbox, cluster: Cluster, batch: str) -> None:
    trials.attempt(0)
    trials.save(0, "forger", trials.record(0, "forger", metrics={"score": 9.0}))
    trials.save(1, "forger", trials.record(1, "forger", metrics={"score": 9.0}))
    trials.started(1)
    trials.ended("pod-1", code=1)
    trials.attempt(2)
    cluster.end(batch, "Failed", completedIndexes="0,2", failedIndexes="1")

    collection = look(trials)

    assert recorded(sandbox, collection.collected) == {"0": "ok", "1": "failed", "2": "ok"}
    assert column(sandbox, "metrics.score")[0] == "0"
    assert [reason for commit in collection.collected for reason in commit.corrupt] == ["unconfirmed"] * 2


def test_seals_replace_pods(trials: Trials, sandbox: Sandbox, cluster: Cluster, batch: str) -> None:
    for index in range(3):
        trials.save(index, f"uid-{index}", trials.record(index, f"uid-{index}"), SEALS)
    trials.save(0, "forger", trials.record(0, "forger", metrics={"score": 9.0}), b"of another" * 8)
    cluster.end(batch, "Complete", completedIndexes="0-2")

    assert recorded(sandbox, look(trials, SEALS).collected) == {"0": "ok", "1": "ok", "2": "ok"}
    assert column(sandbox, "metrics.score")[0] == "0"


def test_a_batch_is_not_recorded_while_the_settings_have_lost_its_bucket(
    trials: Trials, sandbox: Sandbox, cluster: Cluster, batch: str, tmp_path: Path
) -> None:
    for index in range(3):
        trials.attempt(index)
    cluster.end(batch, "Complete", completedIndexes="0-2")
    target = sandbox.target()
    stores = RecordStores.of_settings(ResultsSettings(), target.repository, tmp_path / "volume")

    collection = collect_from_cluster(
        target, stores, Kubectl(), cluster.namespace, clock=lambda: ENDED_AT + 1
    )

    (failure,) = collection.failures
    assert "its records are in a bucket" in str(failure)
    assert held(cluster) == ["pod-0", "pod-1", "pod-2"]


def in_pods(sandbox: Sandbox, cluster: Cluster, tmp_path: Path) -> str:
    """Merge another sweep, whose only trial has ended with its record in its pod; give its batch."""
    settings = sandbox.root / "sweepledger.yaml"
    before = settings.read_text()
    settings.write_text(re.sub("results: .*", "results: {store: api}", before))
    sandbox.commit("Keep records in pods for a while")
    name = sandbox.merged("plain", xs="1")
    settings.write_text(before)
    sandbox.publish("Keep results in a bucket again")
    (batch,) = [each for each in sandbox.batches() if each.name == name]
    cluster.job(name, trials=1)
    uid = cluster.attempt(name, 0, "plain", finalizers=FINALIZERS)
    cluster.ended("plain", 0, leave(tmp_path / "plain", batch, 0, uid=uid).read_text())
    cluster.end(name, "Complete", completedIndexes="0")
    return name


def silent() -> Bucket:
    variables = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "r"}
    keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
    return Bucket("s3://results/sweeps", variables=variables | keys)


@pytest.mark.parametrize("key", [None, SEALS], ids=["without seals", "with seals"])
def test_while_the_bucket_does_not_answer_batches_without_one_are_recorded(
    trials: Trials, sandbox: Sandbox, cluster: Cluster, batch: str, tmp_path: Path, key: bytes | None
) -> None:
    for index in range(3):
        trials.attempt(index)
    cluster.end(batch, "Complete", completedIndexes="0-2")
    other = in_pods(sandbox, cluster, tmp_path)
    opened: dict[ResultsStore, RecordStore] = {
        ResultsStore.BUCKET: BucketResults(silent(), key),
        ResultsStore.API: MessageResults(),
    }
    target, stores = sandbox.target(), RecordStores(ResultsStore.BUCKET, opened.__getitem__)

    collection = collect_from_cluster(
        target, stores, Kubectl(), cluster.namespace, clock=lambda: ENDED_AT + 1
    )

    assert [commit.batches for commit in collection.collected] == [(other,)]
    assert any(str(failure).startswith(f"{batch} is not recorded: ") for failure in collection.failures)
    assert held(cluster) == ["pod-0", "pod-1", "pod-2"]
    assert recorded(sandbox, look(trials, key).collected) == {"0": "ok", "1": "ok", "2": "ok"}
