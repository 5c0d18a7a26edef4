"""Messages about batches and results, and commit statuses, from Argo CD's or Flux's own notifications."""

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.names import shortened
from sweepledger.structs.settings import Controller, MessageService, Settings

SUBSCRIBE = "notifications.argoproj.io/subscribe"
FLUX_ALERTS = "notification.toolkit.fluxcd.io/v1beta3"
NOTIFY_SECRET = "sweep-notify"  # noqa: S105 - a Secret's name, not its content
STATUS_SECRET = "sweep-commit-status"  # noqa: S105 - likewise

ARGOCD_SERVICES = {
    MessageService.SLACK: "slack",
    MessageService.MSTEAMS: "teams",
    MessageService.GOOGLECHAT: "googlechat",
    MessageService.WEBHOOK: "webhook",
}
FLUX_PROVIDERS = {
    MessageService.SLACK: "slack",
    MessageService.MSTEAMS: "msteams",
    MessageService.GOOGLECHAT: "googlechat",
    MessageService.WEBHOOK: "generic",
}
STATUS_PROVIDERS = {
    "bitbucket.org": "bitbucket",
    "dev.azure.com": "azuredevops",
    "bitbucket": "bitbucketserver",
    "gitlab": "gitlab",
    "github": "github",
}
"""What Flux calls the API for commit statuses of a server with such a name; any other is taken for Gitea or Forgejo.

Provider `bitbucket` sends its credential to bitbucket.org, whatever server the address names.
"""

LONGEST_PREFIX = 63 - len("subscribe.-recorded.googlechat")
"""Letters of a namespace that fit into the name of an annotation, beside the longest trigger and service."""

ARGOCD_STATUS = {
    "message": "{{.app.metadata.name}}: {{.app.status.operationState.phase}}",
    "github": {
        "repoURLPath": "{{.app.spec.source.repoURL}}",
        "revisionPath": "{{.app.status.operationState.syncResult.revision}}",
        "status": {
            "state": '{{if eq .app.status.operationState.phase "Succeeded"}}success{{else}}failure{{end}}',
            "label": "sweeps/{{.app.metadata.name}}",
        },
    },
}
"""A commit status by Argo CD's service `github`; it knows no other server."""


