"""All of `clusters/` as files, and the kustomizations that hold them together."""

import posixpath
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from sweepledger.controllers import GITOPS
from sweepledger.controllers.controller import GitOps, Installed
from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import (
    admission,
    admission_lists,
    batch_objects,
    kueue,
    manual_setup,
    monitoring,
    network,
    readme,
    team,
)
from sweepledger.render.platform.admission_lists import Values
from sweepledger.render.platform.objects import FILES, KUSTOMIZATION, dump_objects, from_base
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, OWNER_ANNOTATION
from sweepledger.structs.platform import CLUSTERS, REMOTE, GitSource, Names, patches_folder, platform_folder
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings

Files = dict[str, list[Manifest]]
"""The objects of the files of a folder; a file without any is not written."""


def platform_tree(
    settings: Settings,
    source: GitSource,
    bases: Mapping[str, bytes],
    active: Mapping[str, str | None] = MappingProxyType({}),
    existing: Collection[str] = (),
) -> FileTree:
    """Return the files below `clusters/` for the controller that the settings name.

    `active` maps active batches to their clusters: a controller may need an object for each batch. The platform has
    the team's component if its kustomization is among the `existing` files.
    """
    files: dict[str, bytes] = {}
    clusters = [own.fleet.cluster for own in settings.in_clusters]
    installed = [_installed(own, source) for own in settings.in_clusters]
    for own, controllers in zip(settings.in_clusters, installed, strict=True):
        files |= _cluster_files(own, source, controllers, bases, existing)
    batches = {name: cluster for name, cluster in active.items() if cluster in clusters}
    files |= batch_objects.batch_files(settings.platform.controller, settings.trials.namespace, batches)
    # If a cluster comes back, its controller deletes the Jobs there only if it finds the folder empty: without the
    # folder, it applies and prunes nothing.
    controller, every = settings.platform.controller, (*settings.fleet.lost_clusters, *clusters)
    files |= {f"{folder}/.gitkeep": b"" for folder in batch_objects.active_folders(controller, every)}
    if settings.git.signers:
        files[manual_setup.SIGNERS_FILE] = manual_setup.allowed_signers(settings.git.signers)
    files[manual_setup.HOOK_FILE] = manual_setup.pre_receive_hook(
        settings.results.mode, settings.git.next, source, bases
    )
    files[manual_setup.RULESET_FILE] = manual_setup.push_ruleset(settings.platform.controller, clusters)
    for own, controllers in zip(settings.in_clusters, installed, strict=True):
        listed = sorted([*files, BOOTSTRAP_FILE])
        names, trials, results = Names.of(own.trials, own.fleet), own.trials, own.results
        authorities, platform = own.network.authorities, own.platform
        here = controllers[platform.controller]
        secrets = manual_setup.required_secrets(names, trials, own.git.code, results, here.secrets, source)
        needed = manual_setup.required_objects(names, trials, authorities, platform.collector)
        checks = manual_setup.checklist(names, trials.pools.values(), secrets, needed)
        page = readme.text(names, trials, authorities, results, platform, here, source, listed, checks)
        files[f"{platform_folder(names.cluster)}/README.md"] = page.encode()
    if settings.fleet.clusters:
        files[f"{CLUSTERS}/README.md"] = readme.list_of_clusters(
            settings.trials.namespace, settings.fleet, source
        ).encode()
    return FileTree(files)


def _installed(settings: Settings, source: GitSource) -> dict[str, Installed]:
    names, platform = Names.of(settings.trials, settings.fleet), settings.platform
    egress = settings.network.egress.values()
    return {name: own.installed(names, platform, egress, source) for name, own in GITOPS.items()}


def _cluster_files(
    settings: Settings,
    source: GitSource,
    controllers: Mapping[str, Installed],
    bases: Mapping[str, bytes],
    existing: Collection[str],
) -> dict[str, bytes]:
    names, platform = Names.of(settings.trials, settings.fleet), settings.platform
    place = platform_folder(names.cluster)
    folders = _folders(names, settings, source, controllers, bases)
    owned = [made for listed in folders.values() for objects in listed.values() for made in objects]
    folders["platform"]["owner.yaml"] = admission.owner_policy(names, owned, bases)
    for name in GITOPS.keys() - {platform.controller}:
        del folders[name]
    if controllers[platform.controller].is_remote:
        folders[REMOTE] = {"lease.yaml": folders[platform.controller].pop("lease.yaml")}
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
    return files


