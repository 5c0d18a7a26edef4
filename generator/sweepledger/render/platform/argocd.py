"""What Argo CD is pointed at: two projects, one Application a batch by ApplicationSet, and the root."""

from collections.abc import Mapping

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import objects
from sweepledger.render.platform.notifications import batch_subscriptions, platform_subscriptions
from sweepledger.render.platform.objects import Names, from_base, labels, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import QUEUE_LABEL, Kind
from sweepledger.structs.names import LOCK_FILE
from sweepledger.structs.settings import Settings

ARGOCD = "platform/argocd/v1"
"""The folder of these objects below `base/`."""
HOST_KIND = {"group": "cilium.io", "kind": "CiliumNetworkPolicy"}


def _objects(file: str, settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[Manifest]:
    names = Names.of(settings)
    words = {
        "trials": names.trials,
        "collector": names.collector,
        "project": names.project,
        "platform": names.platform_project,
        "argocd": settings.platform.argocd.namespace,
        "url": source.url,
        "revision": source.revision,
        "folder": platform_folder(settings.fleet.cluster),
    }
    return from_base(bases[f"{ARGOCD}/{file}"], settings, words)


def projects(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Bound what batches may be, and what the platform may be."""
    made = _objects("projects.yaml", settings, source, bases)
    for project in made:
        spec = project["spec"]
        spec["destinations"] = [
            {**settings.platform.argocd.destination, **place} for place in spec["destinations"]
        ]
    batches, platform = (project["spec"]["namespaceResourceWhitelist"] for project in made)
    batches += [{"group": kind.group, "kind": kind.kind} for kind in objects.batch_kinds(source)]
    if any(egress.hosts for egress in settings.network.egress.values()):
        platform.append(HOST_KIND)
    return made


def application_set(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Manifest:
    """Return the ApplicationSet with one Application per folder of `overlays/active`."""
    (made,) = _objects("batches.yaml", settings, source, bases)
    (generator,), template = made["spec"]["generators"], made["spec"]["template"]
    if settings.fleet.cluster is not None:  # each lock names its cluster
        folders = generator["git"].pop("directories")
        generator["git"]["files"] = [{**one, "path": f"{one['path']}/{LOCK_FILE}"} for one in folders]
        generator["selector"] = {"matchLabels": {"cluster": settings.fleet.cluster}}
    template["metadata"]["labels"] = labels(settings)
    template["metadata"]["annotations"] |= batch_subscriptions(settings)
    application = template["spec"]
    application["destination"] = {**settings.platform.argocd.destination, **application["destination"]}
    application["ignoreDifferences"] += [
        _ignored(kind) for kind in objects.custom_kinds(source) if kind.policy
    ]
    return made


def root(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Manifest:
    """Return the Application of the platform."""
    (made,) = _objects("root.yaml", settings, source, bases)
    made["spec"]["destination"] = {**settings.platform.argocd.destination, **made["spec"]["destination"]}
    if subscriptions := platform_subscriptions(settings):
        made["metadata"]["annotations"] = subscriptions
    return made


def _ignored(kind: Kind) -> Manifest:
    """Leave alone where a queue writes into a distributed trial."""
    suspend = ".".join((*kind.policy, "suspend"))
    expression = f'select(.metadata.labels["{QUEUE_LABEL}"] != null) | .{suspend}'
    return {"group": kind.group, "kind": kind.kind, "jqPathExpressions": [expression]}
