"""Service accounts and what each may do; a trial's may do nothing."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import objects
from sweepledger.render.platform.objects import Names, manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import (
    APPLIER_ACCOUNT,
    COLLECTOR_ACCOUNT,
    COLLECTOR_READS,
    EXPIRY_ACCOUNT,
    ROOT_ACCOUNT,
    SYNC_ACCOUNT,
    TRIAL_ACCOUNT,
)
from sweepledger.structs.settings import ResultsSettings

RBAC = "rbac.authorization.k8s.io"
READ = ["get", "list"]
LEASED: Manifest = {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "resourceNames": [COLLECTOR_ACCOUNT],
    "verbs": ["get", "update"],
}
APPLY = ["get", "list", "watch", "create", "update", "patch", "delete"]


def trial(names: Names, results: ResultsSettings) -> list[Manifest]:
    """Return the service account of trials, without token and rights."""
    bucket = results.bucket
    identity = {} if bucket is None else bucket.identity
    return [_account(TRIAL_ACCOUNT, names.trials, names, identity)]


def expiry(names: Names, results: ResultsSettings) -> list[Manifest]:
    """Return the service account of the job that deletes old results, if there is one, without token and rights."""
    if results.keep_days is None:
        return []
    bucket = results.bucket
    identity = {} if bucket is None else bucket.expiry_identity
    return [_account(EXPIRY_ACCOUNT, names.trials, names, identity)]


def sync(names: Names, results: ResultsSettings) -> list[Manifest]:
    """Return the service account of the job that writes to stores, if there is one, without token and rights."""
    return [_account(SYNC_ACCOUNT, names.collector, names)] if results.sync else []


def collector(names: Names, results: ResultsSettings, source: GitSource) -> list[Manifest]:
    """Return the rights of the collector: to read Jobs and pods in the trials' namespace, and to update its Lease.

    Where records are in pods, it may also patch these; an admission policy leaves of that the removal of a finalizer.
    """
    subject = (COLLECTOR_ACCOUNT, names.collector)
    read = [
        _rule("batch", ["jobs"], READ),
        _rule("", ["pods"], [*READ, "patch"] if results.store.holds_pods else READ),
        *(_rule(kind.group, [kind.plural], READ) for kind in objects.custom_kinds(source)),
    ]
    bucket = results.bucket
    identity = {} if bucket is None else bucket.collector_identity
    return [
        _account(COLLECTOR_ACCOUNT, names.collector, names, identity),
        *_granted(COLLECTOR_READS, names.trials, read, subject, names),
        *_granted("sweep-collector-takes", names.collector, [LEASED], subject, names),
    ]


def lease(names: Names) -> Manifest:
    """Return the Lease of the collector, which can update but not create it.

    A person applies it, as Argo CD leaves Leases out.
    """
    return manifest("coordination.k8s.io/v1/Lease", COLLECTOR_ACCOUNT, names, namespace=names.collector)


def flux(names: Names, source: GitSource) -> list[Manifest]:
    """Return the rights of Flux: to apply the kinds that batches consist of, and the batches' Kustomizations."""
    apply = [_rule(kind.group, [kind.plural], APPLY) for kind in objects.batch_kinds(source)]
    made = [_rule("kustomize.toolkit.fluxcd.io", ["kustomizations"], APPLY)]
    return [
        _account(APPLIER_ACCOUNT, names.flux, names),
        *_granted("sweep-applier", names.trials, apply, (APPLIER_ACCOUNT, names.flux), names),
        _account(ROOT_ACCOUNT, names.flux, names),
        *_granted("sweep-root", names.flux, made, (ROOT_ACCOUNT, names.flux), names),
    ]


def _account(
    name: str, namespace: str, names: Names, identity: Mapping[str, str] = MappingProxyType({})
) -> Manifest:
    """Return a service account without a token for the API server; a cloud may give it an identity by annotations."""
    made = manifest("v1/ServiceAccount", name, names, namespace=namespace, automountServiceAccountToken=False)
    if identity:
        made["metadata"]["annotations"] = dict(sorted(identity.items()))
    return made


def _rule(group: str, resources: Iterable[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _granted(
    name: str, namespace: str, rules: list[Manifest], subject: tuple[str, str], names: Names
) -> list[Manifest]:
    account, home = subject
    return [
        manifest(f"{RBAC}/v1/Role", name, names, namespace=namespace, rules=rules),
        manifest(
            f"{RBAC}/v1/RoleBinding",
            name,
            names,
            namespace=namespace,
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": home}],
        ),
    ]