def notification_objects(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the objects by which the controller sends messages and commit statuses, if the settings want any."""
    match settings.controller:
        case Controller.ARGOCD:
            return _argocd_templates(settings)
        case Controller.FLUX:
            return [*_flux_messages(settings), *_flux_statuses(settings, source)]
        case _:
            return []


def batch_subscriptions(settings: Settings) -> dict[str, str]:
    """Return the annotations by which Argo CD sends messages about the Application of a batch."""
    return _subscriptions(settings, "applied", "failed")


def platform_subscriptions(settings: Settings) -> dict[str, str]:
    """Return the same for the Application of the platform, which sees every commit of the branch."""
    return _subscriptions(settings, "recorded")


def _subscriptions(settings: Settings, *triggers: str) -> dict[str, str]:
    monitoring, prefix = settings.monitoring, _prefix(settings)
    if not monitoring.enabled or settings.controller is not Controller.ARGOCD:
        return {}
    subscriptions = {f"{SUBSCRIBE}.{prefix}-status.github": ""} if monitoring.commit_status else {}
    if monitoring.notify is not None:
        service = ARGOCD_SERVICES[monitoring.notify.service]
        channel = monitoring.notify.channel
        subscriptions |= {f"{SUBSCRIBE}.{prefix}-{trigger}.{service}": channel for trigger in triggers}
    return subscriptions


def _prefix(settings: Settings) -> str:
    """Return how names of triggers begin, which all repositories of an Argo CD share; a long namespace is shortened."""
    return shortened(Names.of(settings).trials, LONGEST_PREFIX)


def _argocd_templates(settings: Settings) -> list[Manifest]:
    """Return the triggers and templates: keys of one ConfigMap that all repositories of an Argo CD share."""
    if settings.monitoring.notify is None and not settings.monitoring.commit_status:
        return []
    prefix = _prefix(settings)
    message = "(call .repo.GetCommitMetadata .app.status.sync.revision).Message"
    triggers = {
        "applied": ("app.status.operationState.phase in ['Succeeded']", "app.metadata.name"),
        "failed": (
            "app.status.operationState.phase in ['Error', 'Failed']",
            "app.status.operationState.finishedAt",
        ),
        "status": (
            "app.status.operationState.phase in ['Succeeded', 'Error', 'Failed']",
            "app.status.operationState.syncResult.revision",
        ),
        "recorded": (
            "repo.GetCommitMetadata(app.status.sync.revision).Message startsWith 'results('",
            "app.status.sync.revision",
        ),
    }
    templates = {
        "applied": "Merged and started: batch {{.app.metadata.name}}",
        "failed": "Not applied: batch {{.app.metadata.name}}: {{.app.status.operationState.message}}",
        "recorded": f"Finished: {{{{{message}}}}}",
    }
    data = {f"template.{prefix}-{name}": yaml.dump({"message": text}) for name, text in templates.items()}
    data[f"template.{prefix}-status"] = yaml.dump(ARGOCD_STATUS)
    data |= {
        f"trigger.{prefix}-{name}": yaml.dump([{"when": when, "oncePer": once, "send": [f"{prefix}-{name}"]}])
        for name, (when, once) in triggers.items()
    }
    shared = manifest(
        "v1/ConfigMap", "argocd-notifications-cm", settings, namespace=settings.argocd.namespace, data=data
    )
    # The ConfigMap is Argo CD's: server-side apply adds these keys, and labels of one repository do not belong there.
    del shared["metadata"]["labels"]
    return [shared]


def _flux_messages(settings: Settings) -> list[Manifest]:
    notify, names = settings.monitoring.notify, Names.of(settings)
    if notify is None:
        return []
    provider = {
        "type": FLUX_PROVIDERS[notify.service],
        "channel": notify.channel,
        "secretRef": {"name": NOTIFY_SECRET},
    }
    batches = {
        "summary": f"batches of {names.trials}",
        "providerRef": {"name": NOTIFY_SECRET},
        "eventSeverity": "info",
        "eventSources": [{"kind": "Kustomization", "name": "*"}],
        "exclusionList": [".*no changes.*"],
    }
    results = {
        "summary": f"results of {names.trials}",
        "providerRef": {"name": NOTIFY_SECRET},
        "eventSeverity": "info",
        # The event of a new commit quotes its subject, which names the best value.
        "eventSources": [{"kind": "GitRepository", "name": "*"}],
        "inclusionList": [r".*results\(.*"],
    }
    return [
        manifest(f"{FLUX_ALERTS}/Provider", NOTIFY_SECRET, settings, namespace=names.flux, spec=provider),
        manifest(f"{FLUX_ALERTS}/Alert", "sweep-batches", settings, namespace=names.flux, spec=batches),
        manifest(f"{FLUX_ALERTS}/Alert", "sweep-results", settings, namespace=names.flux, spec=results),
    ]


def _flux_statuses(settings: Settings, source: GitSource) -> list[Manifest]:
    """Return the Provider and the Alert of commit statuses: whether the cluster has applied each commit."""
    if not settings.monitoring.commit_status:
        return []
    names = Names.of(settings)
    kind = source.server_kind(STATUS_PROVIDERS)
    form = "gitea" if kind is None else STATUS_PROVIDERS[kind]
    provider = {"type": form, "address": source.url, "secretRef": {"name": STATUS_SECRET}}
    alert = {
        "providerRef": {"name": STATUS_SECRET},
        "eventSeverity": "info",
        "eventSources": [{"kind": "Kustomization", "name": "*"}],
    }
    return [
        manifest(f"{FLUX_ALERTS}/Provider", STATUS_SECRET, settings, namespace=names.flux, spec=provider),
        manifest(f"{FLUX_ALERTS}/Alert", STATUS_SECRET, settings, namespace=names.flux, spec=alert),
    ]
