"""`sweep cluster doctor` against a real API server with the platform applied, and without a cluster."""

import base64
import json
import shlex
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.health import HealthFinding, HealthStatus
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.formats import bootstrap_yaml as bootstrap_file
from sweepledger.render.platform import kueue, readme
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.platform import GitSource, RequiredSecret
from sweepledger.structs.settings import Controller
from sweepledger.verbs.cluster.doctor import check_queue, diagnose, node_findings, release_pods
from tests.cluster.apiserver import Server, kubectl
from tests.cluster.platforms import Manifest, applied, bootstrapped, built
from tests.command_line import run_sweep
from tests.operations.clusters import Cluster
from tests.operations.test_bootstrap import COMPONENT
from tests.render.platforms import secrets_of
from tests.repository import Sandbox


@pytest.fixture
def namespace(apiserver: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))
    return f"team-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def platform(apiserver: Server, namespace: str, sandbox: Sandbox, needs_kustomize: None) -> str:
    bootstrapped(sandbox, namespace, Controller.ARGOCD)
    applied(apiserver, built(sandbox.root, "platform"))
    return namespace


def looked(sandbox: Sandbox, **options: Any) -> dict[str, HealthFinding]:
    return {finding.check: finding for finding in diagnose(sandbox.workspace, Kubectl(), **options)}


def test_what_a_component_of_the_team_changes_is_as_it_should_be(
    apiserver: Server, namespace: str, sandbox: Sandbox, needs_kustomize: None
) -> None:
    sandbox.write("clusters/extra/platform/kustomization.yaml", COMPONENT)
    bootstrapped(sandbox, namespace, Controller.ARGOCD)
    applied(apiserver, built(sandbox.root, "platform"))

    quota = looked(sandbox)[f"ResourceQuota {namespace}/sweep-trials"]

    assert quota.state is HealthStatus.OK


def test_what_nobody_made_is_missing_with_a_way_out(platform: str, sandbox: Sandbox) -> None:
    findings = looked(sandbox)

    secret = findings[f"Secret {platform}-collector/sweep-git-write"]
    assert secret.state is HealthStatus.MISSING
    assert secret.hint
    assert all(finding.hint for finding in findings.values() if finding.is_fault)
    _, items = readme.ticked((sandbox.root / "clusters/README.md").read_text(), {})
    runs = f"- [ ] collector of {platform}-collector"
    assert runs in items
    assert {item.removeprefix("- [ ] ") for item in items if item != runs} <= findings.keys()


def test_before_the_bootstrap_only_secrets_of_trials_are_needed(platform: str, sandbox: Sandbox) -> None:
    (sandbox.root / "clusters/bootstrap.yaml").unlink()
    sandbox.publish("Take the bootstrap back")

    findings = looked(sandbox)

    assert findings[f"Namespace {platform}"].state is HealthStatus.OK
    assert f"Secret {platform}-collector/sweep-git-write" not in findings


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX])
def test_what_is_not_applied_is_so_by_the_commands_of_the_platforms_own_page(
    controller: Controller, sandbox: Sandbox, namespace: str, needs_kustomize: None
) -> None:
    bootstrapped(sandbox, namespace, controller)
    page = (sandbox.root / "clusters/README.md").read_text()

    hint = looked(sandbox)[f"Namespace {namespace}-collector"].hint or ""

    platform, then, own = hint.split("`")[1:4]
    assert [f"`{command}`" in page for command in (platform, own)] == [True, True], hint
    expected = ("clusters/platform", ", then ", f"clusters/{controller}")
    assert (platform.split()[-1], then, own.split()[-1]) == expected
    assert all("--server-side" in command for command in (platform, own))


def an_object(kind: str, name: str, namespace: str = "", *, version: str = "v1", **parts: Any) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


@pytest.fixture
def orphans(sandbox: Sandbox, apiserver: Server, namespace: str) -> Cluster:
    """A namespace with an ended pod of a batch that no commit has, and one of a batch that is active."""
    cluster = Cluster(apiserver, namespace)
    apiserver.apply(an_object("Namespace", namespace), an_object("ServiceAccount", "default", namespace))
    settings = f"version: 1\nnamespace: {namespace}\nresults: {{store: api}}\n"
    (sandbox.root / "sweepledger.yaml").write_text(settings)
    sandbox.commit("Keep records in pods")
    for batch, pod in (("peak-b9-00000000", "orphan"), (sandbox.merged(), "waiting")):
        cluster.attempt(batch, 0, pod, finalizers=["sweepledger.dev/record"])
        cluster.ended(pod, 0)
    return cluster


def test_orphaned_pods_are_released_on_request(sandbox: Sandbox, orphans: Cluster) -> None:
    finding = looked(sandbox)["pods that are kept for their records"]
    assert finding.state is HealthStatus.WRONG
    assert "1 pods of peak-b9-00000000 have ended: no commit of the branch has this batch" in finding.message

    released = release_pods(sandbox.workspace, Kubectl(), time.time())

    assert released == {"peak-b9-00000000": ("orphan",)}
    (left,) = pods.held_pods(Kubectl(), orphans.namespace)
    assert left["metadata"]["name"] == "waiting"
    assert looked(sandbox)["pods that are kept for their records"].state is HealthStatus.OK


