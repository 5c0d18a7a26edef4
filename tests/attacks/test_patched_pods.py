"""The collector's credential patches pods that hold records: it lets one finalizer go, and changes nothing else."""

import json
import time
import uuid
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.structs.kubernetes import RECORD_FINALIZER
from sweepledger.structs.settings import ResultsSettings, ResultsStore
from tests.cluster.apiserver import Server
from tests.render.judging import refusals
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, the
from tests.sweeps import with_keys

REFUSAL = f"of a pod the collector changes nothing but the finalizer {RECORD_FINALIZER}"
OTHER_FINALIZER = "example.org/keeps"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "peak", "uid": "1", "controller": True}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "held",
        "labels": {"sweepledger.dev/batch": "peak-b1-3f9a1c2e"},
        "annotations": {"example.org/a": "b"},
        "finalizers": [RECORD_FINALIZER, OTHER_FINALIZER],
        "ownerReferences": [OWNER],
    },
    "spec": {
        "activeDeadlineSeconds": 3600,
        "containers": [{"name": "trial", "image": f"registry.example/a@sha256:{'a' * 64}"}],
    },
}
PATCHES: dict[str, dict[str, Any]] = {
    "an annotation more": {"metadata": {"annotations": {"example.org/b": "b"}}},
    "another annotation": {"metadata": {"annotations": {"example.org/a": "c"}}},
    "no annotation": {"metadata": {"annotations": None}},
    "another batch": {"metadata": {"labels": {"sweepledger.dev/batch": "other-b1-3f9a1c2e"}}},
    "no batch": {"metadata": {"labels": None}},
    "an owner that does not exist": {"metadata": {"ownerReferences": [{**OWNER, "uid": "2"}]}},
    "an owner more": {"metadata": {"ownerReferences": [OWNER, {**OWNER, "uid": "2", "controller": False}]}},
    "an owner that is no controller": {"metadata": {"ownerReferences": [{**OWNER, "controller": False}]}},
    "no owner": {"metadata": {"ownerReferences": None}},
    "a finalizer more": {
        "metadata": {"finalizers": [RECORD_FINALIZER, OTHER_FINALIZER, "example.org/for-ever"]}
    },
    "the finalizer of another": {"metadata": {"finalizers": [RECORD_FINALIZER]}},
    "no finalizer": {"metadata": {"finalizers": None}},
    "a deadline of a second": {"spec": {"activeDeadlineSeconds": 1}},
}
RELEASE: dict[str, Any] = {"metadata": {"finalizers": [OTHER_FINALIZER]}}
SETTINGS = replace(PLATFORM_SETTINGS, results=ResultsSettings(store=ResultsStore.API))
COLLECTOR = f"system:serviceaccount:{SETTINGS.trials.namespace}-collector:sweep-collector"


def patched(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Apply a merge patch, as RFC 7386 says."""
    made = deepcopy(document)
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = patched(made.get(key, {}), value) if isinstance(value, dict) else value
    return made


@pytest.mark.parametrize("patch", PATCHES)
def test_the_policy_refuses_every_other_change_of_a_held_pod(patch: str) -> None:
    policy = the("ValidatingAdmissionPolicy", f"{SETTINGS.trials.namespace}-releases", a_platform(SETTINGS))
    held = {"status": {}, **POD}

    assert refusals(policy, patched(held, PATCHES[patch]), "UPDATE", old=held, user=COLLECTOR) == {REFUSAL}
    assert refusals(policy, patched(held, PATCHES[patch]), "UPDATE", old=held, user="alice") == set()


def test_the_policy_lets_the_finalizer_go() -> None:
    policy = the("ValidatingAdmissionPolicy", f"{SETTINGS.trials.namespace}-releases", a_platform(SETTINGS))
    held = {"status": {}, **POD}

    assert refusals(policy, patched(held, RELEASE), "UPDATE", old=held, user=COLLECTOR) == set()


@pytest.fixture(scope="module")
def namespace(apiserver: Server) -> Iterator[str]:
    """A namespace with the policy in force and a held pod, in which the collector's account may patch pods."""
    name = f"releases-{uuid.uuid4().hex[:8]}"
    tree = a_platform(with_keys(SETTINGS, namespace=name))
    policies = [
        the(kind, f"{name}-releases", tree)
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    ]
    account = {"kind": "ServiceAccount", "name": "sweep-collector", "namespace": f"{name}-collector"}
    apiserver.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
        *policies,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "patches", "namespace": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "patches", "namespace": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patches"},
            "subjects": [account],
        },
        patched(POD, {"metadata": {"namespace": name}}),
    )
    deadline = time.monotonic() + 120
    while not said(apiserver, name, PATCHES["no batch"]) and time.monotonic() < deadline:
        time.sleep(0.2)  # until the server has read the policy
    yield name
    apiserver.kubectl("delete", "--wait=false", "-f", "-", given=policies)
    apiserver.kubectl("delete", "namespace", name, "--wait=false")


def said(server: Server, namespace: str, patch: dict[str, Any]) -> str:
    """Return what the server says to a patch of the collector's in a dry run; nothing where it accepts it."""
    account = f"--as=system:serviceaccount:{namespace}-collector:sweep-collector"
    words = ("patch", "pod", "held", f"--namespace={namespace}", account, "--dry-run=server")
    done = server.kubectl(*words, "--type=merge", f"--patch={json.dumps(patch)}", check=False)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("patch", PATCHES)
def test_a_server_refuses_every_other_change(patch: str, apiserver: Server, namespace: str) -> None:
    assert REFUSAL in said(apiserver, namespace, PATCHES[patch])


def test_a_server_lets_the_finalizer_go(apiserver: Server, namespace: str) -> None:
    assert said(apiserver, namespace, RELEASE) == ""
