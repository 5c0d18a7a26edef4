"""Argo CD in the box: what its install manifest holds, with the workloads of it as processes.

Each process that speaks to the API server does so as the service account that the manifest gives it. The
destination `https://kubernetes.default.svc` means "the cluster I run in": the application controller finds
its token where a pod would, and so the files that name it work unchanged. There is no Dex, and nothing for
notifications or for commits.
"""

import base64
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.cluster import building, controller_files
from tests.cluster.apiserver import TOKEN, NoClusterToolsError, Server, tool
from tests.cluster.children import until
from tests.cluster.machine import Machine

NAMESPACE = "argocd"
GROUP = "argoproj.io"
REDIS, REPO = "argocd-redis", "argocd-repo-server"
CONTROLLER, SETS, SERVER = (
    "argocd-application-controller",
    "argocd-applicationset-controller",
    "argocd-server",
)
NAMES = (REDIS, REPO, CONTROLLER, SETS, SERVER)
REDIS_PORT, REPO_PORT, REPO_METRICS = 6379, 8091, 8092
CONTROLLER_METRICS, SETS_METRICS, SETS_HEALTH = 8093, 8094, 8095
SERVER_PORT, SERVER_METRICS, HOOKS_PORT = 8096, 8097, 7000
INSTALLED = (
    *("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Secret"),
)
"""Of the manifest; for its workloads stand the processes here."""
ASK_PASS = "/run/argocd-ask-pass.sock"  # noqa: S105 - where to ask
"""Short, as the name of a socket has at most 107 characters; /run is the box's own."""
WEBHOOK_SECRET = "webhook-of-a-test"  # noqa: S105 - of servers that listen in the box
KEY = "key-of-the-sessions-that-nobody-has"
"""Its server makes one where there is none, and everything else waits for it."""
REFRESH = "argocd.argoproj.io/refresh"
REFRESH_SET = "argocd.argoproj.io/application-set-refresh"


@dataclass(frozen=True)
class Application:
    """How an Application stands."""

    sync: str
    """`Synced`, `OutOfSync`, `Unknown`; empty before it was looked at."""
    health: str
    revision: str
    conditions: Mapping[str, str]
    """Type → message: errors and warnings."""
    operation: str
    """Of the last sync: `Succeeded`, `Failed`, `Error`, `Running`, or empty."""
    message: str
    resources: Mapping[str, str]
    """kind/name → `Synced` or `OutOfSync`, what git asks for and what is to be pruned."""
    failed: Mapping[str, str]
    """kind/name → why the last sync could not apply it."""


