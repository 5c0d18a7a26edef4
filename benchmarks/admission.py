"""What the admission policies of many teams cost an API server, and what one set with parameters would do.

python benchmarks/admission.py [--asked N]

Needs `make api-tools`. docs/decisions/0022-policies-of-a-team.md has the results.
"""

import argparse
import json
import ssl
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "generator")]

from tests.cluster.apiserver import TOKEN, Server, running  # noqa: E402
from tests.render.building import built, job_of  # noqa: E402
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, manifests  # noqa: E402
from tests.sweeps import a_batch, a_full_sweep, with_keys  # noqa: E402

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
SETTINGS = with_keys(PLATFORM_SETTINGS, priority_class=None)
ASKED = 200
TEAMS = (1, 10, 100)
MIB = 1 << 20
CONFIG_MAPS, TABLE = 100, "x" * (MIB - 4096)
SETTLED_SECONDS = 5.0
HEAD: dict[str, Any] = {"apiVersion": "admissionregistration.k8s.io/v1"}
Manifest = dict[str, Any]


def main() -> None:
    """Print what each number of teams costs, and what a policy with parameters does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asked", type=int, default=ASKED, help="requests of each measurement")
    asked = parser.parse_args().asked
    with tempfile.TemporaryDirectory() as folder:
        job = job_of(built(a_batch(sweep=a_full_sweep("chosen"), image=IMAGE), Path(folder), SETTINGS))
    with running() as server:
        print("teams  policies  MiB of its heap    CPU ms of a request  median ms")
        done = 0
        for teams in (0, *TEAMS):
            judged = in_namespace(job, space(0))
            if teams:
                server.apply(*(one for number in range(done, teams) for one in policies_of(number)))
                server.until_in_force()
            done = teams
            costs = Costs.of(server, judged, asked)
            print(
                f"{teams:5}  {costs.policies:8}  {costs.mebibytes:17.0f}  {costs.cpu:19.1f}  {costs.median:9.1f}"
            )
    with running() as server:
        for line in parameters(server):
            print(line)
    for has_parameters in (False, True):
        with running() as server:
            added = memory(server, has_parameters=has_parameters)
        beside = "with" if has_parameters else "without"
        print(
            f"{CONFIG_MAPS} ConfigMaps of 1 MiB, {beside} a policy whose parameters are ConfigMaps: {added:.0f} MiB"
        )


def space(number: int) -> str:
    """Return the namespace of a team."""
    return f"team-{number}"


def policies_of(number: int) -> list[Manifest]:
    """Return a team's namespace with the account of trials, and its policies and their bindings."""
    settings = with_keys(SETTINGS, namespace=space(number))
    made = [one for one in manifests(a_platform(settings), "clusters/platform/") if "kind" in one]
    wanted = [
        one
        for one in made
        if one["kind"].startswith("ValidatingAdmission") and "owner" not in one["metadata"]["name"]
    ]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space(number)}}, *wanted]


def in_namespace(job: Manifest, namespace: str) -> Manifest:
    """Return a Job in another namespace."""
    return {**job, "metadata": {**job["metadata"], "namespace": namespace}}


@dataclass(frozen=True)
class Costs:
    """Of a server with some policies."""

    policies: int
    mebibytes: float
    cpu: float
    """Milliseconds of the server for a request that creates a Job, without storing it."""
    median: float
    """Milliseconds until the answer."""

    @classmethod
    def of(cls, server: Server, job: Manifest, asked: int) -> "Costs":
        """Measure them by creating a Job in a dry run."""
        client = Client(server)
        path = f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs?dryRun=All"
        if client.post("/api/v1/namespaces", namespace(job)) not in {HTTPStatus.CREATED, HTTPStatus.CONFLICT}:
            raise AssertionError("the namespace cannot be made")
        for _ in range(20):
            client.post(path, job)
        before, times = cpu_seconds(server), []
        for _ in range(asked):
            began = time.perf_counter()
            status = client.post(path, job)
            times.append(time.perf_counter() - began)
            assert status == HTTPStatus.CREATED, status
        used = cpu_seconds(server) - before
        listed = server.ask("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies") or {
            "items": []
        }
        return cls(len(listed["items"]), heap(server), 1000 * used / asked, 1000 * statistics.median(times))


