"""Messages about batches and results, and commit statuses, from Argo CD's or Flux's own notifications."""

from collections.abc import Mapping
from typing import Any

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, from_base
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.names import shortened
from sweepledger.structs.settings import Controller, MessageService, MonitoringSettings, PlatformSettings

MONITORING = "platform/monitoring/v1"
"""The folder of alerts, messages and the dashboard below `base/`."""
SUBSCRIBE = "notifications.argoproj.io/subscribe"
NOTIFY_SECRET = "sweep-notify"  # noqa: S105 - a Secret's name, not its content
STATUS_SECRET = "sweep-commit-status"  # noqa: S105 - likewise

ARGOCD_SERVICES = {MessageService.MSTEAMS: "teams"}
FLUX_PROVIDERS = {MessageService.WEBHOOK: "generic"}
"""What the controllers call services by another name than the settings."""

LONGEST_PREFIX = 63 - len("subscribe.-recorded.googlechat")
"""Letters of a namespace that fit into the name of an annotation, beside the longest trigger and service."""


def notification_objects(
    names: Names, platform: PlatformSettings, source: GitSource, bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the objects by which the controller sends messages and commit statuses, if the settings want any."""
    match platform.controller:
        case Controller.ARGOCD:
            return _argocd_templates(names, platform, bases)
        case Controller.FLUX:
            return _flux_objects(names, platform.monitoring, source, bases)
        case _:
            return []


def batch_subscriptions(names: Names, platform: PlatformSettings) -> dict[str, str]:
    """Return the annotations by which Argo CD sends messages about the Application of a batch."""
    return _subscriptions(names, platform, "applied", "failed")


def platform_subscriptions(names: Names, platform: PlatformSettings) -> dict[str, str]:
    """Return the same for the Application of the platform, which sees every commit of the branch."""
    return _subscriptions(names, platform, "recorded")


def _subscriptions(names: Names, platform: PlatformSettings, *triggers: str) -> dict[str, str]:
    monitoring, prefix = platform.monitoring, _prefix(names)
    if not monitoring.enabled or platform.controller is not Controller.ARGOCD:
        return {}
    subscriptions = {f"{SUBSCRIBE}.{prefix}-status.github": ""} if monitoring.commit_status else {}
    if monitoring.notify is not None:
        service = ARGOCD_SERVICES.get(monitoring.notify.service, str(monitoring.notify.service))
        channel = monitoring.notify.channel
        subscriptions |= {f"{SUBSCRIBE}.{prefix}-{trigger}.{service}": channel for trigger in triggers}
    return subscriptions


def _prefix(names: Names) -> str:
    """Return how names of triggers begin, which all repositories of an Argo CD share; a long namespace is shortened."""
    return shortened(names.trials, LONGEST_PREFIX)


def _argocd_templates(names: Names, platform: PlatformSettings, bases: Mapping[str, bytes]) -> list[Manifest]:
    if platform.monitoring.notify is None and not platform.monitoring.commit_status:
        return []
    words = {"prefix": _prefix(names), "argocd": platform.argocd.namespace}
    (shared,) = from_base(bases[f"{MONITORING}/notifications-argocd.yaml"], names, words)
    # The ConfigMap is Argo CD's: labels of one repository do not belong there.
    del shared["metadata"]["labels"]
    return [shared]


def _flux_objects(
    names: Names, monitoring: MonitoringSettings, source: GitSource, bases: Mapping[str, bytes]
) -> list[Manifest]:
    notify = monitoring.notify
    words: dict[str, Any] = {
        "url": source.url,
        "if-notify": None if notify is None else {},
        "service": notify and FLUX_PROVIDERS.get(notify.service, str(notify.service)),
        "channel": notify and notify.channel,
        "if-status": {} if monitoring.commit_status else None,
        "status-server": source.git_host.status,
    }
    return from_base(bases[f"{MONITORING}/notifications-flux.yaml"], names, words)