def test_a_claim_that_no_volume_fits_is_wrong(platform: str, sandbox: Sandbox) -> None:
    findings = looked(sandbox)

    assert "not 'Bound'" in findings[f"PersistentVolumeClaim {platform}/sweep-results"].message


class NodesWith(Kubectl):
    """A cluster whose nodes have one label."""

    def pages(self, path: str, selector: str, **_: Any) -> Iterator[tuple[Manifest, ...]]:
        assert path == "/api/v1/nodes"
        yield ({"kind": "Node"},) if selector == "sweepledger.dev/pool=gpu" else ()


@pytest.mark.parametrize(("name", "state"), [("gpu", HealthStatus.OK), ("other", HealthStatus.NOT_CHECKED)])
def test_nodes_of_a_pool_are_known_by_their_labels(name: str, state: HealthStatus) -> None:
    queued = Pool(name, NodeCapacity("8", "32Gi"), queue="research")
    anywhere = Pool("anywhere", NodeCapacity("8", "32Gi"))  # its pods run on any node

    (finding,) = node_findings({name: queued, "anywhere": anywhere}, NodesWith())

    assert (finding.check, finding.state) == (f"nodes of pool {name}", state)
    assert f"sweepledger.dev/pool={name}" in finding.message
    assert not finding.is_fault


MORE = f"""images: {{collector: registry.example/sweep@sha256:{"c" * 64}}}
pools: {{gpu: {{queue: research, node: {{cpu: 8, memory: 32Gi, gpu: 1}}, max_nodes: 4}}}}
datasets: {{digits: {{claim: digits, path: v2, version: '2'}}}}
authorities: company-ca/ca.crt
"""
"""A collector that runs, a queue, and a claim and certificates that no file of the platform describes."""


def a_claim(namespace: str, mode: str) -> Manifest:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    return an_object("PersistentVolumeClaim", "digits", namespace, spec=spec)


@pytest.fixture(params=[Controller.ARGOCD, Controller.FLUX], ids=str)
def complete(
    apiserver: Server, namespace: str, sandbox: Sandbox, needs_kustomize: None, request: pytest.FixtureRequest
) -> str:
    """Everything that the repository asks for; what controllers would report is reported by hand."""
    bootstrapped(sandbox, namespace, request.param, MORE)
    if request.param is Controller.ARGOCD:
        apiserver.apply(an_object("Namespace", "argocd"))
    made = [entry for folder in ("platform", str(request.param)) for entry in built(sandbox.root, folder)]
    applied(apiserver, made)
    spec = {"clusterQueue": "research"}
    queue = an_object("LocalQueue", "research", namespace, version="kueue.x-k8s.io/v1beta1", spec=spec)
    made_from = bootstrap_file.read((sandbox.root / bootstrap_file.BOOTSTRAP_FILE).read_bytes())
    source = GitSource(made_from.url, made_from.branch, made_from.shapes, is_public=made_from.public)
    needed = secrets_of(sandbox.workspace.settings, source)
    claim = a_claim(namespace, "ReadWriteMany")
    authorities = [
        an_object("ConfigMap", "company-ca", each, data={"ca.crt": ""})
        for each in (namespace, f"{namespace}-collector")
    ]
    apiserver.apply(queue, claim, *authorities, *map(a_secret, needed))
    for item in [*made, claim]:
        status = reported(item)
        if status:
            metadata = {name: item["metadata"][name] for name in ("name", "namespace")}
            document = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}
            say(apiserver, document | {"status": status})
    return namespace


def a_secret(needed: RequiredSecret) -> Manifest:
    content: dict[str, Any] = {
        "stringData": dict.fromkeys(needed.keys, "{}"),
        "type": needed.type or "Opaque",
    }
    return an_object("Secret", needed.name, needed.namespace, **content)


def reported(manifest: Manifest) -> dict[str, Any]:
    """Give what a controller says of an object when all is well."""
    since = "2026-01-01T00:00:00Z"
    match manifest["kind"]:
        case "PersistentVolumeClaim":
            return {"phase": "Bound"}
        case "Application":
            return {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}
        case "ApplicationSet":
            good = {"type": "ResourcesUpToDate", "status": "True", "message": "", "reason": "Done"}
            return {"conditions": [good]}
        case "GitRepository" | "Kustomization" | "Receiver":
            good = {"type": "Ready", "status": "True", "message": "", "reason": "Done"}
            return {"conditions": [good | {"lastTransitionTime": since}]}
    return {}


def say(server: Server, document: Manifest) -> None:
    """Report on an object: most kinds have a door of its own for it, Argo CD's Application has none."""
    metadata = document["metadata"]
    arguments = ("patch", document["kind"], metadata["name"], "--namespace", metadata["namespace"])
    door = () if document["kind"] == "Application" else ("--subresource=status",)
    server.kubectl(*arguments, *door, "--type=merge", "--patch", json.dumps({"status": document["status"]}))


