"""Names and labels of Kubernetes objects in the settings."""

from collections.abc import Iterator

from sweepledger.model.forms import DNS_LABEL
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.structs.kubernetes import (
    APPLIER_ACCOUNT,
    CODE_CONTAINER,
    COLLECTOR_ACCOUNT,
    DOMAIN,
    EXPIRY_ACCOUNT,
    GIT_READ_SECRET,
    GIT_WRITE_SECRET,
    ROOT_ACCOUNT,
    STORE_CONTAINER,
    SYNC_ACCOUNT,
    TRIAL_ACCOUNT,
)
from sweepledger.structs.names import MAX_LABEL_LENGTH, PLATFORM_SUFFIX
from sweepledger.structs.settings import PEERS_EGRESS, Controller

SYSTEM_PRIORITY = "system-"
"""Kubernetes keeps names of priority classes that begin so to itself."""

RESERVED_ACCOUNTS = frozenset(
    {"default", APPLIER_ACCOUNT, COLLECTOR_ACCOUNT, EXPIRY_ACCOUNT, ROOT_ACCOUNT, SYNC_ACCOUNT}
)

COLLECTOR = "-collector"
NAMES_OF_PLATFORMS = (COLLECTOR, "-flux", PLATFORM_SUFFIX)
"""What names of namespaces and projects of a platform end in after the namespace of its trials."""
CONTROLLER_NAMESPACES = frozenset({"argocd", "flux-system", "kueue-system"})
LONGEST_NAMESPACE = MAX_LABEL_LENGTH - len(COLLECTOR)
LONGEST_EGRESS = MAX_LABEL_LENGTH - len("egress-")
"""The label of a pod contains this name."""


OWN_CONTAINERS = frozenset({CODE_CONTAINER, STORE_CONTAINER, "trial", "pytorch", "tensorflow"})


def sidecars(draft: Draft) -> Iterator[Problem]:
    """A sidecar is not called like a container of a trial."""
    for name in draft.names("sidecars"):
        if name in OWN_CONTAINERS:
            message = f"must be another name: a trial's own container has it, got {safe_repr(name)}"
            yield draft.problem(("sidecars", name), message, code="cluster-name", at_key=True)


def manifests(draft: Draft) -> Iterator[Problem]:
    """What applies batches needs their manifests."""
    controller = draft.get("controller", kind=str)
    if draft.get("manifests", kind=bool) is False and controller not in {None, Controller.NONE}:
        message = f"must be true if controller is {safe_repr(controller)}, got false"
        yield draft.problem(
            ("manifests",), message, code="no-manifests", hint="delete the key: true is the default"
        )


def own_secrets(draft: Draft) -> Iterator[Problem]:
    """No store and no trial gets the credentials by which the platform reads and writes git."""
    places: list[DocumentPath] = [
        ("results", "sync", name, "secret") for name in draft.names("results", "sync")
    ]
    places += [("secrets", name, "secret") for name in draft.names("secrets")]
    places += [("results", "bucket", key) for key in ("secret", "seals")]
    for place in places:
        name = draft.get(*place, kind=str)
        if name in {GIT_READ_SECRET, GIT_WRITE_SECRET}:
            message = f"must be another Secret: this one has a credential for git, got {safe_repr(name)}"
            yield draft.problem(place, message, code="cluster-name", hint="create one of its own")


def priority_classes(draft: Draft) -> Iterator[Problem]:
    """No pod has a priority of the cluster's own: it would displace what nodes and the cluster need to work."""
    places = [("priority_class",), ("collector", "priority_class")]
    places += [("pools", name, "pod", "priority_class") for name in draft.names("pools")]
    for place in places:
        name = draft.get(*place, kind=str)
        if name is not None and name.startswith(SYSTEM_PRIORITY):
            message = (
                f"must be a class of your own: {SYSTEM_PRIORITY}… is the cluster's, got {safe_repr(name)}"
            )
            yield draft.problem(place, message, code="cluster-name", hint="for example batch-low")


def service_accounts(draft: Draft) -> Iterator[Problem]:
    """A pool's account is none that has other uses: an identity is given to an account on purpose."""
    for name in draft.names("pools"):
        place = ("pools", name, "pod", "service_account")
        account = draft.get(*place, kind=str)
        if account in RESERVED_ACCOUNTS:
            message = f"must be an account of its own, got {safe_repr(account)}"
            hint = f"name another, or remove it: trials then have {TRIAL_ACCOUNT!r}, which has no rights"
            yield draft.problem(place, message, code="cluster-name", hint=hint)


def namespace(draft: Draft) -> Iterator[Problem]:
    """Trials run untrusted code, so their namespace is not the cluster's, a controller's or of another platform."""
    name = draft.get("namespace", kind=str)
    if name is None or not DNS_LABEL.fullmatch(name):
        return
    if name == "default" or name.startswith("kube-"):
        message = f"must be a separate namespace, not 'default' or 'kube-…', got {safe_repr(name)}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint="for example sweeps")
    elif name in {*CONTROLLER_NAMESPACES, draft.get("argocd", "namespace", kind=str)}:
        message = f"must be a separate namespace, not that of a controller, got {safe_repr(name)}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint="for example sweeps")
    elif name.endswith(NAMES_OF_PLATFORMS):
        ends = ", ".join(NAMES_OF_PLATFORMS)
        message = (
            f"must not end in {ends}: names of another platform would be the same, got {safe_repr(name)}"
        )
        yield draft.problem(("namespace",), message, code="cluster-name", hint="for example vision-sweeps")
    elif len(name) > LONGEST_NAMESPACE:
        message = f"must have at most {LONGEST_NAMESPACE} characters, got {len(name)}"
        hint = f"the collector's namespace is this one and {COLLECTOR!r}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint=hint)


def egress_names(draft: Draft) -> Iterator[Problem]:
    """The name of an egress fits in a label and is not reserved."""
    for name in draft.names("egress"):
        if name == PEERS_EGRESS:
            message = f"must be another name: pods of distributed trials use this one, got {safe_repr(name)}"
            yield draft.problem(("egress", name), message, code="cluster-name", at_key=True)
        elif DNS_LABEL.fullmatch(name) and len(name) > LONGEST_EGRESS:
            message = f"must have at most {LONGEST_EGRESS} characters, got {len(name)}"
            yield draft.problem(("egress", name), message, code="cluster-name", at_key=True)


RESERVED_DOMAINS = (
    DOMAIN,
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "argoproj.io",
    "fluxcd.io",
    "kubeflow.org",
)
"""Domains of labels that programs act on."""
RESERVED_LABELS = frozenset({"controller-uid", "job-name"})
"""Labels without a domain that Kubernetes writes on a Job's pods."""


def reserved_labels(draft: Draft) -> Iterator[Problem]:
    """Settings must not set labels that programs act on."""
    maps: tuple[DocumentPath, ...] = (("labels",), ("monitoring", "labels"))
    for place in maps:
        for key in draft.names(*place):
            if is_reserved_label(key, RESERVED_DOMAINS):
                message = f"must not be a label that a program acts on, got {safe_repr(key)}"
                hint = "use your own domain, for example example.org/team"
                yield draft.problem((*place, key), message, code="label-reserved", hint=hint, at_key=True)


def is_reserved_label(key: str, domains: tuple[str, ...]) -> bool:
    """Return whether a label's key is one that Kubernetes writes without a domain, or is in one of the domains."""
    prefix = key.rpartition("/")[0]
    return key in RESERVED_LABELS or any(f".{prefix}".endswith(f".{domain}") for domain in domains)