def batch_lists(
    settings: Settings, shapes: Collection[Shape], users: Iterable[str], bases: Mapping[str, bytes]
) -> tuple[Values, Values | None]:
    """Return the values of the policies for batches in a cluster that runs these distributed shapes.

    `users` are the user name prefixes from `appliers`.
    """
    trials, results = settings.trials, settings.results
    of_trials = admission_lists.of_trials(
        trials,
        settings.network,
        results,
        settings.admission,
        settings.git.code,
        settings.teams.limits.max_trials,
        shapes,
        users,
        bases,
    )
    of_workloads = admission_lists.of_workloads(of_trials)
    return of_trials, of_workloads if shapes else None


def appliers(names: Names, spaces: Iterable[str]) -> list[str]:
    """Return the name prefixes of users that apply objects from git, and of the platform's accounts.

    `spaces` are the namespaces of the objects that GitOps controllers read.
    """
    usual = (space for own in GITOPS.values() for space in own.namespaces)
    return [
        f"system:serviceaccount:{space}:"
        for space in sorted({names.trials, names.collector, *usual, *spaces})
    ]


def _with_owner(made: Manifest, source: GitSource) -> Manifest:
    metadata = made["metadata"]
    annotations = {**metadata.get("annotations", {}), OWNER_ANNOTATION: source.url}
    return {**made, "metadata": {**metadata, "annotations": annotations}}


def _folders(
    names: Names,
    settings: Settings,
    source: GitSource,
    controllers: Mapping[str, Installed],
    bases: Mapping[str, bytes],
) -> dict[str, Files]:
    """Return the objects of all folders by file: the files of `base/platform`, filled in for a team."""
    trials, opened, results, platform = settings.trials, settings.network, settings.results, settings.platform
    words = {
        **team.words(names, trials, opened, results, platform.collector, source),
        **network.dns_words(opened.dns),
    }

    def made(file: str, **more: str) -> list[Manifest]:
        return from_base(bases[f"platform/{file}.yaml"], names, {**words, **more})

    def namespace(name: str) -> list[Manifest]:
        return made("team/v1/namespace", namespace=name)

    cron_jobs = made("team/v1/expiry")
    expiry = admission_lists.of_expiry(cron_jobs[0], results.bucket, settings.admission) if cron_jobs else {}
    # What the collector may change of pods is our finalizer alone.
    releases = {"collectors": [f"system:serviceaccount:{names.collector}:{COLLECTOR_ACCOUNT}"]}
    users = appliers(names, (one.namespace for one in controllers.values()))
    exports = [dataset for _, dataset in sorted(trials.datasets.items())]
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
                *admission.batch_policies(names, *batch_lists(settings, source.shapes, users, bases), bases),
                *admission.policy("children", names, bases, {"appliers": users}),
                # Without a CronJob that deletes old results, nothing may run in its name.
                *admission.policy("expiry", names, bases, expiry),
                *(
                    admission.policy("releases", names, bases, releases)
                    if results.store.facts.holds_pods
                    else ()
                ),
            ],
            **{f"{name}.yaml": made(f"team/v1/{name}") for name in ("collector", "sync", "expiry")},
        },
        **{
            name: _controller_files(own, names, {**words, **controllers[name].words}, bases)
            for name, own in GITOPS.items()
        },
    }


def _controller_files(
    own: GitOps, names: Names, words: Mapping[str, Any], bases: Mapping[str, bytes]
) -> Files:
    """Return the objects that a controller reads, by file: from its base, the team's base, or its admission policy."""
    files: Files = {}
    for file in own.files:
        path = f"platform/{own.name}/v1/{file}"
        if file == "admission.yaml" and path not in bases:
            folders = {"active": [f"./{words['active']}"]}
            files[file] = admission.policy(f"{own.name}-batches", names, bases, folders, words)
        else:
            files[file] = from_base(bases.get(path) or bases[f"{team.TEAM}/{file}"], names, words)
    return files


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
