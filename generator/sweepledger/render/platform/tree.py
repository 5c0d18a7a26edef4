"""All of `clusters/` as files, and the kustomizations that hold them together."""

from collections.abc import Iterable, Mapping

from generator.formats import yaml
from generator.formats.bootstrap import BOOTSTRAP_FILE
from generator.render.platform import (
    access,
    admission,
    argocd,
    collector,
    confinement,
    expiry,
    flux,
    kueue,
    namespaces,
    network,
    readme,
    volumes,
)
from generator.render.platform.names import BANNER, Manifest, Names, written
from generator.render.platform.source import Source
from generator.structs.settings import Controller, Settings
from generator.structs.tree import FileTree

File = tuple[str, str, list[Manifest]]
"""Name, what it is for, and what it holds."""


def platform(
    settings: Settings, source: Source, bases: Mapping[str, bytes], active: Iterable[str] = ()
) -> FileTree:
    """Write what a cluster needs, below `clusters/`, for the controller that the settings name.

    `active` names the batches that stand: Flux needs a Kustomization for each.
    """
    folders = {"platform": _platform(settings, source, bases)}
    match settings.controller:
        case Controller.ARGOCD:
            folders["argocd"] = _argocd(settings, source)
        case Controller.FLUX:
            folders["flux"] = _flux(settings, source, bases)
        case _:
            raise ValueError(f"no controller to write files for, but got {settings.controller!r}")
    files = {path: content for name, listed in folders.items() for path, content in _folder(name, listed)}
    for name, says, made in _optional(settings):
        if made:
            files[f"clusters/optional/{name}"] = written(*made, says=says)
    if settings.controller is Controller.FLUX:
        files[f"{flux.ACTIVE}/.gitkeep"] = b""
        files |= {flux.batch_file(name): flux.batch_kustomization(name, settings) for name in active}
    if settings.signers:
        files[confinement.SIGNERS_FILE] = confinement.allowed_signers(settings)
    files[confinement.HOOK_FILE] = confinement.hook(settings, source, bases)
    files["clusters/README.md"] = readme.text(settings, source, sorted([*files, BOOTSTRAP_FILE])).encode()
    return FileTree(files)


def _platform(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> list[File]:
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
            [*network.trials_egress(settings, source), *network.collector_egress(settings, source)],
        ),
        (
            "access.yaml",
            "Who may do what: trials nothing, the collector reads Jobs and pods, and takes its Lease.",
            [*access.trial(settings), *access.expiry(settings), *access.collector(settings, source)],
        ),
        (
            "volumes.yaml",
            "Results twice over one export, once to read; datasets to read. All are kept for ever.",
            [*volumes.results(settings), *volumes.datasets(settings)],
        ),
        (
            "admission.yaml",
            "What the API server refuses to run as a trial, even if it was merged.",
            admission.trials(settings, source, bases),
        ),
        *_scheduled(settings, source, bases),
    ]


def _scheduled(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> list[File]:
    return [
        (
            "collector.yaml",
            "Records what trials left: the one thing in the cluster that writes to git.",
            [collector.cron_job(settings, source, bases)],
        ),
        (
            "expiry.yaml",
            "Deletes from the volumes what trials left, days after its results came to the branch.",
            expiry.cron_job(settings, source, bases),
        ),
    ]


def _argocd(settings: Settings, source: Source) -> list[File]:
    return [
        (
            "projects.yaml",
            "What batches may be, and what the platform may be.",
            argocd.projects(settings, source),
        ),
        (
            "batches.yaml",
            "One Application a folder of overlays/active.",
            [argocd.application_set(settings, source)],
        ),
        (
            "root.yaml",
            "Keeps clusters/platform applied; this folder is applied by a person.",
            [argocd.root(settings, source)],
        ),
        (
            "lease.yaml",
            "Who collects, and the last commit that was seen on the branch.",
            [access.lease(settings)],
        ),
    ]


def _flux(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> list[File]:
    space = namespaces.namespace(Names.of(settings).flux, settings, bases)
    return [
        ("namespace.yaml", "Where Flux reads what follows; nothing runs here.", space),
        ("access.yaml", "With whose rights Flux applies batches.", access.flux(settings, source)),
        ("admission.yaml", "What Flux may be asked for here.", admission.kustomizations(settings)),
        ("source.yaml", "The branch that the cluster follows.", [flux.source(settings, source)]),
        ("root.yaml", "One Kustomization a batch, from clusters/flux/active.", [flux.root(settings)]),
        ("receiver.yaml", "A push is seen at once.", [flux.receiver(settings, source)]),
        (
            "lease.yaml",
            "Who collects, and the last commit that was seen on the branch.",
            [access.lease(settings)],
        ),
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


def _folder(name: str, listed: list[File]) -> Iterable[tuple[str, bytes]]:
    held = [(file, says, made) for file, says, made in listed if made]
    for file, says, made in held:
        yield f"clusters/{name}/{file}", written(*made, says=says)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [file for file, _, _ in held],
    }
    yield f"clusters/{name}/kustomization.yaml", yaml.dump(kustomization, banner=BANNER).encode()
