"""Static volumes over the exports that settings name: results twice, once to read; datasets to read."""

from collections.abc import Iterable

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, manifest
from sweepledger.structs.settings import Dataset, Nfs, ResultsSettings, ResultsStore

NOMINAL = "1Ti"
"""Volumes must say a size, and claims one that fits; nobody measures it on NFS."""


def results(names: Names, results: ResultsSettings) -> list[Manifest]:
    """Stand for one export by two volumes: trials write through the first, the collector reads the second."""
    export = results.nfs
    if export is None or results.store is not ResultsStore.VOLUME:
        return []
    claim = results.claim
    volume = f"{names.trials}-{claim}"
    return [
        *_pair(volume, (names.trials, claim), export, names, is_written=True),
        *_pair(f"{volume}-read", (names.collector, claim), export, names),
    ]


def datasets(names: Names, datasets: Iterable[Dataset]) -> list[Manifest]:
    """Stand for the exports of datasets; two that share a claim share a volume."""
    place = names.trials
    exports = {one.claim: one.nfs for one in datasets if one.claim is not None and one.nfs is not None}
    return [
        made
        for claim, export in exports.items()
        for made in _pair(f"{place}-data-{claim}", (place, claim), export, names)
    ]


def _pair(
    volume: str, claim: tuple[str, str], export: Nfs, names: Names, *, is_written: bool = False
) -> list[Manifest]:
    """Return a volume, and the claim that it is for alone, named by its namespace and its name."""
    modes = ["ReadWriteMany"] if is_written else ["ReadOnlyMany"]
    namespace, name = claim
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return [
        manifest(
            "v1/PersistentVolume",
            volume,
            names,
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
            names,
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
