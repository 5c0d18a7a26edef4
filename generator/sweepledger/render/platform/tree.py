"""All of `clusters/` as files, and the kustomizations that hold them together."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sweepledger.formats import yaml
from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import (
    access,
    admission,
    argocd,
    cron_jobs,
    flux,
    kueue,
    manual_setup,
    monitoring,
    namespaces,
    network,
    readme,
    volumes,
)
from sweepledger.render.platform.objects import BANNER, CLUSTERS, Names, dump_objects, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.kubernetes import OWNER_ANNOTATION
from sweepledger.structs.settings import Controller, Settings

REMOTE = "remote"
"""Folder of what a person applies in the cluster of the trials, if Argo CD runs in another."""

File = tuple[str, str, list[Manifest]]
"""Name, purpose and content."""


def platform_tree(
    settings: Settings,
    source: GitSource,
    bases: Mapping[str, bytes],
    active: Mapping[str, str | None] = MappingProxyType({}),
) -> FileTree:
    """Write what the clusters need, below `clusters/`, for the controller that the settings name.

    `active` names the batches that stand, with their clusters: Flux needs a Kustomization for each.
    """
    files: dict[str, bytes] = {}
    for own in settings.in_clusters:
        batches = [name for name, cluster in active.items() if cluster == own.cluster]
        files |= _cluster_files(own, source, bases, batches)
    if settings.controller is Controller.FLUX:
        # If a cluster comes back, its Flux deletes the Jobs there only if it finds the folder empty: without the
        # folder, it applies and prunes nothing.
        files |= {f"{flux.active_folder(name)}/.gitkeep": b"" for name in settings.lost_clusters}
    if settings.signers:
        files[manual_setup.SIGNERS_FILE] = manual_setup.allowed_signers(settings)
    files[manual_setup.HOOK_FILE] = manual_setup.pre_receive_hook(settings, source, bases)
    for own in settings.in_clusters:
        listed = sorted([*files, BOOTSTRAP_FILE])
        files[f"{platform_folder(own.cluster)}/README.md"] = readme.text(own, source, listed).encode()
    if settings.clusters:
        files[f"{CLUSTERS}/README.md"] = readme.list_of_clusters(settings, source).encode()
    return FileTree(files)


def _cluster_files(
    settings: Settings, source: GitSource, bases: Mapping[str, bytes], active: Iterable[str]
) -> dict[str, bytes]:
    """Write the files of one cluster."""
    place = platform_folder(settings.cluster)
    folders = {
        "platform": _platform(settings, source, bases),
        "argocd": _argocd(settings, source, bases),
        "flux": _flux(settings, source, bases),
    }
    owned = [made for listed in folders.values() for _, _, objects in listed for made in objects]
    owner = admission.owner_policy(settings, owned, bases)
    folders["platform"].append(
        ("owner.yaml", "No object of this platform is given to another repository.", owner)
    )
    match settings.controller:
        case Controller.ARGOCD:
            del folders["flux"]
            if settings.argocd.is_remote:
                folders[REMOTE] = [folders["argocd"].pop()]
        case Controller.FLUX:
            del folders["argocd"]
        case _:
            raise ValueError(f"no controller to write files for, but got {settings.controller!r}")
    files = {
        path: content
        for name, listed in folders.items()
        for path, content in _folder(f"{place}/{name}", listed, source)
    }
    for name, purpose, made in _optional(settings):
        if made:
            files[f"{place}/optional/{name}"] = dump_objects(*made, purpose=purpose)
    files |= dict(monitoring.monitoring_files(settings, source, bases))
    if settings.controller is Controller.FLUX:
        files[f"{flux.active_folder(settings.cluster)}/.gitkeep"] = b""
        files |= {
            flux.batch_file(name, settings.cluster): flux.batch_kustomization(name, settings)
            for name in active
        }
    return files


def _with_owner(made: Manifest, source: GitSource) -> Manifest:
    """Return an object with the repository that it belongs to."""
    metadata = made["metadata"]
    annotations = {**metadata.get("annotations", {}), OWNER_ANNOTATION: source.url}
    return {**made, "metadata": {**metadata, "annotations": annotations}}


def _platform(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[File]:
    names = Names.of(settings)
    spaces = [
        made
        for name in (names.trials, names.collector)
        for made in namespaces.namespace(name, settings, bases)
    ]
    return [
        ("namespaces.yaml", "Where trials run, and apart from them the collector; nothing is open.", spaces),
        (
            "bounds.yaml",
            "What trials may have together, and a container that asks for nothing.",
            [*namespaces.trials_bounds(settings), *namespaces.collector_bounds(settings)],
        ),
        (
            "network.yaml",
            "What may be reached beside names: trials what sweepledger.yaml opens, the collector git.",
            [
                *network.trials_egress(settings, source),
                *network.collector_egress(settings, source),
                *network.sync_egress(settings, source),
            ],
        ),
        (
            "access.yaml",
            "Who may do what: trials nothing, the collector reads Jobs and pods, and takes its Lease.",
            [
                *access.trial(settings),
                *access.expiry(settings),
                *access.collector(settings, source),
                *access.sync(settings),
            ],
        ),
        (
            "volumes.yaml",
            "Results twice over one export, once to read; datasets to read. All are kept for ever.",
            [*volumes.results(settings), *volumes.datasets(settings)],
        ),
        (
            "admission.yaml",
            "What the API server refuses to run as a trial, even if it was merged.",
            [
                *admission.trial_policies(settings, source, bases),
                *admission.release_policies(settings, bases),
            ],
        ),
        *_scheduled(settings, source, bases),
    ]


def _scheduled(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[File]:
    return [
        (
            "collector.yaml",
            "Records what trials left: the one thing in the cluster that writes to git.",
            [cron_jobs.collector_cron_job(settings, source, bases)],
        ),
        (
            "sync.yaml",
            "Writes recorded results to the stores of the settings; it reads git, and nothing of the cluster.",
            cron_jobs.sync_cron_job(settings, source, bases),
        ),
        (
            "expiry.yaml",
            "Deletes from the volumes what trials left, days after its results came to the branch.",
            cron_jobs.expiry_cron_job(settings, source, bases),
        ),
    ]


def _argocd(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[File]:
    return [
        (
            "projects.yaml",
            "What batches may be, and what the platform may be.",
            argocd.projects(settings, source, bases),
        ),
        (
            "batches.yaml",
            _batches_purpose(settings),
            [argocd.application_set(settings, source, bases)],
        ),
        (
            "root.yaml",
            f"Keeps {platform_folder(settings.cluster)}/platform applied; this folder is applied by a person.",
            [argocd.root(settings, source, bases)],
        ),
        _lease(settings),
    ]


def _batches_purpose(settings: Settings) -> str:
    of_cluster = "" if settings.cluster is None else f" whose lock names {settings.cluster}"
    return f"One Application a folder of overlays/active{of_cluster}."


def _lease(settings: Settings) -> File:
    return (
        "lease.yaml",
        "Who collects, and the last commit that was seen on the branch.",
        [access.lease(settings)],
    )


def _flux(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[File]:
    space = namespaces.namespace(Names.of(settings).flux, settings, bases)
    repository, root, receiver = flux.objects(settings, source, bases)
    return [
        ("namespace.yaml", "Where Flux reads what follows; nothing runs here.", space),
        ("access.yaml", "With whose rights Flux applies batches.", access.flux(settings, source)),
        (
            "admission.yaml",
            "What Flux may be asked for here.",
            admission.kustomization_policies(settings, bases),
        ),
        ("source.yaml", "The branch that the cluster follows.", [repository]),
        (
            "root.yaml",
            f"One Kustomization a batch, from {flux.active_folder(settings.cluster)}.",
            [root],
        ),
        ("receiver.yaml", "A push is seen at once.", [receiver]),
        _lease(settings),
    ]


def _optional(settings: Settings) -> list[File]:
    return [
        (
            "kueue.yaml",
            "Samples for the pools with queues; say your quotas, then apply it once. No controller does.",
            kueue.objects(settings),
        ),
        (
            "priority-class.yaml",
            "The class that sweepledger.yaml names, for a cluster that has none; apply it once.",
            kueue.priority_class(settings),
        ),
    ]


def _folder(folder: str, listed: list[File], source: GitSource) -> Iterable[tuple[str, bytes]]:
    held = [(file, purpose, made) for file, purpose, made in listed if made]
    for file, purpose, made in held:
        owned = [_with_owner(one, source) for one in made]
        yield f"{folder}/{file}", dump_objects(*owned, purpose=purpose)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [file for file, _, _ in held],
    }
    yield f"{folder}/kustomization.yaml", yaml.dump(kustomization, banner=BANNER).encode()
