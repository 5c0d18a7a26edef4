"""Flux in the box: its controllers for sources, kustomizations and receivers as processes.

They are started as Flux's own manifests and the project's pages say, and speak to the API server as the
administrator, as in a cluster: what a batch may be is bounded by the account that its Kustomization names,
which they impersonate.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.cluster import building, controller_files
from tests.cluster.apiserver import tool
from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.manifests import manifest

NAMESPACE = "flux-system"
SOURCE, KUSTOMIZE, NOTIFICATION = "source-controller", "kustomize-controller", "notification-controller"
NAMES = (SOURCE, KUSTOMIZE, NOTIFICATION)
METRICS = {SOURCE: 9181, KUSTOMIZE: 9182, NOTIFICATION: 9183}
HEALTH = {SOURCE: 9441, KUSTOMIZE: 9442, NOTIFICATION: 9443}
ARTIFACTS, EVENTS, HOOKS = 9440, 9190, 9292
"""Fixed, and not the defaults, which Argo CD's programs have, too."""
KINDS = ("source.toolkit.fluxcd.io_", "kustomize.toolkit.fluxcd.io_", "notification.toolkit.fluxcd.io_")
RUNTIMES_FIRST = (
    () if building.FLUX_CD == "2.7" else ("--custom-apply-stage-kinds=trainer.kubeflow.org/TrainingRuntime",)
)
"""As docs/how-to/distributed.md has it: a TrainJob is refused while its runtime is not there. Flux 2.7 cannot."""
IN_MEMORY = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$TMPDIR" && exec "$0" "$@"')
"""As docs/how-to/bootstrap-flux.md has it; nobody else sees the mount, and it ends with the process."""
REQUESTED = "reconcile.fluxcd.io/requestedAt"


@dataclass(frozen=True)
class Standing:
    """How a Kustomization stands."""

    ready: str
    """`True`, `False`, `Unknown`; empty where nothing is said yet."""
    reason: str
    message: str
    revision: str
    """What was applied last: branch@sha1:commit."""
    inventory: tuple[str, ...]
    """What it has in the cluster: namespace_name_group_kind."""


def start(machine: Machine, *, more: Sequence[str] = ()) -> None:
    """Start the controllers; `more` are options of each, for a measurement. Raises NoClusterToolsError."""
    tool(building.FLUX)
    machine.server.define(tool(building.CRDS), KINDS)
    machine.server.apply(manifest("Namespace", NAMESPACE))
    _run(machine, more)


def stop(machine: Machine) -> None:
    for name in reversed(NAMES):
        machine.children.end(name)


def restart(machine: Machine, *, more: Sequence[str] = ()) -> None:
    """End them and start them anew; what they keep in the cluster and on disk stays."""
    stop(machine)
    _run(machine, more)


def refresh(machine: Machine, namespace: str, name: str, *, kind: str = "gitrepository") -> None:
    """Have a source or a Kustomization looked at now, as a webhook does; wait until it was or is gone."""
    item = (f"{kind}.{_group(kind)}", namespace, name)
    controller_files.annotate(machine, item, {REQUESTED: str(time.time_ns())})

    def is_handled() -> bool:
        document = controller_files.got(machine, item)
        # A Receiver may have asked, too: then its word stands in place of ours.
        requested = document.get("metadata", {}).get("annotations", {}).get(REQUESTED)
        return bool(
            requested is None or document.get("status", {}).get("lastHandledReconcileAt") == requested
        )

    until(f"Flux looked at {kind} {name}", is_handled, seconds=controller_files.HANDLED_SECONDS)


def refresh_all(machine: Machine, namespace: str, name: str) -> None:
    """Have a source fetched, and the Kustomizations of its namespace applied, the root of the same name first."""
    refresh(machine, namespace, name)
    for each in (name, *(other for other in ready(machine, namespace) if other != name)):
        with suppress(AssertionError):  # it may go away at this moment
            refresh(machine, namespace, each, kind="kustomization")


