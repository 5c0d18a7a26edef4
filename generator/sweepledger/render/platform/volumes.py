"""Static volumes over the exports that settings name: results twice, once to read; datasets to read."""

from dataclasses import dataclass

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, manifest
from sweepledger.structs.settings import Nfs, ResultsStore, Settings

NOMINAL = "1Ti"
"""Volumes must say a size, and claims one that fits; nobody measures it on NFS."""


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """A claim, and the volume that is for it alone."""

    volume: str
    namespace: str
    claim: str
    is_readable_only: bool


def results(settings: Settings) -> list[Manifest]:
    """Stand for one export by two volumes: trials write through the first, the collector reads the second."""
    export = settings.results.nfs
    if export is None or settings.results.store is not ResultsStore.VOLUME:
        return []
    names, claim = Names.of(settings), settings.results.claim
    written = ClaimedVolume(f"{names.trials}-{claim}", names.trials, claim, is_readable_only=False)
    read = ClaimedVolume(f"{names.trials}-{claim}-read", names.collector, claim, is_readable_only=True)
    return [*_pair(written, export, settings), *_pair(read, export, settings)]


def datasets(settings: Settings) -> list[Manifest]:
    """Stand for the exports of datasets; two that share a claim share a volume."""
    names = Names.of(settings)
    exports = {
        one.claim: one.nfs
        for _, one in sorted(settings.datasets.items())
        if one.claim is not None and one.nfs is not None
    }
    made = []
    for claim, export in exports.items():
        place = ClaimedVolume(f"{names.trials}-data-{claim}", names.trials, claim, is_readable_only=True)
        made += _pair(place, export, settings)
    return made


def _pair(place: ClaimedVolume, export: Nfs, settings: Settings) -> list[Manifest]:
    modes = ["ReadOnlyMany"] if place.is_readable_only else ["ReadWriteMany"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return [
        manifest(
            "v1/PersistentVolume",
            place.volume,
            settings,
            spec={
                "accessModes": modes,
                "capacity": {"storage": NOMINAL},
                "claimRef": {**reference, "namespace": place.namespace, "name": place.claim},
                # What trials left outlives every object of the cluster.
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "volumeMode": "Filesystem",
                "mountOptions": ["hard", "nfsvers=4.1", *(["ro"] if place.is_readable_only else [])],
                "nfs": {"server": export.server, "path": export.path, "readOnly": place.is_readable_only},
            },
        ),
        manifest(
            "v1/PersistentVolumeClaim",
            place.claim,
            settings,
            namespace=place.namespace,
            spec={
                "accessModes": modes,
                "resources": {"requests": {"storage": NOMINAL}},
                "storageClassName": "",
                "volumeMode": "Filesystem",
                "volumeName": place.volume,
            },
        ),
    ]
