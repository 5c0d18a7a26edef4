"""`sweep submit` against a real API server with the demands of a shared cluster. No pod ever runs there."""

import json
import shlex
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.formats import record_json, records_jsonl
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import kustomize
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import Record
from sweepledger.verbs.submit import Submitted, submit
from tests.cluster.apiserver import Server, kubectl
from tests.operations.test_collect import leave
from tests.repository import Sandbox, answer, append_to

SETTINGS = """version: 1
namespace: {namespace}
controller: submit
defaults: {{image: 'registry.example/trainer@sha256:{digest}'}}
submit: {{ttl: {ttl}}}
results: {{every: {every}}}
"""

DEMANDED = {
    "generateName": "has(object.metadata.generateName) && object.metadata.generateName != ''",
    "queue": "'kueue.x-k8s.io/queue-name' in object.metadata.labels"
    " && object.metadata.labels['kueue.x-k8s.io/queue-name'] == object.metadata.namespace + '-user-queue'",
    "resources": "object.spec.template.spec.containers.all(c, has(c.resources.requests)"
    " && has(c.resources.limits)"
    " && ['cpu', 'memory'].all(r, r in c.resources.requests && r in c.resources.limits))",
    "ttl": "has(object.spec.ttlSecondsAfterFinished)",
}
"""What the cluster refuses Jobs without."""


def submit_batches(workspace: Workspace, name: str, **options: bool) -> tuple[Submitted, ...]:
    made: tuple[Submitted, ...] = answer(submit, workspace, name, **options)["batches"]
    return made


@pytest.fixture
def cluster(apiserver: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A namespace in which every Job must be as the cluster's owners want it."""
    name = f"project-{uuid.uuid4().hex[:8]}"
    registration = "admissionregistration.k8s.io/v1"
    jobs = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    policy = {
        "apiVersion": registration,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [jobs]},
            "validations": [{"expression": rule, "message": f"no {what}"} for what, rule in DEMANDED.items()],
        },
    }
    selected = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    binding = {
        "apiVersion": registration,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": selected},
    }
    apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, policy, binding)
    apiserver.until_refused(bare_job(name))
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))
    yield name
    apiserver.kubectl("delete", "validatingadmissionpolicybindings,validatingadmissionpolicies", name)


@pytest.fixture
def merged(sandbox: Sandbox, cluster: str, needs_kustomize: None) -> Callable[..., str]:
    def merge(ttl: str = "7d", every: str = "5m", parallelism: int = 3) -> str:
        text = SETTINGS.format(namespace=cluster, ttl=ttl, every=every, digest="a" * 64)
        sandbox.write("sweepledger.yaml", text)
        return sandbox.merged(parallelism=parallelism)

    return merge


