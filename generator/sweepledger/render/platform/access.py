"""Service accounts and what each may do; a trial's may do nothing."""

from collections.abc import Iterable

from generator.render.platform import kinds
from generator.render.platform.names import (
    APPLIER_ACCOUNT,
    COLLECTOR_ACCOUNT,
    EXPIRY_ACCOUNT,
    ROOT_ACCOUNT,
    Manifest,
    Names,
    manifest,
)
from generator.render.platform.source import Source
from generator.structs.labels import TRIAL_ACCOUNT
from generator.structs.settings import Settings

RBAC = "rbac.authorization.k8s.io"
READ = ["get", "list"]
LEASED: Manifest = {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "resourceNames": [COLLECTOR_ACCOUNT],
    "verbs": ["get", "update"],
}
APPLY = ["get", "list", "watch", "create", "update", "patch", "delete"]


def trial(settings: Settings) -> list[Manifest]:
    """Make the account of every trial: no token, no rights."""
    return [_account(TRIAL_ACCOUNT, Names.of(settings).trials, settings)]


def expiry(settings: Settings) -> list[Manifest]:
    """Make the account of what deletes old results, if anything does: no token, no rights."""
    if settings.results.keep_days is None:
        return []
    return [_account(EXPIRY_ACCOUNT, Names.of(settings).trials, settings)]


def collector(settings: Settings, source: Source) -> list[Manifest]:
    """Let the collector read Jobs and their pods in the trials' namespace, and take its Lease; no more."""
    names = Names.of(settings)
    subject = (COLLECTOR_ACCOUNT, names.collector)
    read = [
        _rule("batch", ["jobs"], READ),
        _rule("", ["pods"], READ),
        *(_rule(kind.group, [kind.plural], READ) for kind in kinds.chosen(source)),
    ]
    return [
        _account(COLLECTOR_ACCOUNT, names.collector, settings),
        *_granted("sweep-collector-reads", names.trials, read, subject, settings),
        *_granted("sweep-collector-takes", names.collector, [LEASED], subject, settings),
    ]


def lease(settings: Settings) -> Manifest:
    """Make the Lease of the collector, which only ever changes it.

    A person applies it, as Argo CD leaves Leases out.
    """
    place = Names.of(settings).collector
    return manifest("coordination.k8s.io/v1/Lease", COLLECTOR_ACCOUNT, settings, namespace=place)


def flux(settings: Settings, source: Source) -> list[Manifest]:
    """Let Flux apply exactly the kinds that batches consist of, and the batches' Kustomizations."""
    names = Names.of(settings)
    apply = [_rule(kind.group, [kind.plural], APPLY) for kind in kinds.rendered(source)]
    made = [_rule("kustomize.toolkit.fluxcd.io", ["kustomizations"], APPLY)]
    return [
        _account(APPLIER_ACCOUNT, names.flux, settings),
        *_granted("sweep-applier", names.trials, apply, (APPLIER_ACCOUNT, names.flux), settings),
        _account(ROOT_ACCOUNT, names.flux, settings),
        *_granted("sweep-root", names.flux, made, (ROOT_ACCOUNT, names.flux), settings),
    ]


def _account(name: str, namespace: str, settings: Settings) -> Manifest:
    return manifest(
        "v1/ServiceAccount", name, settings, namespace=namespace, automountServiceAccountToken=False
    )


def _rule(group: str, resources: Iterable[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _granted(
    name: str, namespace: str, rules: list[Manifest], subject: tuple[str, str], settings: Settings
) -> list[Manifest]:
    account, home = subject
    return [
        manifest(f"{RBAC}/v1/Role", name, settings, namespace=namespace, rules=rules),
        manifest(
            f"{RBAC}/v1/RoleBinding",
            name,
            settings,
            namespace=namespace,
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": home}],
        ),
    ]
