"""Argo CD: two projects, an ApplicationSet that makes one Application per batch, and the platform's Application."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from sweepledger.controllers.controller import SYNC_WAVE, GitOps, Sync, SyncState, missing
from sweepledger.formats.manifest_fields import condition, objects_at, text_at, value_at
from sweepledger.structs.kubernetes import QUEUE_LABEL, Manifest
from sweepledger.structs.names import PLATFORM_SUFFIX, shortened
from sweepledger.structs.platform import GitSource, Names, RequiredSecret, platform_folder
from sweepledger.structs.settings import Controller, Egress, PlatformSettings
from sweepledger.structs.settings.platform import MessageService

SERVICES = {MessageService.MSTEAMS: "teams"}
"""What it calls services by another name than the settings."""
SUBSCRIBE = "notifications.argoproj.io/subscribe"
LONGEST_PREFIX = 63 - len("subscribe.-recorded.googlechat")
"""Letters of a namespace that fit into the name of an annotation, beside the longest trigger and service."""


class ArgoCd(GitOps):
    """Argo CD keeps the platform applied and may run in another cluster; all repositories share its namespace."""

    name = Controller.ARGOCD
    title = "Argo CD"
    domain = "argoproj.io"
    namespaces = frozenset({"argocd"})
    files: ClassVar = {
        "projects.yaml": "What batches may be, and what the platform may be",
        "batches.yaml": "One Application a folder of `overlays/active` that is for this cluster",
        "root.yaml": "Keeps `platform/` applied, and prunes nothing; this folder is applied by a person",
        "lease.yaml": "Who collects, and the last commit that was seen on the branch",
    }
    monitoring_files: ClassVar = {
        "service-monitor.yaml": "For the Prometheus Operator: scrapes Argo CD. Apply it once, where nothing does yet"
    }
    conditions: ClassVar[Mapping[str, tuple[str | None, tuple[str, ...]]]] = {
        "Application": (None, ()),
        "AppProject": (None, ()),
        "ApplicationSet": ("ResourcesUpToDate", ("ErrorOccurred",)),
    }
    side_files = r"\.argocd-source[^/]*"
    hooks = ("argocd.argoproj.io/hook", SYNC_WAVE)
    options = "argocd.argoproj.io/sync-options"
    settings_key = "argocd"
    field_manager = "argocd-controller"
    apply_options = " --force-conflicts"
    upkeep = (
        "Argo CD then keeps `platform/` applied. When `argocd/` changes, apply it again with `--force-conflicts`: "
        "Argo CD writes into its ApplicationSet."
    )
    repair = "sync its Application in Argo CD, which makes nothing anew by itself"
    remote_remedy = "`argocd app get {batch}` shows what keeps Argo CD from applying it"
    shares_notifications = True

    def is_remote(self, platform: PlatformSettings) -> bool:
        """Return whether the destination of its Applications is another cluster."""
        return platform.argocd.is_remote

    def namespace(self, _: Names, platform: PlatformSettings) -> str:
        """Return the namespace that the settings give."""
        return platform.argocd.namespace

    def words(
        self, names: Names, platform: PlatformSettings, egress: Iterable[Egress], source: GitSource
    ) -> dict[str, Any]:
        """Return the placeholder values of the projects, the ApplicationSet and the root."""
        queued = f'select(.metadata.labels["{QUEUE_LABEL}"] != null)'
        return {
            "project": names.project,
            "platform": f"{names.project}{PLATFORM_SUFFIX}",
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
            "batch-kinds": [{"group": kind.group, "kind": kind.kind} for kind in source.batch_kinds],
            "batch-subscriptions": _subscriptions(names, platform, "applied", "failed"),
            # The Application of the platform sees every commit of the branch.
            "platform-subscriptions": _subscriptions(names, platform, "recorded") or None,
            # Where a queue writes into a distributed trial.
            "queue-differences": [
                {
                    "group": kind.group,
                    "kind": kind.kind,
                    "jqPathExpressions": [f"{queued} | .{'.'.join((*kind.policy, 'suspend'))}"],
                }
                for kind in source.custom_kinds
                if kind.policy
            ],
        }

    def notification_words(
        self, names: Names, platform: PlatformSettings, _: GitSource
    ) -> dict[str, Any] | None:
        """Return the placeholder values of triggers and templates."""
        if platform.monitoring.notify is None and not platform.monitoring.commit_status:
            return None
        return {"prefix": _prefix(names)}

    def secrets(
        self, names: Names, platform: PlatformSettings, source: GitSource
    ) -> Iterator[RequiredSecret]:
        """Yield the credential of the repository."""
        if not source.is_public:
            yield RequiredSecret(
                "controller, read",
                platform.argocd.namespace,
                f"{names.trials}-git-read",
                ("sshPrivateKey",) if source.scheme == "ssh" else source.credential_keys,
                literals=("type=git", f"url={source.url}"),
                label="argocd.argoproj.io/secret-type=repository",
                is_elsewhere=platform.argocd.is_remote,
            )

    def removal(self, names: Names, platform: PlatformSettings) -> str:
        """Return the command that deletes the ApplicationSet."""
        return f"kubectl --namespace {platform.argocd.namespace} delete applicationset {names.project}"

    def observed(self, names: Names, batch: str) -> tuple[tuple[str, str], ...]:
        """Return the Application and the ApplicationSet."""
        return ("applications.argoproj.io", batch), ("applicationsets.argoproj.io", names.project)

    def sync(self, batch: str, *objects: Manifest | None) -> Sync:
        """Return the state that the Application reports, or the ApplicationSet if there is no Application."""
        application, application_set = objects
        if application is None:
            if application_set is None:
                return missing("ApplicationSet of this repository")
            failed = condition(application_set, "ErrorOccurred")
            if failed.get("status") == "True":
                remedy = (
                    "check the repository's address and the Secret of its credential: "
                    "`sweep cluster doctor` lists both"
                )
                return Sync(SyncState.WAITING, "Argo CD", remedy, text_at(failed, "message"))
            return Sync(
                SyncState.WAITING,
                "Argo CD has made no Application for it yet",
                "it looks every few minutes (`argocd.poll`); check that the branch on the server has the batch",
            )
        operation = value_at(application, "status", "operationState")
        refused = [
            text_at(item, "message")
            for item in objects_at(operation, "syncResult", "resources")
            if text_at(item, "status") == "SyncFailed"
        ]
        errors = [
            text_at(item, "message")
            for item in objects_at(application, "status", "conditions")
            if text_at(item, "type").endswith("Error")
        ]
        has_failed = text_at(operation, "phase") in {"Failed", "Error"}
        message = "; ".join(filter(None, refused or errors or [text_at(operation, "message") * has_failed]))
        if message:
            remedy = f"fix what it reports, then `argocd app sync {batch}`"
            return Sync(SyncState.REFUSED, "Argo CD", remedy, message)
        if text_at(operation, "phase") == "Succeeded":
            return Sync(
                SyncState.APPLIED,
                "Argo CD applied it, and its objects are gone",
                f"`argocd app sync {batch}`, which makes nothing anew by itself; or `sweep cancel` the batch",
            )
        return Sync(
            SyncState.WAITING,
            "Argo CD has made its Application, and has not synced it yet",
            "wait a moment; the pods in the namespace of Argo CD show whether its controller runs",
        )


def _prefix(names: Names) -> str:
    """Return the prefix of trigger names, as all repositories share Argo CD's triggers; long namespaces are cut."""
    return shortened(names.trials, LONGEST_PREFIX)


def _subscriptions(names: Names, platform: PlatformSettings, *triggers: str) -> dict[str, str]:
    """Return the annotations that make Argo CD send messages about an Application."""
    monitoring, prefix = platform.monitoring, _prefix(names)
    if not monitoring.enabled:
        return {}
    subscriptions = {f"{SUBSCRIBE}.{prefix}-status.github": ""} if monitoring.commit_status else {}
    if monitoring.notify is not None:
        service = SERVICES.get(monitoring.notify.service, str(monitoring.notify.service))
        channel = monitoring.notify.channel
        subscriptions |= {f"{SUBSCRIBE}.{prefix}-{trigger}.{service}": channel for trigger in triggers}
    return subscriptions


CONTROLLER = ArgoCd()
