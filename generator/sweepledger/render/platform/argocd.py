"""What Argo CD is pointed at: two projects, one Application a batch by ApplicationSet, and the root."""

from collections.abc import Iterable, Mapping

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import objects
from sweepledger.render.platform.notifications import batch_subscriptions, platform_subscriptions
from sweepledger.render.platform.objects import Names, from_base, labels, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import QUEUE_LABEL, Kind
from sweepledger.structs.names import LOCK_FILE
from sweepledger.structs.settings import ArgoCdSettings, Egress, PlatformSettings

ARGOCD = "platform/argocd/v1"
"""The folder of these objects below `base/`."""
HOST_KIND = {"group": "cilium.io", "kind": "CiliumNetworkPolicy"}


def _objects(
    file: str, names: Names, argocd: ArgoCdSettings, source: GitSource, bases: Mapping[str, bytes]
) -> list[Manifest]:
    words = {
        "trials": names.trials,
        "collector": names.collector,
        "project": names.project,
        "platform": names.platform_project,
        "argocd": argocd.namespace,
        "url": source.url,
        "revision": source.revision,
        "folder": platform_folder(names.cluster),
    }
    return from_base(bases[f"{ARGOCD}/{file}"], names, words)


def projects(
    names: Names,
    argocd: ArgoCdSettings,
    egress: Iterable[Egress],
    source: GitSource,
    bases: Mapping[str, bytes],
) -> list[Manifest]:
    """Bound what batches may be, and what the platform may be."""
    made = _objects("projects.yaml", names, argocd, source, bases)
    for project in made:
        spec = project["spec"]
        spec["destinations"] = [{**argocd.destination, **place} for place in spec["destinations"]]
    batches, platform = (project["spec"]["namespaceResourceWhitelist"] for project in made)
    batches += [{"group": kind.group, "kind": kind.kind} for kind in objects.batch_kinds(source)]
    if any(destination.hosts for destination in egress):
        platform.append(HOST_KIND)
    return made


def application_set(
    names: Names, platform: PlatformSettings, source: GitSource, bases: Mapping[str, bytes]
) -> Manifest:
    """Return the ApplicationSet with one Application per folder of `overlays/active`."""
    (made,) = _objects("batches.yaml", names, platform.argocd, source, bases)
    (generator,), template = made["spec"]["generators"], made["spec"]["template"]
    if names.cluster is not None:  # each lock names its cluster
        folders = generator["git"].pop("directories")
        generator["git"]["files"] = [{**one, "path": f"{one['path']}/{LOCK_FILE}"} for one in folders]
        generator["selector"] = {"matchLabels": {"cluster": names.cluster}}
    template["metadata"]["labels"] = labels(names)
    template["metadata"]["annotations"] |= batch_subscriptions(names, platform)
    application = template["spec"]
    application["destination"] = {**platform.argocd.destination, **application["destination"]}
    application["ignoreDifferences"] += [
        _ignored(kind) for kind in objects.custom_kinds(source) if kind.policy
    ]
    return made


def root(names: Names, platform: PlatformSettings, source: GitSource, bases: Mapping[str, bytes]) -> Manifest:
    """Return the Application of the platform."""
    (made,) = _objects("root.yaml", names, platform.argocd, source, bases)
    made["spec"]["destination"] = {**platform.argocd.destination, **made["spec"]["destination"]}
    if subscriptions := platform_subscriptions(names, platform):
        made["metadata"]["annotations"] = subscriptions
    return made


def _ignored(kind: Kind) -> Manifest:
    """Leave alone where a queue writes into a distributed trial."""
    suspend = ".".join((*kind.policy, "suspend"))
    expression = f'select(.metadata.labels["{QUEUE_LABEL}"] != null) | .{suspend}'
    return {"group": kind.group, "kind": kind.kind, "jqPathExpressions": [expression]}
