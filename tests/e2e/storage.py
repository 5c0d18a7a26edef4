"""The volumes of a team: a small file system of results, which trials write and the collector reads; data."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import box
from tests.cluster.apiserver import Server
from tests.manifests import manifest

RESULTS_MEGABYTES = 64
"""Small: a trial that fills it does so within a second."""
GROUP = 65532
CLASS = ""
"""No storage class: a claim takes the volume that names it."""


@dataclass(frozen=True)
class Storage:
    """Folders of the machine, which stand for an export that every node mounts."""

    folder: Path
    megabytes: int = RESULTS_MEGABYTES
    """Of the file system of results."""

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def make(self) -> None:
        """Make the folders, as `sweep cluster bootstrap` says that a person does."""
        self.results.mkdir(parents=True)
        image = self.folder / "results.ext4"
        with image.open("wb") as file:
            file.truncate(self.megabytes * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-N", str(256 * self.megabytes), str(image)], check=True)
        box.do("mount", "-o", "loop", str(image), str(self.results))
        (self.results / "lost+found").rmdir()
        os.chown(self.results, 0, GROUP)
        self.results.chmod(0o2770)

    def offer(self, server: Server, namespace: str, collectors: str, data: Mapping[str, Path]) -> None:
        """Let claims have them: results to write for trials, the same to read for the collector; data."""
        server.apply(
            *volume(namespace, "sweep-results", self.results, "ReadWriteMany"),
            *volume(collectors, "sweep-results", self.results, "ReadOnlyMany"),
            *(part for name, path in data.items() for part in volume(namespace, name, path, "ReadOnlyMany")),
        )


def volume(namespace: str, claim: str, path: Path, mode: str) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"{namespace}-{claim}"
    size, both = {"storage": "1Gi"}, {"accessModes": [mode], "storageClassName": CLASS}
    offered = {
        "capacity": size,
        "claimRef": {"namespace": namespace, "name": claim},
        "hostPath": {"path": str(path), "type": "Directory"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    wanted = {"resources": {"requests": size}, "volumeName": name}
    return (
        manifest("PersistentVolume", name, spec={**both, **offered}),
        manifest("PersistentVolumeClaim", claim, namespace, spec={**both, **wanted}),
    )


def disk(namespace: str, claim: str, path: Path, node: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a volume that one node has, as a class of local disks makes it, and the claim that takes it."""
    offered, wanted = volume(namespace, claim, path, "ReadWriteOnce")
    del offered["spec"]["hostPath"]
    own = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    offered["spec"]["local"] = {"path": str(path)}
    offered["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [own]}]}}
    return offered, wanted
