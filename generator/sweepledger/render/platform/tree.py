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
from sweepledger.render.platform.objects import BANNER, CLUSTERS, FILES, Names, dump_objects, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.kubernetes import OWNER_ANNOTATION
from sweepledger.structs.settings import Controller, Settings

REMOTE = "remote"
"""Folder of what a person applies in the cluster of the trials, if Argo CD runs in another."""

Files = dict[str, list[Manifest]]
"""The objects of the files of a folder; a file without any is not written."""


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
        batches = [name for name, cluster in active.items() if cluster == own.fleet.cluster]
        files |= _cluster_files(own, source, bases, batches)
    if settings.platform.controller is Controller.FLUX:
        # If a cluster comes back, its Flux deletes the Jobs there only if it finds the folder empty: without the
        # folder, it applies and prunes nothing.
        files |= {f"{flux.active_folder(name)}/.gitkeep": b"" for name in settings.fleet.lost_clusters}
    if settings.git.signers:
        files[manual_setup.SIGNERS_FILE] = manual_setup.allowed_signers(settings)
    files[manual_setup.HOOK_FILE] = manual_setup.pre_receive_hook(settings, source, bases)
    for own in settings.in_clusters:
        listed = sorted([*files, BOOTSTRAP_FILE])
        files[f"{platform_folder(own.fleet.cluster)}/README.md"] = readme.text(own, source, listed).encode()
    if settings.fleet.clusters:
        files[f"{CLUSTERS}/README.md"] = readme.list_of_clusters(settings, source).encode()
    return FileTree(files)


def _cluster_files(
    settings: Settings, source: GitSource, bases: Mapping[str, bytes], active: Iterable[str]
) -> dict[str, bytes]:
    place = platform_folder(settings.fleet.cluster)
    folders = {
        "platform": _platform(settings, source, bases),
        "argocd": _argocd(settings, source, bases),
        "flux": _flux(settings, source, bases),
    }
    owned = [made for listed in folders.values() for objects in listed.values() for made in objects]
    folders["platform"]["owner.yaml"] = admission.owner_policy(settings, owned, bases)
    match settings.platform.controller:
        case Controller.ARGOCD:
            del folders["flux"]
            if settings.platform.argocd.is_remote:
                folders[REMOTE] = {"lease.yaml": folders["argocd"].pop("lease.yaml")}
        case Controller.FLUX:
            del folders["argocd"]
        case _:
            raise ValueError(f"no controller to write files for, but got {settings.platform.controller!r}")
    files = {
        path: content
        for name, listed in folders.items()
        for path, content in _folder(place, name, listed, source)
    }
    optional = {"kueue.yaml": kueue.objects(settings), "priority-class.yaml": kueue.priority_class(settings)}
    files |= {f"{place}/{path}": content for path, content in _dumped("optional", optional)}
    files |= dict(monitoring.monitoring_files(settings, source, bases))
    if settings.platform.controller is Controller.FLUX:
        files[f"{flux.active_folder(settings.fleet.cluster)}/.gitkeep"] = b""
        files |= {
            flux.batch_file(name, settings.fleet.cluster): flux.batch_kustomization(name, settings)
            for name in active
        }
    return files


def _with_owner(made: Manifest, source: GitSource) -> Manifest:
    metadata = made["metadata"]
    annotations = {**metadata.get("annotations", {}), OWNER_ANNOTATION: source.url}
    return {**made, "metadata": {**metadata, "annotations": annotations}}


def _platform(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Files:
    names = Names.of(settings)
    return {
        "namespaces.yaml": [
            made
            for name in (names.trials, names.collector)
            for made in namespaces.namespace(name, settings, bases)
        ],
        "bounds.yaml": [*namespaces.trials_bounds(settings), *namespaces.collector_bounds(settings)],
        "network.yaml": [
            *network.trials_egress(settings, source),
            *network.collector_egress(settings, source),
            *network.sync_egress(settings, source),
        ],
        "access.yaml": [
            *access.trial(settings),
            *access.expiry(settings),
            *access.collector(settings, source),
            *access.sync(settings),
        ],
        "volumes.yaml": [*volumes.results(settings), *volumes.datasets(settings)],
        "admission.yaml": [
            *admission.trial_policies(settings, source, bases),
            *admission.release_policies(settings, bases),
        ],
        "collector.yaml": [cron_jobs.collector_cron_job(settings, source, bases)],
        "sync.yaml": cron_jobs.sync_cron_job(settings, source, bases),
        "expiry.yaml": cron_jobs.expiry_cron_job(settings, source, bases),
    }


def _argocd(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Files:
    return {
        "projects.yaml": argocd.projects(settings, source, bases),
        "batches.yaml": [argocd.application_set(settings, source, bases)],
        "root.yaml": [argocd.root(settings, source, bases)],
        "lease.yaml": [access.lease(settings)],
    }


def _flux(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Files:
    repository, root, receiver = flux.objects(settings, source, bases)
    return {
        "namespace.yaml": namespaces.namespace(Names.of(settings).flux, settings, bases),
        "access.yaml": access.flux(settings, source),
        "admission.yaml": admission.kustomization_policies(settings, bases),
        "source.yaml": [repository],
        "root.yaml": [root],
        "receiver.yaml": [receiver],
        "lease.yaml": [access.lease(settings)],
    }


def _folder(place: str, folder: str, files: Files, source: GitSource) -> Iterable[tuple[str, bytes]]:
    owned = {file: [_with_owner(one, source) for one in made] for file, made in files.items() if made}
    for path, content in _dumped(folder, owned):
        yield f"{place}/{path}", content
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [*owned],
    }
    yield f"{place}/{folder}/kustomization.yaml", yaml.dump(kustomization, banner=BANNER).encode()


def _dumped(folder: str, files: Files) -> Iterable[tuple[str, bytes]]:
    for file, made in files.items():
        if made:
            path = f"{folder}/{file}"
            yield path, dump_objects(*made, purpose=f"{FILES[path]}.")