def bare_job(namespace: str) -> dict[str, Any]:
    container = {"name": "trial", "image": "a.example/b"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": "bare", "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def held(server: Server, namespace: str, kind: str = "jobs") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(
        server.kubectl("get", kind, "--namespace", namespace, "--output=json").stdout
    )["items"]
    return items


def test_each_once(apiserver: Server, cluster: str, merged: Callable[..., str], sandbox: Sandbox) -> None:
    batch = merged()
    rendered = kustomize.build(sandbox.root / "overlays/active" / batch)
    refused = [apiserver.refuses(job) for job in rendered if job["kind"] == "Job"]
    assert all("no generateName" in message for message in refused), "as a controller would apply them"

    done = sandbox.sweep("submit", "peak", "--context", "test", "--format", "json")

    (result,) = json.loads(done.stdout)["data"]["batches"]
    jobs = held(apiserver, cluster)
    assert (result["batch"], result["present"], result["recorded"]) == (batch, [], 0)
    assert sorted(job["metadata"]["name"] for job in jobs) == result["created"]
    assert len(jobs) == 3
    assert {job["metadata"]["labels"]["sweepledger.dev/batch"] for job in jobs} == {batch}
    assert len({job["metadata"]["labels"]["sweepledger.dev/trial"] for job in jobs}) == 3
    assert {job["spec"]["ttlSecondsAfterFinished"] for job in jobs} == {604_800}
    with pytest.raises(RepositoryError, match="was submitted already: 3 object"):
        submit_batches(sandbox.workspace, batch, again=True)
    assert len(held(apiserver, cluster)) == 3


def test_of_two_who_submit_at_the_same_moment_one_is_refused(
    apiserver: Server,
    cluster: str,
    merged: Callable[..., str],
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch, both, look = merged(), threading.Barrier(2), Kubectl.find

    def look_together(self: Kubectl, manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        document = look(self, manifest)
        both.wait(timeout=120)
        return document

    monkeypatch.setattr(Kubectl, "find", look_together)
    with ThreadPoolExecutor(2) as people:
        tries = [people.submit(submit_batches, sandbox.workspace, batch) for _ in range(2)]
        refused = [future.exception() for future in tries if future.exception()]

    assert ["another user" in str(error) for error in refused] == [True]
    assert len(held(apiserver, cluster)) == 3


def test_lost_jobs(apiserver: Server, cluster: str, merged: Callable[..., str], sandbox: Sandbox) -> None:
    batch = merged()
    submit_batches(sandbox.workspace, batch)
    lost = held(apiserver, cluster)[0]["metadata"]
    apiserver.kubectl("delete", "job", lost["name"], "--namespace", cluster, "--wait=false")

    (result,) = submit_batches(sandbox.workspace, batch)

    trials = [job["metadata"]["labels"]["sweepledger.dev/trial"] for job in held(apiserver, cluster)]
    assert (len(result.created), len(result.present)) == (1, 2)
    assert len(trials) == len(set(trials)) == 3
    apiserver.kubectl("delete", "jobs", "--all", "--namespace", cluster, "--wait=false")
    with pytest.raises(RepositoryError, match="its Jobs are gone") as caught:
        submit_batches(sandbox.workspace, batch)
    assert "--again" in str(caught.value.hint)
    assert not held(apiserver, cluster)
    (again,) = submit_batches(sandbox.workspace, batch, again=True)
    assert len(again.created) == 3


def test_indexed_jobs(apiserver: Server, cluster: str, merged: Callable[..., str], sandbox: Sandbox) -> None:
    merged(parallelism=2)
    (planned,) = submit_batches(sandbox.workspace, "peak", dry_run=True)
    assert len(planned.created) == 1
    assert (held(apiserver, cluster), held(apiserver, cluster, "configmaps")) == ([], [])

    submit_batches(sandbox.workspace, "peak")

    (job,) = held(apiserver, cluster)
    assert job["spec"]["completions"] == 3
    with pytest.raises(RepositoryError, match="was submitted already"):
        submit_batches(sandbox.workspace, "peak")


def test_only_active_batches_are_submitted(
    cluster: str, merged: Callable[..., str], sandbox: Sandbox
) -> None:
    batch = merged()
    sandbox.spec(name="other")

    with pytest.raises(RepositoryError, match="no batch 'other' is in git") as caught:
        submit_batches(sandbox.workspace, "other")

    assert "merge it first" in str(caught.value.hint)
    (sandbox.root / "overlays/archive").mkdir(exist_ok=True)
    sandbox.git("mv", f"overlays/active/{batch}", f"overlays/archive/{batch}")
    sandbox.publish("Record it")
    with pytest.raises(RepositoryError, match="it never runs again"):
        submit_batches(sandbox.workspace, batch)


def test_known_trials(apiserver: Server, cluster: str, merged: Callable[..., str], sandbox: Sandbox) -> None:
    name = merged()
    (batch,) = sandbox.batches()
    keep(sandbox, batch, 0, 1, 2)
    with pytest.raises(RepositoryError, match="all results are in git"):
        submit_batches(sandbox.workspace, name, again=True)
    assert not held(apiserver, cluster)
    keep(sandbox, batch, 0)

    (result,) = submit_batches(sandbox.workspace, name)

    trials = {job["metadata"]["labels"]["sweepledger.dev/trial"] for job in held(apiserver, cluster)}
    assert (result.recorded, len(result.created)) == (1, 2)
    assert expected_trials(batch)[0].trial not in trials


def keep(sandbox: Sandbox, batch: StoredBatch, *indexes: int) -> None:
    """Put records of some trials on the branch, as a collection that goes on would."""
    left = [
        record_json.read(leave(sandbox.root.parent / "left", batch, index).read_bytes()) for index in indexes
    ]
    (content,) = records_jsonl.write(record for record in left if isinstance(record, Record))
    sandbox.publish("Record", {batch.records_file(): content.decode()})


def test_train_jobs(apiserver: Server, cluster: str, sandbox: Sandbox, needs_kustomize: None) -> None:
    settings = SETTINGS.format(namespace=cluster, ttl="7d", every="5m", digest="a" * 64)
    sandbox.write("sweepledger.yaml", settings)
    append_to(sandbox.spec(parallelism=3), "  shape: train-job\n  nodes: 2\n")
    sandbox.publish_batches("Ask for a sweep")

    (result,) = submit_batches(sandbox.workspace, "peak")

    jobs = held(apiserver, cluster, "trainjobs")
    (runtime,) = held(apiserver, cluster, "trainingruntimes")
    assert len(jobs) == len(result.created) == 3
    assert {job["spec"]["runtimeRef"]["name"] for job in jobs} == {runtime["metadata"]["name"]}
    assert {job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for job in jobs} == {
        f"{cluster}-user-queue"
    }
    with pytest.raises(RepositoryError, match="was submitted already: 3 object"):
        submit_batches(sandbox.workspace, "peak")


def test_a_missing_image(apiserver: Server, cluster: str, sandbox: Sandbox, needs_kustomize: None) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\nnamespace: {cluster}\n")
    sandbox.merged()
    sandbox.write("sweepledger.yaml", f"version: 1\nnamespace: {cluster}\ncontroller: submit\n")

    with pytest.raises(RepositoryError, match="has no image: only `sweep cluster local` runs it"):
        submit_batches(sandbox.workspace, "peak")

    assert not held(apiserver, cluster)


def test_a_ttl_shorter_than_the_collect_interval_is_refused(sandbox: Sandbox) -> None:
    text = SETTINGS.format(namespace="project", ttl="5m", every="10m", digest="a" * 64)
    sandbox.write("sweepledger.yaml", text)

    with pytest.raises(SpecError) as caught:
        submit_batches(sandbox.workspace, "peak")

    assert [problem.path for problem in caught.value.problems] == ["submit.ttl"]


def test_a_repository_that_a_controller_follows_is_not_submitted_from(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\ncontroller: argocd\n")

    with pytest.raises(UsageError, match="two controllers trials would run twice"):
        submit_batches(sandbox.workspace, "peak")
