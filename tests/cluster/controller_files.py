"""What the controllers in the box share: accounts with tokens, objects by kind, and waiting for processes.

Nothing here knows what a controller does.
"""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cluster import box
from tests.cluster.children import until
from tests.cluster.machine import Machine

POD_ACCOUNT = Path("/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds who it is; /run is the box's own, and /var/run leads there."""
VERSIONS = {"argoproj.io": "v1alpha1", "autoscaling": "v2", "kueue.x-k8s.io": "v1beta1"}
"""Of the groups that are asked for; of all others v1."""
READY_SECONDS = 180
HANDLED_SECONDS = 180
TOKEN_LIVES = "24h"  # noqa: S105 - a time


def token(machine: Machine, namespace: str, account: str) -> str:
    """Have the API server give a token of a service account, as it does for a pod."""
    requested = ("create", "token", account, "--namespace", namespace, f"--duration={TOKEN_LIVES}")
    return machine.server.kubectl(*requested).stdout.strip()


def kubeconfig(machine: Machine, namespace: str, account: str) -> Path:
    """Write how a process speaks to the API server as a service account, with its rights and no more."""
    config = json.loads(machine.server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token(machine, namespace, account)}
    config["contexts"][0]["context"]["namespace"] = namespace
    path = machine.folder / f"{account}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def pod_account(machine: Machine, namespace: str, account: str) -> dict[str, str]:
    """Lay out a service account where pods have it; give the environment that makes a process look there."""
    POD_ACCOUNT.mkdir(parents=True, exist_ok=True)
    config = json.loads(machine.server.kubeconfig.read_text())
    authority = Path(config["clusters"][0]["cluster"]["certificate-authority"])
    (POD_ACCOUNT / "ca.crt").write_bytes(authority.read_bytes())
    (POD_ACCOUNT / "namespace").write_text(namespace)
    (POD_ACCOUNT / "token").write_text(token(machine, namespace, account))
    return {"KUBERNETES_SERVICE_HOST": box.SERVICE, "KUBERNETES_SERVICE_PORT": "443"}


def until_ready(machine: Machine, name: str, url: str) -> None:
    """Wait until a process answers with success. Raises AssertionError with the end of its log."""

    def is_ready() -> bool:
        assert machine.children.is_alive(name), f"{name} ended"
        return _answers(url)

    try:
        until(f"{name} is ready", is_ready, seconds=READY_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{machine.children.tail(name)}") from error


def _answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5) as answer:
            return bool(answer.status < 300)
    except OSError:
        return False


def objects(machine: Machine, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
    document = machine.server.ask(_path(kind, namespace)) or {}
    items: list[dict[str, Any]] = document.get("items", [])
    return items


def annotate(machine: Machine, item: tuple[str, str, str], annotations: Mapping[str, str]) -> None:
    """Set annotations of one object: kind, namespace, name."""
    kind, namespace, name = item
    messages = [f"{key}={text}" for key, text in annotations.items()]
    machine.server.kubectl("annotate", "--overwrite", kind, name, "--namespace", namespace, *messages)


def got(machine: Machine, item: tuple[str, str, str]) -> dict[str, Any]:
    """Get one object: kind, namespace, name; empty where there is none."""
    kind, namespace, name = item
    return machine.server.ask(f"{_path(kind, namespace)}/{name}") or {}


def _path(kind: str, namespace: str | None) -> str:
    name, _, group = kind.partition(".")
    plural = (
        name if name.endswith("s") else f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"
    )
    group = group or ("batch" if plural in {"jobs", "cronjobs"} else "")
    root = f"/apis/{group}/{VERSIONS.get(group, 'v1')}" if group else "/api/v1"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def conditions(status: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    return status.get("conditions") or ()
