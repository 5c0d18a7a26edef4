"""Argo CD and Flux by what a test wants of either: look now, is all in sync, start anew, forget."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from tests.cluster import argocd, flux
from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.e2e.team import NAMESPACE, PATIENCE, WEBHOOK_TOKEN, Batch, Team

SOURCE = ROOT = SETS = RECEIVER = NAMESPACE
"""What `sweep cluster bootstrap` calls the GitRepository, root Kustomization, Receiver and ApplicationSet."""
KUSTOMIZATION = "kustomizations.kustomize.toolkit.fluxcd.io"
APPLICATION = "applications.argoproj.io"


class Controller(Protocol):
    """What applies the merged overlays."""

    def start(self) -> None:
        """Start its processes."""

    def follow(self, team: Team) -> None:
        """Let the git server tell it of pushes, and wait until the platform is as the repository has it."""

    def look(self) -> None:
        """Have it look at the repository now, as a webhook does."""

    def restart(self) -> None:
        """End its processes and start them again."""

    def objects(self) -> set[str]:
        """Name the batches that it keeps: one Application or Kustomization each."""

    def forget(self, batch: Batch) -> None:
        """Delete a batch's Application or Kustomization, as by mistake; it comes back by itself."""

    def differences(self) -> dict[str, str]:
        """Say what is not as the repository has it, by Application or Kustomization."""

    def trouble(self, batch: Batch) -> str:
        """Give what it says against a batch; empty where it says nothing."""


def until_in_sync(controller: Controller, *gone: Batch) -> None:
    """Wait until nothing differs from git, and batches that are gone from it are kept no more."""

    def is_done() -> bool:
        return not controller.differences() and not controller.objects() & {batch.name for batch in gone}

    until("nothing differs, and no more is kept than what stands", is_done, seconds=PATIENCE)


class Flux:
    """Flux, told of pushes as its Receiver would be."""

    SPACE = f"{NAMESPACE}-flux"

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def start(self) -> None:
        flux.start(self.machine)

    def follow(self, team: Team) -> None:
        """Have the git server tell it of pushes, and wait until it has the repository."""
        hook = flux.webhook(self.machine, self.SPACE, RECEIVER)
        team.forge.webhooks(hook, secret=WEBHOOK_TOKEN)
        self.look()
        until_in_sync(self)

    def look(self) -> None:
        """Have the source fetched, and every Kustomization applied."""
        flux.refresh_all(self.machine, self.SPACE, SOURCE)

    def restart(self) -> None:
        """Start it anew."""
        flux.restart(self.machine)

    def objects(self) -> set[str]:
        return set(flux.ready(self.machine, self.SPACE)) - {ROOT}

    def forget(self, batch: Batch) -> None:
        """Delete a Kustomization; its Job goes with it, and the root makes it anew."""
        self.machine.server.kubectl("delete", KUSTOMIZATION, batch.name, f"--namespace={self.SPACE}")

    def differences(self) -> dict[str, str]:
        """Say which Kustomizations are not applied as of the newest commit."""
        revision = flux.source(self.machine, self.SPACE, SOURCE).revision
        return {
            name: f"{status.ready} {status.reason}: {status.message} ({status.revision} of {revision})"
            for name, status in flux.ready(self.machine, self.SPACE).items()
            if status.ready != "True" or status.revision != revision
        }

    def trouble(self, batch: Batch) -> str:
        """Give the message of a Kustomization that is not ready."""
        status = flux.ready(self.machine, self.SPACE).get(batch.name)
        return "" if status is None or status.ready == "True" else status.message


class ArgoCD:
    """Argo CD, told of pushes by the git server's webhooks as GitHub sends them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def start(self) -> None:
        argocd.start(self.machine)

    def follow(self, team: Team) -> None:
        """Have the git server tell it of pushes, and wait until the platform is applied."""
        team.forge.webhooks(*argocd.webhook(self.machine), secret=argocd.WEBHOOK_SECRET)
        until("Argo CD has the platform", self._has_platform, seconds=PATIENCE)

    def look(self, *, is_hard: bool = False) -> None:
        """Have the ApplicationSet look for folders, and every Application compared; hard: without a cache."""
        argocd.refresh_set(self.machine, SETS)
        for name in sorted(argocd.applications(self.machine)):
            with suppress(AssertionError):  # it may go away at this moment
                argocd.refresh(self.machine, name, is_hard=is_hard)

    def restart(self) -> None:
        """Start it anew."""
        argocd.restart(self.machine)

    def objects(self) -> set[str]:
        return {name for name in argocd.applications(self.machine) if not name.endswith("-platform")}

    def forget(self, batch: Batch) -> None:
        """Delete an Application; its finalizer deletes its Job, and the ApplicationSet makes it anew."""
        self.machine.server.kubectl("delete", APPLICATION, batch.name, "--namespace=argocd")

    def differences(self) -> dict[str, str]:
        """Say which Applications differ from git, and in what."""
        return {
            name: f"{application.sync}: {_unlike(application.resources)} {application.operation} "
            f"{application.message} {dict(application.conditions)}"
            for name, application in argocd.applications(self.machine).items()
            if application.sync != "Synced" or application.conditions
        }

    def trouble(self, batch: Batch) -> str:
        """Give what an Application says against its batch: conditions, and the last operation's message."""
        application = argocd.applications(self.machine).get(batch.name)
        if application is None:
            return ""
        # While it tries again an operation counts as running.
        has_failed = application.failed or application.operation in {"Failed", "Error"}
        return "\n".join([*application.conditions.values(), *([application.message] if has_failed else [])])

    def _has_platform(self) -> bool:
        return "Synced" in {
            application.sync for name, application in argocd.applications(self.machine).items()
        }


def _unlike(resources: Mapping[str, str]) -> dict[str, str]:
    return {name: status for name, status in resources.items() if status != "Synced"}


CONTROLLERS: Mapping[str, Callable[[Machine], Controller]] = {"argocd": ArgoCD, "flux": Flux}
