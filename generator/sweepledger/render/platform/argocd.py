"""What Argo CD is pointed at, `base/platform/argocd`: the words of two projects, the ApplicationSet and the root."""

from collections.abc import Iterable
from typing import Any

from sweepledger.render.platform import objects
from sweepledger.render.platform.notifications import batch_subscriptions, platform_subscriptions
from sweepledger.render.platform.objects import Names, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import QUEUE_LABEL
from sweepledger.structs.settings import Egress, PlatformSettings


def words(
    names: Names, platform: PlatformSettings, egress: Iterable[Egress], source: GitSource
) -> dict[str, Any]:
    """Return the values of the words."""
    queued = f'select(.metadata.labels["{QUEUE_LABEL}"] != null)'
    return {
        "project": names.project,
        "platform": names.platform_project,
        "argocd": platform.argocd.namespace,
        "revision": source.revision,
        "folder": platform_folder(names.cluster),
        "cluster": names.cluster,
        "cluster-address": platform.argocd.destination,
        "poll-seconds": platform.argocd.poll_seconds,
        "groups": [*platform.argocd.groups] or None,
        "signature-keys": [{"keyID": key} for key in platform.argocd.signature_keys] or None,
        "if-one-cluster": {} if names.cluster is None else None,
        "if-clusters": None if names.cluster is None else {},
        "if-hosts": {} if any(destination.hosts for destination in egress) else None,
        "batch-kinds": [{"group": kind.group, "kind": kind.kind} for kind in objects.batch_kinds(source)],
        "batch-subscriptions": batch_subscriptions(names, platform),
        "platform-subscriptions": platform_subscriptions(names, platform) or None,
        # Where a queue writes into a distributed trial.
        "queue-differences": [
            {
                "group": kind.group,
                "kind": kind.kind,
                "jqPathExpressions": [f"{queued} | .{'.'.join((*kind.policy, 'suspend'))}"],
            }
            for kind in objects.custom_kinds(source)
            if kind.policy
        ],
    }
