"""What Argo CD is pointed at: two projects, one Application a batch by ApplicationSet, and the root."""

from collections.abc import Iterable

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import objects
from sweepledger.render.platform.notifications import batch_subscriptions, platform_subscriptions
from sweepledger.render.platform.objects import Names, labels, manifest, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import JOB, OWNER_ANNOTATION, QUEUE_LABEL, Kind
from sweepledger.structs.names import LOCK_FILE, MAX_LABEL_LENGTH, PLACEHOLDER_DIGEST
from sweepledger.structs.settings import Settings

GROUP = "argoproj.io/v1alpha1"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
REQUEUE_SECONDS = 30

BATCH_FOLDERS: tuple[dict[str, object], ...] = (
    {"path": f"overlays/active/[a-z]*-b[1-9]*-{'[0-9a-f]' * len(PLACEHOLDER_DIGEST)}"},
    {"path": r"overlays/active/*[^a-z0-9\-]*", "exclude": True},
    {"path": f"overlays/active/{'?' * MAX_LABEL_LENGTH}?*", "exclude": True},
)
"""A folder that can give no Application its name would keep the ApplicationSet from deleting any."""
RETRY = {"limit": 10, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "1m"}}
"""Eight minutes in all: until the last attempt no Application is deleted, not even one that was cancelled."""

PLATFORM_CLUSTER_KINDS = (
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
)
PLATFORM_KINDS = (
    ("", "LimitRange"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("", "ServiceAccount"),
    ("batch", "CronJob"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
)
"""Beware of adding one of `argoproj.io`: whoever may write a project by a merge rules all of Argo CD."""

HOST_KIND = ("cilium.io", "CiliumNetworkPolicy")


def _platform_kinds(settings: Settings) -> tuple[tuple[str, str], ...]:
    has_hosts = any(egress.hosts for egress in settings.egress.values())
    return (*PLATFORM_KINDS, *([HOST_KIND] if has_hosts else []))


def _selecting(settings: Settings, folders: Iterable[dict[str, object]]) -> Manifest:
    """Return the part of the generator that lists batches: folders, or locks where each names its cluster."""
    if settings.cluster is None:
        return {"directories": [dict(one) for one in folders]}
    return {"files": [{**one, "path": f"{one['path']}/{LOCK_FILE}"} for one in folders]}


def projects(settings: Settings, source: GitSource) -> list[Manifest]:
    """Bound what batches may be, and what the platform may be."""
    names = Names.of(settings)
    batches = {
        "description": "Batches of hyperparameter sweeps: nothing but Jobs and what they read.",
        "sourceRepos": [source.url],
        "destinations": [{**settings.argocd.destination, "namespace": names.trials}],
        "clusterResourceWhitelist": [],
        "namespaceResourceWhitelist": [
            {"group": kind.group, "kind": kind.kind} for kind in objects.batch_kinds(source)
        ],
    }
    places = (names.trials, names.collector)
    platform = {
        "description": "The platform that sweeps run on, owned by the platform team.",
        "sourceRepos": [source.url],
        "destinations": [{**settings.argocd.destination, "namespace": place} for place in places],
        "clusterResourceWhitelist": _kinds(PLATFORM_CLUSTER_KINDS),
        "namespaceResourceWhitelist": _kinds(_platform_kinds(settings)),
    }
    return [
        manifest(
            f"{GROUP}/AppProject", names.project, settings, namespace=settings.argocd.namespace, spec=batches
        ),
        manifest(
            f"{GROUP}/AppProject",
            names.platform_project,
            settings,
            namespace=settings.argocd.namespace,
            spec=platform,
        ),
    ]


def application_set(settings: Settings, source: GitSource) -> Manifest:
    """Return the ApplicationSet with one Application per folder of `overlays/active`."""
    listed = {
        "repoURL": source.url,
        "revision": source.revision,
        "requeueAfterSeconds": REQUEUE_SECONDS,
        **_selecting(settings, BATCH_FOLDERS),
    }
    selector = (
        {} if settings.cluster is None else {"selector": {"matchLabels": {"cluster": settings.cluster}}}
    )
    return manifest(
        f"{GROUP}/ApplicationSet",
        Names.of(settings).project,
        settings,
        namespace=settings.argocd.namespace,
        spec={
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"git": listed, **selector}],
            # An edit of the template reaches new batches only: no running one is ever applied anew.
            "syncPolicy": {"applicationsSync": "create-delete", "preserveResourcesOnDeletion": False},
            "template": {
                "metadata": {
                    "name": "{{ .path.basename }}",
                    "labels": labels(settings),
                    # Bases are frozen, so that only the batch's own folder can change what it renders to.
                    "annotations": {
                        "argocd.argoproj.io/manifest-generate-paths": ".",
                        OWNER_ANNOTATION: source.url,
                        **batch_subscriptions(settings),
                    },
                    "finalizers": [FINALIZER],
                },
                "spec": _application(settings, source),
            },
        },
    )


def _application(settings: Settings, source: GitSource) -> Manifest:
    names = Names.of(settings)
    return {
        "project": names.project,
        "source": {
            "repoURL": source.url,
            "targetRevision": source.revision,
            "path": "{{ .path.path }}",
        },
        "destination": {**settings.argocd.destination, "namespace": names.trials},
        "revisionHistoryLimit": 2,
        "ignoreDifferences": [
            _ignored(JOB, ("spec", "parallelism")),
            *(_ignored(kind) for kind in objects.custom_kinds(source) if kind.policy),
        ],
        "syncPolicy": {
            # A Job deleted by hand stays deleted: made anew it would run again.
            "automated": {"prune": True, "selfHeal": False},
            "syncOptions": [
                "ServerSideApply=true",
                "RespectIgnoreDifferences=true",
                "CreateNamespace=false",
                # With server-side apply, the API server itself refuses unknown fields; asking it for its schema
                # before each object cost Argo CD a third of its time.
                "Validate=false",
            ],
            "retry": RETRY,
        },
    }


def root(settings: Settings, source: GitSource) -> Manifest:
    """Return the Application of the platform, which does not prune.

    These files themselves it does not apply: a person does, who may write projects anyway.
    """
    names = Names.of(settings)
    application = manifest(
        f"{GROUP}/Application",
        names.platform_project,
        settings,
        namespace=settings.argocd.namespace,
        spec={
            "project": names.platform_project,
            "source": {
                "repoURL": source.url,
                "targetRevision": source.revision,
                "path": f"{platform_folder(settings.cluster)}/platform",
            },
            "destination": {**settings.argocd.destination, "namespace": names.trials},
            "revisionHistoryLimit": 2,
            "syncPolicy": {
                "automated": {"prune": False, "selfHeal": True},
                "syncOptions": ["ServerSideApply=true", "CreateNamespace=false"],
            },
        },
    )
    if subscriptions := platform_subscriptions(settings):
        application["metadata"]["annotations"] = subscriptions
    return application


def _ignored(kind: Kind, *others: tuple[str, ...]) -> Manifest:
    """Leave alone where a queue writes into an object that git describes; of the others git says how they run."""
    paths = ((*kind.policy, "suspend"), *others)
    queued = f'select(.metadata.labels["{QUEUE_LABEL}"] != null)'
    expressions = [f"{queued} | .{'.'.join(path)}" for path in paths]
    return {"group": kind.group, "kind": kind.kind, "jqPathExpressions": expressions}


def _kinds(listed: tuple[tuple[str, str], ...]) -> list[Manifest]:
    return [{"group": group, "kind": kind} for group, kind in listed]