@dataclass(frozen=True)
class Pace:
    """How often it looks by itself; in a cluster 120 seconds, and up to 60 more."""

    seconds: int = 10
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further options by process, for a measurement."""


def start(machine: Machine, pace: Pace | None = None) -> None:
    """Install Argo CD and start its processes. Raises NoClusterToolsError."""
    chosen = pace or Pace()
    _install(machine, chosen)
    _run(machine, chosen)


def stop(machine: Machine) -> None:
    """End its processes; what it keeps in the cluster stays, and what it keeps in redis is gone."""
    for name in reversed(NAMES):
        machine.children.end(name)


def restart(machine: Machine, pace: Pace | None = None) -> None:
    """End its processes and start them anew."""
    stop(machine)
    _run(machine, pace or Pace())


def register(machine: Machine, name: str, server: Server) -> None:
    """Let it apply to another cluster, as the administrator, under a name."""
    access = {
        "bearerToken": TOKEN,
        "tlsClientConfig": {"caData": base64.b64encode(server.authority.read_bytes()).decode()},
    }
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    machine.server.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "stringData": {"name": name, "server": server.address, "config": json.dumps(access)},
        }
    )


def refresh(machine: Machine, application: str, *, is_hard: bool = False) -> None:
    """Have an Application compared now, and wait until it was; hard: without any cache."""
    item = (f"application.{GROUP}", NAMESPACE, application)
    controller_files.annotate(machine, item, {REFRESH: "hard" if is_hard else "normal"})
    _until_taken(machine, item, REFRESH)


def refresh_set(machine: Machine, name: str) -> None:
    """Have an ApplicationSet look for folders now, as a webhook does, and wait until it has."""
    item = (f"applicationset.{GROUP}", NAMESPACE, name)
    controller_files.annotate(machine, item, {REFRESH_SET: "true"})
    _until_taken(machine, item, REFRESH_SET)


def webhook(machine: Machine) -> tuple[str, str]:
    """Say where a push is told, signed with `WEBHOOK_SECRET`: for ApplicationSets, and for Applications."""
    sets, server = (f"http://{machine.address}:{port}/api/webhook" for port in (HOOKS_PORT, SERVER_PORT))
    return sets, server


def applications(machine: Machine) -> dict[str, Application]:
    objects = controller_files.objects(machine, f"application.{GROUP}", NAMESPACE)
    return {item["metadata"]["name"]: _standing(item.get("status", {})) for item in objects}


def _install(machine: Machine, pace: Pace) -> None:
    manifest = tool(building.ARGOCD, "install.yaml")
    machine.server.define(tool(building.CRDS), ("application-crd", "applicationset-crd", "appproject-crd"))
    machine.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    held = yaml.load_all(manifest.read_text(), Loader=yaml.CSafeLoader)
    wanted = [item for item in held if item["kind"] in INSTALLED]
    named = {item["metadata"]["name"]: item for item in wanted if item["kind"] in ("ConfigMap", "Secret")}
    named["argocd-cm"]["data"]["timeout.reconciliation"] = f"{pace.seconds}s"
    named["argocd-secret"]["stringData"] = {"server.secretkey": KEY, "webhook.github.secret": WEBHOOK_SECRET}
    options = ("--namespace", NAMESPACE, "--server-side", "--force-conflicts", "-f", "-")
    machine.server.kubectl("apply", *options, given=wanted)


def _run(machine: Machine, pace: Pace) -> None:
    redis = shutil.which("redis-server")
    if redis is None:
        raise NoClusterToolsError("redis-server not found (run `make cluster-tools`)")
    folder = machine.folder / "argocd"
    for made in ("tls", "ssh", "scratch"):
        (folder / made).mkdir(parents=True, exist_ok=True)
    (folder / "ssh/ssh_known_hosts").touch()
    kept_nowhere = ("--save", "", "--appendonly", "no")
    store = [redis, "--bind", "127.0.0.1", "--port", str(REDIS_PORT), *kept_nowhere]
    machine.children.start(REDIS, store, cwd=folder)
    program = str(tool(building.ARGOCD, "argocd"))
    accounts = _accounts(machine)
    for name, options in _options().items():
        environment = {**_environment(machine, pace), **accounts.get(name, {}), "ARGOCD_BINARY_NAME": name}
        machine.children.start(
            name, [program, *options, *pace.more.get(name, ())], env=environment, cwd=folder
        )
    for name, url in {
        REPO: f"http://127.0.0.1:{REPO_METRICS}/healthz",
        CONTROLLER: f"http://127.0.0.1:{CONTROLLER_METRICS}/healthz",
        SETS: f"http://127.0.0.1:{SETS_METRICS}/metrics",
        SERVER: f"http://{machine.address}:{SERVER_PORT}/healthz",
    }.items():
        controller_files.until_ready(machine, name, url)


def _accounts(machine: Machine) -> dict[str, dict[str, str]]:
    """Give each process its service account; the repository server has no use for one."""
    accounts = {
        name: {"KUBECONFIG": str(controller_files.kubeconfig(machine, NAMESPACE, name))}
        for name in (SETS, SERVER)
    }
    return {**accounts, CONTROLLER: controller_files.pod_account(machine, NAMESPACE, CONTROLLER)}


def _environment(machine: Machine, pace: Pace) -> dict[str, str]:
    folder = machine.folder / "argocd"
    kustomize = tool(building.NEWEST_KUSTOMIZE, "kustomize")
    program = tool(building.ARGOCD, "argocd")
    path = (str(program.parent), str(kustomize.parent), os.environ["PATH"])
    return {
        # Git asks a program called `argocd` for the credential.
        "PATH": os.pathsep.join(path),
        "TMPDIR": str(folder / "scratch"),
        "ARGOCD_ASK_PASS_SOCK": ASK_PASS,
        "ARGOCD_TLS_DATA_PATH": str(folder / "tls"),
        "ARGOCD_SSH_DATA_PATH": str(folder / "ssh"),
        "ARGOCD_GPG_ENABLED": "false",
        # As the workloads of the manifest take it out of `argocd-cm`.
        "ARGOCD_RECONCILIATION_TIMEOUT": f"{pace.seconds}s",
        "ARGOCD_RECONCILIATION_JITTER": "0s",
        "ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS": f"{pace.seconds}s",
    }


def _options() -> dict[str, tuple[str, ...]]:
    redis = ("--redis", f"127.0.0.1:{REDIS_PORT}")
    repo = ("--repo-server", f"127.0.0.1:{REPO_PORT}", "--repo-server-plaintext")
    here = ("--address", "127.0.0.1", "--metrics-address", "127.0.0.1")
    sets = (f"--metrics-addr=127.0.0.1:{SETS_METRICS}", f"--probe-addr=127.0.0.1:{SETS_HEALTH}")
    return {
        REPO: (*redis, *here, "--disable-tls", f"--port={REPO_PORT}", f"--metrics-port={REPO_METRICS}"),
        CONTROLLER: (*redis, *repo, f"--metrics-port={CONTROLLER_METRICS}"),
        SETS: ("--argocd-repo-server", *repo[1:], *sets, f"--webhook-addr=:{HOOKS_PORT}"),
        SERVER: (
            *(*redis, *repo, "--insecure", f"--port={SERVER_PORT}"),
            *("--metrics-address", "127.0.0.1", f"--metrics-port={SERVER_METRICS}"),
        ),
    }


def _until_taken(machine: Machine, item: tuple[str, str, str], annotation: str) -> None:
    """Wait until an annotation is gone: that is how Argo CD says that it has looked."""

    def is_taken() -> bool:
        document = controller_files.got(machine, item)
        return annotation not in (document.get("metadata", {}).get("annotations") or {})

    until(f"Argo CD looked at {item[2]}", is_taken, seconds=controller_files.HANDLED_SECONDS)


def _standing(status: Mapping[str, Any]) -> Application:
    sync, operation = status.get("sync", {}), status.get("operationState", {})
    results = operation.get("syncResult", {}).get("resources")
    return Application(
        sync.get("status", ""),
        status.get("health", {}).get("status", ""),
        sync.get("revision", ""),
        {condition["type"]: condition["message"] for condition in controller_files.conditions(status)},
        operation.get("phase", ""),
        operation.get("message", ""),
        {_called(item): item.get("status", "") for item in status.get("resources") or ()},
        {
            _called(item): item.get("message", "")
            for item in results or ()
            if item.get("status") == "SyncFailed"
        },
    )


def _called(item: Mapping[str, str]) -> str:
    return f"{item['kind']}/{item['name']}"
