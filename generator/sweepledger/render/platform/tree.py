"""All of `clusters/` as files, and the kustomizations that hold them together."""

import posixpath
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import (
    admission,
    admission_lists,
    argocd,
    flux,
    kueue,
    manual_setup,
    monitoring,
    network,
    readme,
    team,
)
from sweepledger.render.platform.admission_lists import Values
from sweepledger.render.platform.objects import (
    CLUSTERS,
    FILES,
    KUSTOMIZATION,
    Names,
    dump_objects,
    from_base,
    patches_folder,
    platform_folder,
)
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.kubernetes import OWNER_ANNOTATION
from sweepledger.structs.run_config import Shape
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
    existing: Collection[str] = (),
) -> FileTree:
    """Write what the clusters need, below `clusters/`, for the controller that the settings name.

    `active` names the batches that stand, with their clusters: Flux needs a Kustomization for each. A platform has
    the component of a team whose kustomization is among the `existing` files.
    """
    files: dict[str, bytes] = {}
    for own in settings.in_clusters:
        batches = [name for name, cluster in active.items() if cluster == own.fleet.cluster]
        files |= _cluster_files(own, source, bases, batches, existing)
    if settings.platform.controller is Controller.FLUX:
        # If a cluster comes back, its Flux deletes the Jobs there only if it finds the folder empty: without the
        # folder, it applies and prunes nothing.
        files |= {f"{flux.active_folder(name)}/.gitkeep": b"" for name in settings.fleet.lost_clusters}
    if settings.git.signers:
        files[manual_setup.SIGNERS_FILE] = manual_setup.allowed_signers(settings.git.signers)
    files[manual_setup.HOOK_FILE] = manual_setup.pre_receive_hook(
        settings.results.mode, settings.git.next, source, bases
    )
    clusters = [own.fleet.cluster for own in settings.in_clusters]
    files[manual_setup.RULESET_FILE] = manual_setup.push_ruleset(settings.platform.controller, clusters)
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
    settings: Settings,
    source: GitSource,
    bases: Mapping[str, bytes],
    active: Iterable[str],
    existing: Collection[str],
) -> dict[str, bytes]:
    names, platform = Names.of(settings.trials, settings.fleet), settings.platform
    place = platform_folder(names.cluster)
    folders = _folders(names, settings, source, bases)
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
    patches = patches_folder(names.cluster)
    is_patched = f"{patches}/kustomization.yaml" in existing
    component = posixpath.relpath(patches, f"{place}/platform")
    files = {
        path: content
        for name, listed in folders.items()
        for path, content in _folder(
            place, name, listed, source, components=[component] if is_patched and name == "platform" else []
        )
    }
    optional = {
        "kueue.yaml": kueue.objects(names, settings.trials.pools, platform.collector.pool, bases),
        "priority-class.yaml": kueue.priority_class(names, settings.trials.priority_class, bases),
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
    return of_trials, admission_lists.of_workloads(trials, results.bucket) if shapes else None


def _with_owner(made: Manifest, source: GitSource) -> Manifest:
    metadata = made["metadata"]
    annotations = {**metadata.get("annotations", {}), OWNER_ANNOTATION: source.url}
    return {**made, "metadata": {**metadata, "annotations": annotations}}


def _folders(
    names: Names, settings: Settings, source: GitSource, bases: Mapping[str, bytes]
) -> dict[str, Files]:
    """Return the objects of all folders by file: the files of `base/platform` with a team's words."""
    trials, opened, results, platform = settings.trials, settings.network, settings.results, settings.platform
    words = {
        **team.words(names, trials, opened, results, platform.collector, source),
        **network.dns_words(opened.dns),
        **argocd.words(names, platform, opened.egress.values(), source),
        **flux.words(names, source),
    }

    def made(file: str, **more: str) -> list[Manifest]:
        return from_base(bases[f"platform/{file}.yaml"], names, {**words, **more})

    def namespace(name: str) -> list[Manifest]:
        return made("team/v1/namespace", namespace=name)

    exports = [dataset for _, dataset in sorted(trials.datasets.items())]
    lease = {"lease.yaml": made("team/v1/lease")}
    return {
        "platform": {
            "namespaces.yaml": [*namespace(names.trials), *namespace(names.collector)],
            "bounds.yaml": made("team/v1/bounds"),
            "network.yaml": [
                *network.policies(names, opened, results, source, bases),
                *made("team/v1/network"),
            ],
            "access.yaml": made("team/v1/access"),
            "volumes.yaml": team.volumes(names, results, exports, bases),
            "admission.yaml": [
                *admission.batch_policies(names, *batch_lists(settings, source.shapes, bases), bases),
                *admission.expiry_policies(names, made("team/v1/expiry"), results.bucket, bases),
                *admission.release_policies(names, results.store, bases),
            ],
            **{f"{name}.yaml": made(f"team/v1/{name}") for name in ("collector", "sync", "expiry")},
        },
        "argocd": {f"{name}.yaml": made(f"argocd/v1/{name}") for name in ("projects", "batches", "root")}
        | lease,
        "flux": {
            "namespace.yaml": namespace(names.flux),
            "access.yaml": made("flux/v1/access"),
            "admission.yaml": admission.kustomization_policies(names, bases),
            **{f"{name}.yaml": made(f"flux/v1/{name}") for name in ("source", "root", "receiver")},
            **lease,
        },
    }


def _folder(
    place: str, folder: str, files: Files, source: GitSource, *, components: list[str]
) -> Iterable[tuple[str, bytes]]:
    owned = {file: [_with_owner(one, source) for one in made] for file, made in files.items() if made}
    for path, content in _dumped(folder, owned):
        yield f"{place}/{path}", content
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [*owned],
        **({"components": components} if components else {}),
    }
    yield f"{place}/{folder}/kustomization.yaml", dump_objects(kustomization, purpose=KUSTOMIZATION)


def _dumped(folder: str, files: Files) -> Iterable[tuple[str, bytes]]:
    for file, made in files.items():
        if made:
            path = f"{folder}/{file}"
            yield path, dump_objects(*made, purpose=f"{FILES[path]}.")
