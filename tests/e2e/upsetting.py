"""What people and accidents do to a controller and to its cluster, by the kind of controller.

Each leaves the cluster as it was; what comes of it is for the tests to judge.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.cluster import argocd, controller_files, flux
from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.e2e.controllers import APPLICATION, KUSTOMIZATION, ROOT, SETS, SOURCE, ArgoCD, Flux
from tests.e2e.team import Batch, Team

GONE_SECONDS = 300.0
GIT_REPOSITORY = "gitrepositories.source.toolkit.fluxcd.io"
APPLICATION_SET = "applicationsets.argoproj.io"


class Upsets(Protocol):
    """What may happen to a controller."""

    def look_hard(self) -> None:
        """Have it look at everything, without any cache."""

    def remake(self) -> None:
        """Delete what makes an object of each batch, wait until all of them are gone, and apply it again."""

    def kept(self, batch: Batch) -> Mapping[str, Any]:
        """Give a batch's Application or Kustomization, as a person may keep it in a file."""

    def applied(self, kept: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Have a kept one stand again for a while."""

    def followed(self, kept: Mapping[str, Any], commit: str) -> AbstractContextManager[None]:
        """Have its batch stand for a while as an older commit has it."""

    def stop(self) -> None:
        """End its processes; a restart brings them back."""


@dataclass(frozen=True)
class FluxUpsets:
    """Flux's."""

    machine: Machine
    team: Team

    def look_hard(self) -> None:
        """It has no cache but the source's artifact."""
        Flux(self.machine).look()

    def remake(self) -> None:
        """Delete the root Kustomization; its finalizer takes the batches' along, and theirs the Jobs."""
        self.machine.server.kubectl("delete", KUSTOMIZATION, ROOT, f"--namespace={Flux.SPACE}")
        until("no batch is kept", lambda: not flux.ready(self.machine, Flux.SPACE), seconds=GONE_SECONDS)
        _apply_again(self.team, "flux", "Kustomization")

    def kept(self, batch: Batch) -> Mapping[str, Any]:
        return _kept(self.machine, (KUSTOMIZATION, Flux.SPACE, batch.name))

    def applied(self, kept: Mapping[str, Any]) -> AbstractContextManager[None]:
        return _applied(self.machine, kept)

    @contextmanager
    def followed(self, kept: Mapping[str, Any], commit: str) -> Iterator[None]:  # noqa: ARG002 - it is in git
        """Pin the source that all batches have in common."""
        self._pin(commit)
        try:
            yield
        finally:
            self._pin(None)

    def _pin(self, commit: str | None) -> None:
        patch = json.dumps({"spec": {"ref": {"commit": commit}}})
        options = (f"--namespace={Flux.SPACE}", "--type=merge", f"--patch={patch}")
        self.machine.server.kubectl("patch", GIT_REPOSITORY, SOURCE, *options)
        self.look_hard()

    def stop(self) -> None:
        flux.stop(self.machine)


@dataclass(frozen=True)
class ArgoCDUpsets:
    """Argo CD's."""

    machine: Machine
    team: Team

    def look_hard(self) -> None:
        ArgoCD(self.machine).look(is_hard=True)

    def remake(self) -> None:
        """Delete the ApplicationSet; its Applications go with it, and by their finalizers the Jobs."""
        self.machine.server.kubectl("delete", APPLICATION_SET, SETS, f"--namespace={argocd.NAMESPACE}")

        def are_gone() -> bool:
            return all(name.endswith("-platform") for name in argocd.applications(self.machine))

        until("no batch is kept", are_gone, seconds=GONE_SECONDS)
        _apply_again(self.team, "argocd", "ApplicationSet")

    def kept(self, batch: Batch) -> Mapping[str, Any]:
        return _kept(self.machine, (APPLICATION, argocd.NAMESPACE, batch.name))

    def applied(self, kept: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Apply an Application, which no ApplicationSet knows of."""
        return _applied(self.machine, kept)

    def followed(self, kept: Mapping[str, Any], commit: str) -> AbstractContextManager[None]:
        """Apply an Application that is pinned."""
        spec = kept["spec"]
        pinned = {**spec, "source": {**spec["source"], "targetRevision": commit}}
        return _applied(self.machine, {**kept, "spec": pinned})

    def stop(self) -> None:
        argocd.stop(self.machine)

    @contextmanager
    def edited_template(self, change: Mapping[str, Any]) -> Iterator[None]:
        """Edit what new Applications are made from, for a while."""
        patch = json.dumps({"spec": {"template": change}})
        options = (f"--namespace={argocd.NAMESPACE}", "--type=merge", f"--patch={patch}")
        self.machine.server.kubectl("patch", APPLICATION_SET, SETS, *options)
        try:
            yield
        finally:
            _apply_again(self.team, "argocd", "ApplicationSet")


UPSETS: Mapping[str, Callable[[Machine, Team], Upsets]] = {"argocd": ArgoCDUpsets, "flux": FluxUpsets}


def restored(machine: Machine, backup: Path) -> None:
    """Put the store back to a backup; then start the kubelet anew, which else goes by what it knew last."""
    machine.plane.restore(backup)
    assert machine.node is not None
    machine.children.end("kubelet")
    machine.node.start_kubelet()


def _kept(machine: Machine, item: tuple[str, str, str]) -> Mapping[str, Any]:
    document = controller_files.got(machine, item)
    output = ("name", "namespace", "labels", "annotations", "finalizers")
    metadata = {key: held for key, held in document["metadata"].items() if key in output}
    return {**{key: document[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}


@contextmanager
def _applied(machine: Machine, kept: Mapping[str, Any]) -> Iterator[None]:
    machine.server.apply(kept)
    try:
        yield
    finally:
        machine.server.kubectl("delete", "--filename=-", "--ignore-not-found", given=json.dumps(kept))


def _apply_again(team: Team, folder: str, kind: str) -> None:
    """Apply one kind of what the bootstrap wrote, as its page says, whoever has changed it meanwhile."""
    output = team.server.kubectl("kustomize", str(team.root / "clusters" / folder)).stdout
    wanted = [item for item in yaml.safe_load_all(output) if item["kind"] == kind]
    options = ("--server-side", team.field_manager(folder), "--force-conflicts", "--filename=-")
    team.server.kubectl("apply", *options, given=wanted)
