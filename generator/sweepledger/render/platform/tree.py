"""All of `clusters/` as files, and the kustomizations that hold them together."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from sweepledger.formats import yaml
from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import (
    access,
    admission,
    admission_lists,
    argocd,
    flux,
    kueue,
    manual_setup,
    monitoring,
    namespaces,
    network,
    readme,
    volumes,
)
from sweepledger.render.platform.admission_lists import Values
from sweepledger.render.platform.cron_jobs import CronJobs
from sweepledger.render.platform.objects import BANNER, CLUSTERS, FILES, Names, dump_objects, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.kubernetes import OWNER_ANNOTATION
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller, DnsSettings, Settings

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
        files[manual_setup.SIGNERS_FILE] = manual_setup.allowed_signers(settings.git.signers)
    files[manual_setup.HOOK_FILE] = manual_setup.pre_receive_hook(
        settings.results.mode, settings.git.next, source, bases
    )
    for own in settings.in_clusters:
        listed = sorted([*files, BOOTSTRAP_FILE])
        names, place = Names.of(own.trials, own.fleet), platform_folder(own.fleet.cluster)
        authorities = own.network.authorities
        branch = own.git.branch
        page = readme.text(names, own.trials, authorities, own.results, own.platform, branch, source, listed)
        files[f"{place}/README.md"] = page.encode()
    if settings.fleet.clusters:
        files[f"{CLUSTERS}/README.md"] = readme.list_of_clusters(
            settings.trials.namespace, settings.fleet, source
        ).encode()
    return FileTree(files)


def _cluster_files(
    settings: Settings, source: GitSource, bases: Mapping[str, bytes], active: Iterable[str]
) -> dict[str, bytes]:
    names, platform = Names.of(settings.trials, settings.fleet), settings.platform
    place = platform_folder(names.cluster)
    folders = {
        "platform": _platform(names, settings, source, bases),
        "argocd": {
            "projects.yaml": argocd.projects(
                names, platform.argocd, settings.network.egress.values(), source, bases
            ),
            "batches.yaml": [argocd.application_set(names, platform, source, bases)],
            "root.yaml": [argocd.root(names, platform, source, bases)],
            "lease.yaml": [access.lease(names)],
        },
        "flux": _flux(names, settings.network.dns, source, bases),
    }
    owned = [made for listed in folders.values() for objects in listed.values() for made in objects]
    folders["platform"]["owner.yaml"] = admission.owner_policy(names, owned, bases)
    match platform.controller:
        case Controller.ARGOCD:
            del folders["flux"]
            if platform.argocd.is_remote:
                folders[REMOTE] = {"lease.yaml": folders["argocd"].pop("lease.yaml")}
        case Controller.FLUX:
            del folders["argocd"]
        case _:
            raise ValueError(f"no controller to write files for, but got {platform.controller!r}")
    files = {
        path: content
        for name, listed in folders.items()
        for path, content in _folder(place, name, listed, source)
    }
    optional = {
        "kueue.yaml": kueue.objects(names, settings.trials.pools, platform.collector.pool),
        "priority-class.yaml": kueue.priority_class(names, settings.trials.priority_class),
    }
    files |= {f"{place}/{path}": content for path, content in _dumped("optional", optional)}
    files |= dict(
        monitoring.monitoring_files(
            names, platform, settings.results, source, bases, has_budgets=bool(settings.teams.budgets)
        )
    )
    if platform.controller is Controller.FLUX:
        files[f"{flux.active_folder(names.cluster)}/.gitkeep"] = b""
        files |= {
            flux.batch_file(name, names.cluster): flux.batch_kustomization(name, names.trials)
            for name in active
        }
    return files


def batch_lists(
    settings: Settings, shapes: Collection[Shape], bases: Mapping[str, bytes]
) -> tuple[Values, Values | None]:
    """Return the values of the policies for batches, where the cluster runs some distributed shapes."""
    trials, results = settings.trials, settings.results
    of_trials = admission_lists.of_trials(
        trials,
        settings.network,
        results,
        settings.admission,
        settings.git.code,
        settings.teams.limits.max_trials,
        shapes,
        bases,
    )
    return of_trials, admission_lists.of_workloads(trials.pools, results.bucket) if shapes else None


def _with_owner(made: Manifest, source: GitSource) -> Manifest:
    metadata = made["metadata"]
    annotations = {**metadata.get("annotations", {}), OWNER_ANNOTATION: source.url}
    return {**made, "metadata": {**metadata, "annotations": annotations}}


def _platform(names: Names, settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Files:
    trials, opened, results, collector = (
        settings.trials,
        settings.network,
        settings.results,
        settings.platform.collector,
    )
    cron_jobs = CronJobs(names, trials, opened, results, collector, source, bases)
    expiry = cron_jobs.of_expiry()
    exports = [dataset for _, dataset in sorted(trials.datasets.items())]
    return {
        "namespaces.yaml": [
            made
            for name in (names.trials, names.collector)
            for made in namespaces.namespace(name, names, opened.dns, bases)
        ],
        "bounds.yaml": [
            *namespaces.trials_bounds(names, trials.pools.values(), expires=bool(expiry)),
            *namespaces.collector_bounds(names, collector.memory, syncs=bool(results.sync)),
        ],
        "network.yaml": [
            *network.trials_egress(names, opened, results, source),
            *network.collector_egress(names, opened, results, source),
            *network.sync_egress(names, opened, results, source),
        ],
        "access.yaml": [
            *access.trial(names, results),
            *access.expiry(names, results),
            *access.collector(names, results, source),
            *access.sync(names, results),
        ],
        "volumes.yaml": [*volumes.results(names, results), *volumes.datasets(names, exports)],
        "admission.yaml": [
            *admission.trial_policies(names, *batch_lists(settings, source.shapes, bases), expiry, bases),
            *admission.release_policies(names, results.store, bases),
        ],
        "collector.yaml": [cron_jobs.of_collector()],
        "sync.yaml": cron_jobs.of_sync(),
        "expiry.yaml": expiry,
    }


def _flux(names: Names, dns: DnsSettings | None, source: GitSource, bases: Mapping[str, bytes]) -> Files:
    repository, root, receiver = flux.objects(names, source, bases)
    return {
        "namespace.yaml": namespaces.namespace(names.flux, names, dns, bases),
        "access.yaml": access.flux(names, source),
        "admission.yaml": admission.kustomization_policies(names, bases),
        "source.yaml": [repository],
        "root.yaml": [root],
        "receiver.yaml": [receiver],
        "lease.yaml": [access.lease(names)],
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
