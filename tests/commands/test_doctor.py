"""`sweep doctor` against a real API server with the platform applied, and without a cluster."""

import base64
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator.commands.doctor import doctor
from generator.engine.cluster.health import Finding, State
from generator.engine.cluster.kubectl import Kubectl
from generator.structs.settings import Controller
from tests.cluster.apiserver import Server, kubectl
from tests.cluster.platforms import applied, bootstrapped, built
from tests.repository import Sandbox


@pytest.fixture
def namespace(apiserver: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", kubectl())
    return f"team-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def platform(apiserver: Server, namespace: str, sandbox: Sandbox, needs_kustomize: None) -> str:
    bootstrapped(sandbox, namespace, Controller.ARGOCD)
    applied(apiserver, built(sandbox.root, "platform"))
    return namespace


def looked(sandbox: Sandbox, **options: Any) -> dict[str, Finding]:
    return {one.what: one for one in doctor(sandbox.workspace, Kubectl(), **options).findings}


def test_what_was_applied_is_in_place(platform: str, sandbox: Sandbox) -> None:
    found = looked(sandbox)

    for what in (
        f"Namespace {platform}",
        f"Namespace {platform}-collector",
        f"ServiceAccount {platform}/sweep-trial",
        f"ResourceQuota {platform}/sweep-trials",
        f"LimitRange {platform}/sweep-trials",
        f"ValidatingAdmissionPolicy {platform}-trial-jobs",
    ):
        assert found[what].state is State.OK, found[what]


def test_what_nobody_made_is_missing_with_a_way_out(platform: str, sandbox: Sandbox) -> None:
    found = looked(sandbox)

    secret = found[f"Secret {platform}-collector/sweep-git-write"]
    assert secret.state is State.MISSING
    assert secret.hint
    assert all(one.hint for one in found.values() if one.is_fault)


def test_what_was_changed_in_the_cluster_is_wrong(platform: str, sandbox: Sandbox, apiserver: Server) -> None:
    patch = ("patch", "cronjob", "sweep-collector", "--namespace", f"{platform}-collector", "--patch")
    apiserver.kubectl(*patch, json.dumps({"spec": {"suspend": True}}))
    label = "pod-security.kubernetes.io/enforce=privileged"
    apiserver.kubectl("label", "namespace", platform, label, "--overwrite")

    found = looked(sandbox)

    assert found[f"CronJob {platform}-collector/sweep-collector"].state is State.WRONG
    assert "restricted" in found[f"Namespace {platform}"].says


def test_a_claim_that_no_volume_fits_is_wrong(platform: str, sandbox: Sandbox) -> None:
    found = looked(sandbox)

    assert "not 'Bound'" in found[f"PersistentVolumeClaim {platform}/sweep-results"].says


def test_secrets_are_looked_at_by_key_and_never_by_value(
    platform: str, sandbox: Sandbox, apiserver: Server, run_sweep: Callable[..., Any]
) -> None:
    value = base64.b64encode(b"canary-of-the-test").decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tracker", "namespace": platform}}
    apiserver.apply(secret | {"data": {"token": value}})

    done = run_sweep("doctor", "--format", "json", cwd=Path(sandbox.root))

    told = {one["what"]: one for one in json.loads(done.stdout)["data"]["findings"]}
    assert told[f"Secret {platform}/tracker, key token"]["state"] == "ok"
    assert value not in done.stdout + done.stderr
    assert done.returncode == 5


def test_a_proof_that_no_node_runs_ends_in_time_and_leaves_nothing(
    platform: str, sandbox: Sandbox, apiserver: Server
) -> None:
    found = looked(sandbox, prove=True, patience=1.0)["a trial may write results"]

    left = apiserver.kubectl("get", "jobs", "--namespace", platform, "--output=name").stdout
    assert found.state is State.NOT_CHECKED
    assert "no node ran the Job in time" in found.says
    assert left == ""


def test_without_a_cluster_nothing_in_it_passes(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    found = doctor(sandbox.workspace, Kubectl())

    states = {one.what: one.state for one in found.findings}
    assert not found.is_healthy
    assert states["server version"] is State.MISSING
    assert states["everything in it"] is State.NOT_CHECKED
    assert states["branch origin/main"] is State.OK
