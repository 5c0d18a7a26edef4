"""Flux: a source and a root in the repository's own namespace, and one Kustomization per batch."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from sweepledger.controllers.controller import GitOps, Sync, SyncState, missing
from sweepledger.formats.manifest_fields import condition, text_at, value_at
from sweepledger.structs.kubernetes import APPLIER_ACCOUNT, GIT_READ_SECRET, Manifest
from sweepledger.structs.platform import GitSource, Names, RequiredSecret, platform_folder
from sweepledger.structs.settings import Controller, Egress, PlatformSettings
from sweepledger.structs.settings.platform import MessageService

PROVIDERS = {MessageService.WEBHOOK: "generic"}
"""What it calls services by another name than the settings."""
APPLY = ["get", "list", "watch", "create", "update", "patch", "delete"]
SOURCE = "sweeps"
"""Name of its source, and of the Kustomization that applies those of the batches."""
KUSTOMIZATIONS = "kustomizations.kustomize.toolkit.fluxcd.io"


class Flux(GitOps):
    """Flux applies each batch through an object in the repository; it does not apply the platform."""

    name = Controller.FLUX
    title = "Flux"
    domain = "fluxcd.io"
    namespaces = frozenset({"flux-system"})
    namespace_suffix = "-flux"
    files: ClassVar = {
        "namespace.yaml": "Where Flux reads what follows; nothing runs there",
        "access.yaml": "With whose rights Flux applies batches",
        "admission.yaml": "What Flux may be asked for there",
        "source.yaml": "The branch that the cluster follows",
        "root.yaml": "One Kustomization a batch, from `flux/active/`",
        "receiver.yaml": "A push is seen at once",
        "lease.yaml": "Who collects, and the last commit that was seen on the branch",
    }
    monitoring_files: ClassVar = {
        "kube-state-metrics.yaml": "For kube-state-metrics, custom-resource-state-config-file: Flux's objects"
    }
    conditions: ClassVar[Mapping[str, tuple[str | None, tuple[str, ...]]]] = {
        "GitRepository": ("Ready", ()),
        "Kustomization": ("Ready", ()),
        "Receiver": ("Ready", ()),
    }
    template_signs: ClassVar = {"${": "Flux fills in ${NAME}"}
    side_files = r"\.sourceignore"
    hooks = ("kustomize.toolkit.fluxcd.io/force",)
    upkeep = (
        "It applies batches, not the platform: when `platform/` or `flux/` changes, apply it again with the "
        "command above."
    )
    repair = "Flux makes it anew within the hour, unless its Kustomization says why it cannot"
    reads_folders = False
    resets_parallelism = True
    batch_kind = "kustomize.toolkit.fluxcd.io/v1/Kustomization"

    def batch_spec(self, batch: str) -> Manifest:
        """Return the `spec` that applies a batch, and prunes its objects when the file is removed.

        It never waits and never forces: a Job is created once, and a batch that cannot be applied blocks no other.
        """
        return {
            "interval": "1h0m0s",
            "retryInterval": "2m0s",
            "timeout": "5m0s",
            "path": f"./overlays/active/{batch}",
            "prune": True,
            "wait": False,
            "serviceAccountName": APPLIER_ACCOUNT,
            "sourceRef": {"kind": "GitRepository", "name": SOURCE},
        }

    def words(
        self, names: Names, _: PlatformSettings, __: Iterable[Egress], source: GitSource
    ) -> dict[str, Any]:
        """Return the placeholder values of the source, the root, the Receiver and Flux's access rights."""
        server = source.git_host.receiver
        return {
            "active": f"{platform_folder(names.cluster)}/flux/active",
            "server": server,
            "events": ["ping", "push"] if server == "github" else None,
            "applies-batches": [
                {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": APPLY}
                for kind in source.batch_kinds
            ],
        }

    def notification_words(
        self, _: Names, platform: PlatformSettings, source: GitSource
    ) -> dict[str, Any] | None:
        """Return the placeholder values of providers and alerts; the settings decide which of them exist."""
        notify = platform.monitoring.notify
        return {
            "url": source.url,
            "if-notify": None if notify is None else {},
            "service": notify and PROVIDERS.get(notify.service, str(notify.service)),
            "channel": notify and notify.channel,
            "if-status": {} if platform.monitoring.commit_status else None,
            "status-server": source.git_host.status,
        }

    def secrets(
        self, names: Names, platform: PlatformSettings, source: GitSource
    ) -> Iterator[RequiredSecret]:
        """Yield the Secrets of the source, the Receiver and messages: a credential and tokens."""
        namespace, monitoring = self.namespace(names, platform), platform.monitoring
        if not source.is_public:
            yield RequiredSecret("controller, read", namespace, GIT_READ_SECRET, source.credential_keys)
        yield RequiredSecret("webhook of the git server", namespace, "sweep-webhook", ("token",))
        if monitoring.enabled and monitoring.notify:
            purpose = "messages: the address of the service"
            yield RequiredSecret(purpose, namespace, "sweep-notify", ("address",))
        if monitoring.enabled and monitoring.commit_status:
            yield RequiredSecret("commit statuses, write", namespace, "sweep-commit-status", ("token",))

    def removal(self, names: Names, platform: PlatformSettings) -> str:
        """Return the command that deletes the Kustomizations of batches."""
        return f"kubectl --namespace {self.namespace(names, platform)} delete {KUSTOMIZATIONS} --all"

    def observed(self, _: Names, batch: str) -> tuple[tuple[str, str], ...]:
        """Return the Kustomizations of the batch and of all batches, and their source."""
        repositories = "gitrepositories.source.toolkit.fluxcd.io"
        return (KUSTOMIZATIONS, batch), (KUSTOMIZATIONS, SOURCE), (repositories, SOURCE)

    def sync(self, batch: str, *objects: Manifest | None) -> Sync:
        """Return the state of the first object that is not ready; if all are ready, the batch is applied."""
        kustomization, root, source = objects
        above = [(f"GitRepository {SOURCE}", source)]
        own = (f"Kustomization {batch}", kustomization)
        for title, manifest in [*above, (f"Kustomization {SOURCE}", root) if kustomization is None else own]:
            trouble = _trouble(title, manifest)
            if trouble is not None:
                return trouble
        if kustomization is None:
            return Sync(
                SyncState.WAITING,
                "Flux has made no Kustomization for it yet",
                f"it looks every minute, `flux reconcile kustomization {SOURCE} --with-source` at once",
            )
        return Sync(
            SyncState.APPLIED,
            "Flux applied it, and its objects are gone",
            f"Flux makes it anew within the hour, `flux reconcile kustomization {batch}` at once; or `sweep cancel` "
            "the batch",
        )


def _trouble(title: str, manifest: Manifest | None) -> Sync | None:
    """Return the reason why an object is not ready; None if it is ready."""
    if manifest is None:
        return missing(title)
    if value_at(manifest, "spec", "suspend") is True:
        kind, _, name = title.partition(" ")
        return Sync(
            SyncState.WAITING,
            f"{title} is suspended, so Flux ignores it",
            f"`flux resume {'source git' if kind == 'GitRepository' else 'kustomization'} {name}`",
        )
    ready = condition(manifest, "Ready")
    match ready.get("status"):
        case "True":
            return None
        case "False":
            remedy = "fix what it reports: Flux tries again by itself"
            return Sync(SyncState.REFUSED, f"Flux: {title}", remedy, text_at(ready, "message"))
        case _:
            return Sync(SyncState.WAITING, f"Flux has not finished with {title}", "wait a moment")


CONTROLLER = Flux()