def faults(sandbox: Sandbox) -> dict[str, HealthFinding]:
    return {what: finding for what, finding in looked(sandbox).items() if finding.is_fault}


def test_where_everything_is_in_place_nothing_is_wrong(complete: str, sandbox: Sandbox) -> None:
    assert faults(sandbox) == {}


@pytest.mark.parametrize("complete", [Controller.ARGOCD], indirect=True, ids=str)
def test_each_change_in_the_cluster_is_reported(complete: str, sandbox: Sandbox, apiserver: Server) -> None:
    collector = f"{complete}-collector"
    suspended = json.dumps({"spec": {"suspend": True}})
    apiserver.kubectl("patch", "cronjob", "sweep-collector", f"--namespace={collector}", "--patch", suspended)
    apiserver.kubectl("label", "namespace", complete, "pod-security.kubernetes.io/enforce-")
    apiserver.kubectl("delete", "localqueue", "research", f"--namespace={complete}")
    apiserver.kubectl("delete", "secret", "sweep-git-write", f"--namespace={collector}")
    apiserver.kubectl("delete", "configmap", "company-ca", f"--namespace={collector}")
    emptied = json.dumps([{"op": "remove", "path": "/data/token"}])
    apiserver.kubectl(
        "patch", "secret", "tracker", f"--namespace={complete}", "--type=json", "--patch", emptied
    )
    unprotected = json.dumps([{"op": "remove", "path": "/metadata/finalizers"}])
    claimed = ("pvc", "digits", f"--namespace={complete}")
    apiserver.kubectl("patch", *claimed, "--type=json", "--patch", unprotected)
    apiserver.kubectl("delete", *claimed)
    apiserver.apply(a_claim(complete, "ReadWriteOnce"))

    findings = faults(sandbox)

    assert {what: finding.state for what, finding in findings.items()} == {
        f"CronJob {collector}/sweep-collector": HealthStatus.WRONG,
        f"Namespace {complete}": HealthStatus.WRONG,
        f"LocalQueue {complete}/research": HealthStatus.MISSING,
        f"Secret {collector}/sweep-git-write": HealthStatus.MISSING,
        f"ConfigMap {collector}/company-ca": HealthStatus.MISSING,
        f"Secret {complete}/tracker": HealthStatus.WRONG,
        f"PersistentVolumeClaim {complete}/digits": HealthStatus.WRONG,
    }
    assert "4 nodes" in findings[f"PersistentVolumeClaim {complete}/digits"].message
    assert "restricted" in findings[f"Namespace {complete}"].message
    assert all(finding.hint for finding in findings.values())


def test_no_value_of_a_secret_is_read(platform: str, sandbox: Sandbox, apiserver: Server) -> None:
    value = base64.b64encode(b"canary-of-the-test").decode()
    apiserver.apply(an_object("Secret", "tracker", platform, data={"token": value}))

    done = run_sweep("cluster", "doctor", "--format", "json", cwd=Path(sandbox.root))

    document = {finding["check"]: finding for finding in json.loads(done.stdout)["data"]["findings"]}
    assert document[f"Secret {platform}/tracker"]["state"] == "ok"
    assert value not in done.stdout + done.stderr
    assert done.returncode == 5


def test_a_proof_without_nodes_leaves_nothing(platform: str, sandbox: Sandbox, apiserver: Server) -> None:
    finding = looked(sandbox, prove=True, patience=1.0)["a trial may write results"]

    left = apiserver.kubectl("get", "jobs", "--namespace", platform, "--output=name").stdout
    assert finding.state is HealthStatus.NOT_CHECKED
    assert "no node ran the Job in time" in finding.message
    assert left == ""


def test_no_cluster_passes_nothing(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    findings = diagnose(sandbox.workspace, Kubectl())

    states = {finding.check: finding.state for finding in findings}
    assert any(finding.is_fault for finding in findings)
    assert states["server version"] is HealthStatus.MISSING
    assert states["everything in it"] is HealthStatus.NOT_CHECKED
    assert states["branch origin/main"] is HealthStatus.OK


def test_a_placeholder_in_a_quota_is_named() -> None:
    amounts = {"cpu": "16", "ephemeral-storage": kueue.NO_BOUND}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    quota = {"spec": {"resourceGroups": [{"flavors": [{"name": "cpu", "resources": resources}]}]}}

    class Queues(Kubectl):
        def get(self, _: str, __: str, namespace: str | None = None) -> Manifest | None:
            return {"spec": {"clusterQueue": "whole"}} if namespace else dict(quota)

    def named() -> HealthFinding:
        check = partial(HealthFinding, "cluster", "queue")
        return check_queue(check, Queues(), "research", "cpu", None)

    found = named()
    resources[1]["nominalQuota"] = "4Ti"

    assert found.state is HealthStatus.NOT_CHECKED
    assert "quota of ephemeral-storage is the placeholder 1Ei" in found.message
    assert "ClusterQueue whole" in (found.hint or "")
    assert named().state is HealthStatus.OK