def namespace(job: Manifest) -> Manifest:
    """Return the namespace of a Job."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": job["metadata"]["namespace"]}}


class Client:
    """Posts objects; kubectl would cost more than what is measured."""

    def __init__(self, server: Server) -> None:
        cluster = json.loads(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        self.address = cluster["server"]
        self.trusted = ssl.create_default_context(cafile=cluster["certificate-authority"])

    def post(self, path: str, body: Manifest) -> int:
        """Return the status of the answer."""
        request = urllib.request.Request(  # noqa: S310 - the address is our own server's
            self.address + path,
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, context=self.trusted) as answer:  # noqa: S310
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


def pid(server: Server) -> int:
    """Return the number of the server's process."""
    return int((server.folder / "kube-apiserver.pid").read_text())


def cpu_seconds(server: Server) -> float:
    """Return what the server has used."""
    fields = Path(f"/proc/{pid(server)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def heap(server: Server) -> float:
    """Return the MiB that the server still needs after it has collected its garbage."""
    server.kubectl("get", "--raw", "/debug/pprof/heap?gc=1&debug=1")
    metrics = server.kubectl("get", "--raw", "/metrics").stdout
    (line,) = [line for line in metrics.splitlines() if line.startswith("go_memstats_heap_alloc_bytes ")]
    return float(line.split()[1]) / MIB


def parameters(server: Server) -> Iterable[str]:
    """Yield what an API server does where the parameter of a policy is missing, or the policy itself."""
    for name in ("team", "params"):
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    head = {"apiVersion": "v1", "metadata": {"name": "default", "namespace": "team"}}
    pod = {
        **head,
        "kind": "Pod",
        "metadata": {"name": "trial", "namespace": "team", "finalizers": ["sweepledger.dev/record"]},
        "spec": {"containers": [{"name": "trial", "image": "x@sha256:" + "0" * 64}]},
    }
    server.apply({**head, "kind": "ServiceAccount"}, pod)
    policy = shared("trials", conditions=["request.operation == 'CREATE'"])
    server.apply(policy, bound("trials"))
    server.until_in_force()
    removal = json.dumps([{"op": "remove", "path": "/metadata/finalizers"}])
    release = (
        "--namespace",
        "team",
        "patch",
        "pod",
        "trial",
        "--type=json",
        "--dry-run=server",
        "-p",
        removal,
    )
    answer = server.kubectl(*release, check=False).stderr.strip()
    yield f"the parameter is missing, and a finalizer is removed: {answer or 'accepted'}"
    server.kubectl("delete", "-f", "-", given=policy)
    time.sleep(SETTLED_SECONDS)
    other = {**pod, "metadata": {"name": "other", "namespace": "team"}}
    yield f"the policy is missing, and a pod is created: {server.refuses(other) or 'accepted'}"


def memory(server: Server, *, has_parameters: bool) -> float:
    """Return the MiB that ConfigMaps of batches add to the heap of a server."""
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    if has_parameters:
        server.apply(shared("trials", conditions=[]), bound("trials"))
        time.sleep(SETTLED_SECONDS)
    before = heap(server)
    for number in range(CONFIG_MAPS):
        named = {"name": f"table-{number}", "namespace": "team"}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"table": TABLE}}
        server.kubectl("create", "-f", "-", given=made)
    time.sleep(SETTLED_SECONDS)
    return heap(server) - before


def shared(name: str, *, conditions: list[str]) -> Manifest:
    """Return a policy for pods whose parameters are ConfigMaps."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
    }
    return {
        **HEAD,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": f"c{number}", "expression": one} for number, one in enumerate(conditions)
            ],
            "validations": [{"expression": "object.metadata.name in params.data.names.split(' ')"}],
        },
    }


def bound(name: str) -> Manifest:
    """Return the binding of a team whose parameter does not exist."""
    return {
        **HEAD,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "paramRef": {"name": "team", "namespace": "params", "parameterNotFoundAction": "Deny"},
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team"}}},
        },
    }


if __name__ == "__main__":
    main()
