"""Static volumes over the exports that settings name: results twice, once to read; datasets to read."""

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, manifest
from sweepledger.structs.settings import Nfs, ResultsStore, Settings

NOMINAL = "1Ti"
"""Volumes must say a size, and claims one that fits; nobody measures it on NFS."""


def results(settings: Settings) -> list[Manifest]:
    """Stand for one export by two volumes: trials write through the first, the collector reads the second."""
    export = settings.results.nfs
    if export is None or settings.results.store is not ResultsStore.VOLUME:
        return []
    names, claim = Names.of(settings), settings.results.claim
    volume = f"{names.trials}-{claim}"
    return [
        *_pair(volume, (names.trials, claim), export, settings, is_written=True),
        *_pair(f"{volume}-read", (names.collector, claim), export, settings),
    ]


def datasets(settings: Settings) -> list[Manifest]:
    """Stand for the exports of datasets; two that share a claim share a volume."""
    place = Names.of(settings).trials
    exports = {
        one.claim: one.nfs
        for _, one in sorted(settings.trials.datasets.items())
        if one.claim is not None and one.nfs is not None
    }
    return [
        made
        for claim, export in exports.items()
        for made in _pair(f"{place}-data-{claim}", (place, claim), export, settings)
    ]


def _pair(
    volume: str, claim: tuple[str, str], export: Nfs, settings: Settings, *, is_written: bool = False
) -> list[Manifest]:
    """Return a volume, and the claim that it is for alone, named by its namespace and its name."""
    modes = ["ReadWriteMany"] if is_written else ["ReadOnlyMany"]
    namespace, name = claim
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return [
        manifest(
            "v1/PersistentVolume",
            volume,
            settings,
            spec={
                "accessModes": modes,
                "capacity": {"storage": NOMINAL},
                "claimRef": {**reference, "namespace": namespace, "name": name},
                # What trials left outlives every object of the cluster.
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "volumeMode": "Filesystem",
                "mountOptions": ["hard", "nfsvers=4.1", *([] if is_written else ["ro"])],
                "nfs": {"server": export.server, "path": export.path, "readOnly": not is_written},
            },
        ),
        manifest(
            "v1/PersistentVolumeClaim",
            name,
            settings,
            namespace=namespace,
            spec={
                "accessModes": modes,
                "resources": {"requests": {"storage": NOMINAL}},
                "storageClassName": "",
                "volumeMode": "Filesystem",
                "volumeName": volume,
            },
        ),
    ]