def ready(machine: Machine, namespace: str) -> dict[str, Standing]:
    objects = controller_files.objects(machine, f"kustomization.{_group('kustomization')}", namespace)
    return {item["metadata"]["name"]: _standing(item.get("status", {})) for item in objects}


def source(machine: Machine, namespace: str, name: str) -> Standing:
    """Say how a GitRepository stands: its revision is the commit that is served now."""
    kind = f"gitrepository.{_group('gitrepository')}"
    status = controller_files.got(machine, (kind, namespace, name)).get("status", {})
    fetched = status.get("artifact", {}).get("revision", "")
    return _standing({**status, "lastAppliedRevision": fetched})


def webhook(machine: Machine, namespace: str, name: str) -> str:
    """Say where a push is told, signed with the token of the Receiver's Secret."""
    item = (f"receiver.{_group('receiver')}", namespace, name)

    def path() -> str:
        return str(controller_files.got(machine, item).get("status", {}).get("webhookPath", ""))

    until(f"Receiver {name} has a path", path, seconds=controller_files.HANDLED_SECONDS)
    return f"http://{machine.address}:{HOOKS}{path()}"


def _run(machine: Machine, more: Sequence[str]) -> None:
    scratch = machine.folder / "flux"
    (scratch / "artifacts").mkdir(parents=True, exist_ok=True)
    environment = {
        "KUBECONFIG": str(machine.server.kubeconfig),
        "RUNTIME_NAMESPACE": NAMESPACE,
        "TMPDIR": str(scratch),
        "PATH": os.environ["PATH"],
    }
    for name in NAMES:
        argv = [
            *(IN_MEMORY if name == KUSTOMIZE else ()),
            str(tool(building.KUSTOMIZE_CONTROLLER if name == KUSTOMIZE else building.FLUX, name)),
            *_options(machine, name),
            *_own(machine, name),
            *more,
        ]
        machine.children.start(name, argv, env=environment)
        # One after the other: who finds no artifact server waits half a minute before it asks again.
        controller_files.until_ready(machine, name, _probe(machine, name))


def _options(machine: Machine, name: str) -> tuple[str, ...]:
    """Give the options of Flux's own manifests, but for the leader: there is nobody to elect it from."""
    return (
        "--watch-all-namespaces",
        "--log-level=info",
        "--log-encoding=json",
        f"--metrics-addr=127.0.0.1:{METRICS[name]}",
        f"--health-addr={machine.address}:{HEALTH[name]}",
    )


def _own(machine: Machine, name: str) -> tuple[str, ...]:
    if name == KUSTOMIZE:
        return ("--no-cross-namespace-refs", "--requeue-dependency=5s", *RUNTIMES_FIRST)
    if name == NOTIFICATION:
        listens = (f"--events-addr=127.0.0.1:{EVENTS}", f"--receiverAddr={machine.address}:{HOOKS}")
        return ("--no-cross-namespace-refs", *listens)
    return (
        f"--storage-path={machine.folder / 'flux/artifacts'}",
        f"--storage-addr={machine.address}:{ARTIFACTS}",
        f"--storage-adv-addr={machine.address}:{ARTIFACTS}",
        # Else a git server that was down for a minute is asked again after many.
        "--max-retry-delay=10s",
    )


def _probe(machine: Machine, name: str) -> str:
    if name == SOURCE:
        return f"http://{machine.address}:{ARTIFACTS}/"
    return f"http://{machine.address}:{HEALTH[name]}/readyz"


def _group(kind: str) -> str:
    groups = {"gitrepository": "source", "receiver": "notification"}
    return f"{groups.get(kind, 'kustomize')}.toolkit.fluxcd.io"


def _standing(status: dict[str, object]) -> Standing:
    messages = {condition["type"]: condition for condition in controller_files.conditions(status)}.get(
        "Ready", {}
    )
    inventory = status.get("inventory") or {}
    assert isinstance(inventory, dict)
    return Standing(
        messages.get("status", ""),
        messages.get("reason", ""),
        messages.get("message", ""),
        str(status.get("lastAppliedRevision", "")),
        tuple(sorted(entry["id"] for entry in inventory.get("entries", ()))),
    )
