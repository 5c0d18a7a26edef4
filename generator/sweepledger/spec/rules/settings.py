"""The settings: names of objects, datasets and stores, pools, budgets, and several clusters."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import product
from typing import NamedTuple
from urllib.parse import urlsplit

from sweepledger.controllers import GITOPS
from sweepledger.controllers.platform_names import REMOTE
from sweepledger.model.forms import DNS_LABEL
from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs import kubernetes, quantities
from sweepledger.structs.names import MAX_LABEL_LENGTH, PLATFORM_SUFFIX
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    COLLECTOR_IMAGE,
    GIT_EGRESS,
    PEERS_EGRESS,
    Cloud,
    Controller,
    ResultsMode,
    ResultsSettings,
    ResultsStore,
)

SYSTEM_PRIORITY = "system-"
"""Kubernetes keeps names of priority classes that begin so to itself."""
RESERVED_ACCOUNTS = frozenset(
    {"default", kubernetes.APPLIER_ACCOUNT, kubernetes.COLLECTOR_ACCOUNT, kubernetes.EXPIRY_ACCOUNT}
    | {kubernetes.ROOT_ACCOUNT, kubernetes.SYNC_ACCOUNT}
)
OWN_CONTAINERS = frozenset(
    {kubernetes.CODE_CONTAINER, kubernetes.STORE_CONTAINER, "trial", "pytorch", "tensorflow"}
)
GIT_SECRETS = frozenset(
    {kubernetes.GIT_READ_SECRET, kubernetes.GIT_SIGNING_SECRET, kubernetes.GIT_WRITE_SECRET}
)
COLLECTOR = "-collector"
NAMES_OF_PLATFORMS = (
    *(COLLECTOR, PLATFORM_SUFFIX),
    *(own.namespace_suffix for own in GITOPS.values() if own.namespace_suffix is not None),
)
"""What names of namespaces and projects of a platform end in after the namespace of its trials."""
CONTROLLER_NAMESPACES = frozenset({"kueue-system"}).union(*(own.namespaces for own in GITOPS.values()))
CONTROLLER_KEYS = tuple(own.settings_key for own in GITOPS.values() if own.settings_key is not None)
LONGEST_NAMESPACE = MAX_LABEL_LENGTH - len(COLLECTOR)
LONGEST_EGRESS = MAX_LABEL_LENGTH - len("egress-")
"""The label of a pod contains this name."""
CLUSTERS_FOLDERS = frozenset({"extra", "monitoring", "optional", "platform", REMOTE, *GITOPS})
"""Folders of `clusters/`, in which each cluster has one of its own name."""


class NameRule(NamedTuple):
    """Names that must be others: texts, or the keys of a mapping, where the path ends in `*`."""

    paths: tuple[tuple[str, ...], ...]
    is_reserved: Callable[[str], bool]
    message: str
    hint: str | None = None


NAME_RULES = (
    NameRule(
        (("sidecars", "*"),),
        OWN_CONTAINERS.__contains__,
        "must be another name: a trial's own container has it",
    ),
    # No store and no trial gets the credentials by which the platform reads and writes git.
    NameRule(
        (
            *(("results", "sync", "*", "secret"), ("secrets", "*", "secret")),
            *(("results", "bucket", "secret"), ("results", "bucket", "seals")),
        ),
        GIT_SECRETS.__contains__,
        "must be another Secret: this one has a credential for git",
        "create one of its own",
    ),
    # A pod with a priority of the cluster's own would displace what nodes and the cluster need to work.
    NameRule(
        (("priority_class",), ("collector", "priority_class"), ("pools", "*", "pod", "priority_class")),
        lambda name: name.startswith(SYSTEM_PRIORITY),
        f"must be a class of your own: {SYSTEM_PRIORITY}… is the cluster's",
        "for example batch-low",
    ),
    # An identity is given to an account on purpose.
    NameRule(
        (("pools", "*", "pod", "service_account"),),
        RESERVED_ACCOUNTS.__contains__,
        "must be an account of its own",
        f"name another, or remove it: trials then have {kubernetes.TRIAL_ACCOUNT!r}, which has no rights",
    ),
    # Trials run untrusted code.
    NameRule(
        (("namespace",),),
        lambda name: name == "default" or name.startswith("kube-"),
        "must be a separate namespace, not 'default' or 'kube-…'",
        "for example sweeps",
    ),
    NameRule(
        (("namespace",),),
        lambda name: name.endswith(NAMES_OF_PLATFORMS),
        f"must not end in {', '.join(NAMES_OF_PLATFORMS)}: names of another platform would be the same",
        "for example vision-sweeps",
    ),
    NameRule(
        (("egress", "*"),),
        PEERS_EGRESS.__eq__,
        "must be another name: pods of distributed trials use this one",
    ),
)


def names(draft: Draft) -> Iterator[Problem]:
    """Names are none that have another use."""
    for rule in NAME_RULES:
        for place in (place for path in rule.paths for place in draft.each(*path)):
            at_key = rule.paths[0][-1] == "*"
            name = place[-1] if at_key else draft.get(*place, kind=str)
            if isinstance(name, str) and DNS_LABEL.fullmatch(name) and rule.is_reserved(name):
                message = f"{rule.message}, got {safe_repr(name)}"
                yield draft.problem(place, message, code="cluster-name", hint=rule.hint, at_key=at_key)


def namespace(draft: Draft) -> Iterator[Problem]:
    """The namespace of trials is not a controller's, and short enough for that of the collector."""
    name = draft.get("namespace", kind=str)
    if name is None or not DNS_LABEL.fullmatch(name):
        return
    chosen = {draft.get(key, "namespace", kind=str) for key in CONTROLLER_KEYS}
    if name in CONTROLLER_NAMESPACES | chosen:
        message = f"must be a separate namespace, not that of a controller, got {safe_repr(name)}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint="for example sweeps")
    elif len(name) > LONGEST_NAMESPACE and not name.endswith(NAMES_OF_PLATFORMS):
        message = f"must have at most {LONGEST_NAMESPACE} characters, got {len(name)}"
        hint = f"the collector's namespace is this one and {COLLECTOR!r}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint=hint)


def egress_names(draft: Draft) -> Iterator[Problem]:
    """The name of an egress fits in a label."""
    for name in draft.names("egress"):
        if DNS_LABEL.fullmatch(name) and len(name) > LONGEST_EGRESS:
            message = f"must have at most {LONGEST_EGRESS} characters, got {len(name)}"
            yield draft.problem(("egress", name), message, code="cluster-name", at_key=True)


RESERVED_DOMAINS = (
    *(kubernetes.DOMAIN, "kubernetes.io", "k8s.io", "x-k8s.io"),
    *("kubeflow.org", *(own.domain for own in GITOPS.values())),
)
"""Domains of labels that programs act on."""
OWN_DOMAINS = (kubernetes.DOMAIN, "batch.kubernetes.io")
"""Domains of annotations by which trials and their attempts are counted."""
RESERVED_LABELS = frozenset({"controller-uid", "job-name"})
"""Labels without a domain that Kubernetes writes on a Job's pods."""


def reserved_labels(draft: Draft) -> Iterator[Problem]:
    """Settings must not set labels that programs act on."""
    own, hint = ("labels",), "use your own domain, for example example.org/team"
    for path, domains, thing, way_out in (
        (own, RESERVED_DOMAINS, "label", hint),
        (("monitoring", *own), RESERVED_DOMAINS, "label", hint),
        (("pools", "*", "pod", *own), RESERVED_DOMAINS, "key", None),
        (("pools", "*", "pod", "annotations"), OWN_DOMAINS, "key", None),
    ):
        for place in draft.each(*path, "*"):
            key = str(place[-1])
            prefix = key.rpartition("/")[0]
            if key in RESERVED_LABELS or any(f".{prefix}".endswith(f".{domain}") for domain in domains):
                message = f"must not be a {thing} that a program acts on, got {safe_repr(key)}"
                yield draft.problem(place, message, code="label-reserved", hint=way_out, at_key=True)


class KeyRule(NamedTuple):
    """A key that is wrong, or missing, beside others of its mapping."""

    mapping: tuple[str, ...]
    key: str
    is_wrong: Callable[[AbstractSet[str]], bool]
    """Of the keys that are written."""
    message: str
    hint: str | None = None
    code: str = "missing-key"


def _stray(
    mapping: tuple[str, ...], keys: str, needs: str, message: str, *, code: str, hint: str | None = None
) -> Iterator[KeyRule]:
    """Yield the rules of keys that need another one, or exclude it: `!key`."""
    other = needs.removeprefix("!")
    for key in keys.split():

        def is_wrong(written: AbstractSet[str], key: str = key) -> bool:
            return key in written and (other in written) is needs.startswith("!")

        yield KeyRule(mapping, key, is_wrong, message, hint, code)


DATASET, POOL, BUCKET = ("datasets", "*"), ("pools", "*"), ("results", "bucket")
KEY_RULES = (
    KeyRule(
        DATASET,
        "digest",
        {"digest", "version"}.isdisjoint,
        "must be given unless version is",
        "`sweep cluster data PATH` computes it",
    ),
    *_stray(
        *(DATASET, "version", "!digest", "must not be given with digest"),
        hint="the digest is more exact: delete the version",
        code="data-digest",
    ),
    KeyRule(
        DATASET,
        "claim",
        {"bucket", "claim"}.isdisjoint,
        "must be given unless bucket is",
        "the PersistentVolumeClaim with the data; or bucket and size, with results.store: bucket",
    ),
    *_stray(
        *(DATASET, "size", "bucket", "must not be given without bucket"),
        hint="a claim has its size: delete the key",
        code="data-source",
    ),
    # Each copy is verified by a digest and bounded by a size.
    *_stray(
        *(DATASET, "claim path nfs version", "!bucket", "must not be given with bucket"),
        hint="a copy has no volume, and a digest: delete the key",
        code="data-source",
    ),
    KeyRule(
        DATASET,
        "size",
        lambda written: "bucket" in written and "size" not in written,
        "must be given with bucket",
        "a little more than `du --human-readable FOLDER` says",
    ),
    *_stray(
        *(BUCKET, "identity collector_identity expiry_identity", "!secret", "must not be given with secret"),
        hint="a client has one credential: delete one of them",
        code="bucket",
    ),
    *_stray(
        *(POOL, "min_parallelism flavor cohort topology provisioning", "queue"),
        "needs a queue, which the pool does not have",
        code="pool-queue",
    ),
    *_stray(
        *((*POOL, "topology"), "prefer", "!require"),
        "must not be given with require: Kueue takes one of them",
        code="pool-queue",
    ),
    KeyRule(
        ("budgets", "*"), "gpu_hours", {"gpu_hours", "money"}.isdisjoint, "must be given unless money is"
    ),
)


def keys_together(draft: Draft) -> Iterator[Problem]:
    """Keys of a mapping fit together."""
    for rule in KEY_RULES:
        for place in draft.each(*rule.mapping):
            mapping = draft.get(*place, kind=dict)
            if mapping is not None and rule.is_wrong(mapping.keys()):
                yield draft.problem(
                    (*place, rule.key), rule.message, code=rule.code, hint=rule.hint, at_key=True
                )


def manifests(draft: Draft) -> Iterator[Problem]:
    """What applies batches needs their manifests."""
    controller = draft.get("controller", kind=str)
    if draft.get("manifests", kind=bool) is False and controller not in {None, Controller.NONE}:
        message = f"must be true if controller is {safe_repr(controller)}, got false"
        hint = "delete the key: true is the default"
        yield draft.problem(("manifests",), message, code="no-manifests", hint=hint)


def _store(draft: Draft) -> str:
    return draft.get("results", "store", kind=str) or ResultsStore.VOLUME


def copied_datasets(draft: Draft) -> Iterator[Problem]:
    """The sidecar of a bucket copies a dataset from it."""
    for place in draft.each(*DATASET, "bucket"):
        if draft.has(*place) and _store(draft) != ResultsStore.BUCKET:
            message = f"must not be given with results.store: {_store(draft)}"
            hint = "only the sidecar of a bucket copies data: choose that store, or a claim"
            yield draft.problem(place, message, code="data-source", hint=hint, at_key=True)


STORE_SCHEMES = {"mlflow": ("https", "http"), "optuna": ("postgresql", "mysql")}
"""Schemes of addresses; Optuna's may name a driver after a plus sign."""
MAX_ADDRESS = 2000


def stores(draft: Draft) -> Iterator[Problem]:
    """A store of results has the address of a server, without credentials."""
    for place in draft.each("results", "sync", "*", "to"):
        text, schemes = draft.get(*place, kind=str), STORE_SCHEMES.get(str(place[2]), ())
        if text is not None and not _is_server(text, schemes):
            listed = " or ".join(f"{scheme}://" for scheme in schemes)
            message = f"must begin with {listed} and a host without credentials, got {safe_repr(text)}"
            hint = "credentials are variables of `secret`"
            yield draft.problem(place, message, code="store-address", hint=hint)


def _is_server(text: str, schemes: tuple[str, ...]) -> bool:
    if len(text) > MAX_ADDRESS or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return False
    # A password may also be a part of the query.
    is_bare = "@" not in text and "password" not in parts.query
    return bool(host) and is_bare and parts.scheme.partition("+")[0] in schemes


STORE_KEYS = {
    ResultsStore.API: (
        ("claim", "checkpoints", "artifacts", "nfs", "keep", "progress", "bucket"),
        "the API server keeps records and no files; delete the key, or choose another store",
    ),
    ResultsStore.BUCKET: (
        ("claim", "checkpoints", "artifacts", "nfs", "progress"),
        "all files are objects of results.bucket; delete the key, or choose store: volume",
    ),
    ResultsStore.CLAIM: (
        ("nfs", "progress", "bucket"),
        "one node mounts the claim, and the collector none; delete the key, or choose store: volume",
    ),
    ResultsStore.VOLUME: (("bucket",), "choose store: bucket, or delete the key"),
}
"""Keys of `results` that mean nothing with a store, and why."""


def store_keys(draft: Draft) -> Iterator[Problem]:
    """A store has no keys of another: claims are of volumes, and without files nothing expires."""
    store = _store(draft)
    keys, hint = STORE_KEYS[ResultsStore(store)] if store in set(ResultsStore) else ((), "")
    for key in keys:
        if draft.has("results", key):
            message = f"must not be given with results.store: {store}, got {key}"
            yield draft.problem(("results", key), message, code="store-key", hint=hint, at_key=True)


def bucket_given(draft: Draft) -> Iterator[Problem]:
    """The store `bucket` has a bucket, and an image for the sidecar that moves files."""
    image = "a sidecar in its image moves the files of trials; images/collector of the project builds it"
    needed = ((BUCKET, "for example {url: s3://ml-sweeps/vision, …}"), (("images", COLLECTOR_IMAGE), image))
    for place, hint in needed if _store(draft) == ResultsStore.BUCKET else ():
        if not draft.has(*place):
            message = "must be given with results.store: bucket"
            yield draft.problem(place, message, code="missing-key", hint=hint, at_key=True)


def bucket_clouds(draft: Draft) -> Iterator[Problem]:
    """A bucket has only keys that its cloud has."""
    scheme = (draft.get(*BUCKET, "url", kind=str) or "").partition("://")[0]
    clouds = {"endpoint": (Cloud.S3, Cloud.AZURE), "region": (Cloud.S3,), "account": (Cloud.AZURE,)}
    for key, having in clouds.items():
        value = draft.get(*BUCKET, key, kind=str)
        if value is not None and scheme in {*Cloud} - {*having}:
            schemes = " or ".join(f"{cloud}://" for cloud in having)
            message = f"must not be given unless the address begins with {schemes}, got {safe_repr(value)}"
            yield draft.problem((*BUCKET, key), message, code="bucket", hint="delete the key", at_key=True)


def bucket_secrets(draft: Draft) -> Iterator[Problem]:
    """A bucket has no Secret that trials may mount."""
    mounted = {draft.get(*place, kind=str) for place in draft.each("secrets", "*", "secret")}
    mounted |= {draft.get("code", "secret", kind=str), None}
    for key in ("secret", "seals"):
        name = draft.get(*BUCKET, key, kind=str)
        if name is not None and name in mounted:
            message = f"must be a Secret of its own, which no trial mounts, got {safe_repr(name)}"
            yield draft.problem((*BUCKET, key), message, code="bucket", hint="create another one")
        mounted.add(name)


def collected_in_time(draft: Draft) -> Iterator[Problem]:
    """A Job must not be deleted before the collector has read its records."""
    ttl, every = draft.get("submit", "ttl", kind=str), draft.get("results", "every", kind=str)
    try:
        lives = None if ttl is None else quantities.seconds(ttl)
        minutes = ResultsSettings().every_minutes if every is None else quantities.minutes(every)
    except ValueError:
        return
    if lives is not None and lives <= minutes * quantities.TIME_UNITS["m"]:
        message = f"must be longer than results.every ({minutes}m), got {safe_repr(ttl)}"
        yield draft.problem(("submit", "ttl"), message, code="duration", hint="for example 7d")


MAX_FLAVOR_ITEMS = 8
"""Labels, and tolerations, of a ResourceFlavor (Kueue v1beta1)."""


def pool_nodes(draft: Draft) -> Iterator[Problem]:
    """A flavor says which nodes it has; one that the platform makes allows eight labels and tolerations."""
    for place in (place for key in ("selector", "tolerations") for place in draft.each(*POOL, key)):
        pool, written = place[:-1], draft.get(*place, kind=object)
        count = len(written) if isinstance(written, dict | list) else 0
        flavor = draft.get(*pool, "flavor", kind=str)
        if draft.has(*pool, "queue") and count > MAX_FLAVOR_ITEMS:
            message = f"must have at most {MAX_FLAVOR_ITEMS} entries if the pool has a queue, got {count}"
            yield draft.problem(place, message, code="pool-flavor", at_key=True)
        if flavor is not None and draft.has(*place):
            message = f"must not be given with flavor ({safe_repr(flavor)}), which has the nodes of the pool"
            yield draft.problem(place, message, code="pool-queue", at_key=True)


def partial_admission(draft: Draft) -> Iterator[Problem]:
    """Partial admission needs a controller that leaves alone what Kueue writes into a Job."""
    own = GITOPS.get(draft.get("controller", kind=str) or "")
    if own is None or not own.resets_parallelism:
        return
    for place in draft.each(*POOL, "min_parallelism"):
        if draft.has(*place):
            reason = "which would write the parallelism of a running Job back"
            message = f"needs another controller than {own.name}, {reason}"
            hint = "remove it: Kueue then admits all trials of a batch that may run at once, or none"
            yield draft.problem(place, message, code="pool-queue", hint=hint, at_key=True)


def shared_queues(draft: Draft) -> Iterator[Problem]:
    """A queue that the platform makes, which is that of a pool with max_nodes, has the quota of one pool."""
    pools: dict[str, str] = {}
    for name in draft.names("pools"):
        queue = draft.get("pools", name, "queue", kind=str)
        if queue is not None and draft.has("pools", name, "max_nodes"):
            other = pools.setdefault(queue, name)
            if other != name:
                message = f"must be the queue of one pool with max_nodes, got {safe_repr(queue)}, that of {other!r} too"
                hint = "name another queue; a cohort lets queues share their quotas"
                yield draft.problem(("pools", name, "queue"), message, code="pool-queue", hint=hint)


def topologies(draft: Draft) -> Iterator[Problem]:
    """Levels are labels of nodes, each once and hosts last, and a trial asks for one of them, once."""
    for place in draft.each(*POOL, "topology"):
        levels = [level for level in draft.get(*place, "levels", kind=list) or () if isinstance(level, str)]
        for index, level in enumerate(levels):
            at, hint = (*place, "levels", index), None
            if level in levels[:index]:
                message = f"must be given once, got {safe_repr(level)} again"
            elif level == kubernetes.HOSTNAME_LABEL and index + 1 < len(levels):
                after = safe_repr(levels[index + 1])
                message = f"must be the last level, got {safe_repr(level)} before {after}"
                hint = "order the levels from the largest domains to the smallest"
            else:
                continue
            yield draft.problem(at, message, code="pool-queue", hint=hint)
        for key in ("require", "prefer"):
            chosen = draft.get(*place, key, kind=str)
            if chosen is not None and levels and chosen not in levels:
                message = f"must be one of the levels, got {safe_repr(chosen)}"
                near = did_you_mean(chosen, levels)
                yield draft.problem((*place, key), message, code="pool-queue", hint=near)
        for at in draft.each(*map(str, place[:-1]), "pod", "annotations", "*") if draft.names(*place) else ():
            if str(at[-1]).startswith(kubernetes.POD_SET_ANNOTATIONS):
                message = f"must not be given with topology, which writes it, got {safe_repr(at[-1])}"
                hint = f"pools.{place[1]}.topology.require or prefer"
                yield draft.problem(at, message, code="pool-queue", hint=hint, at_key=True)


NODES = {"selector": dict, "gpu_type": str, "tolerations": list, "spot": bool}
"""The keys of a pool that say which nodes are its own, and the types of their values."""


def lenders(draft: Draft) -> Iterator[Problem]:
    """Queues of a cohort lend quota on the same nodes only; those of a flavor that exists, to other teams, too."""
    pools = [name for name in draft.names("pools") if not draft.has("pools", name, "flavor")]
    cohorts = {name: draft.get("pools", name, "cohort", kind=str) for name in pools}
    nodes = {
        name: [
            *(draft.get("pools", name, key, kind=kind) or None for key, kind in NODES.items()),
            draft.get("pools", name, "topology", "levels", kind=list),
        ]
        for name in pools
    }
    for name, cohort in cohorts.items():
        others = [other for other in cohorts if other != name and cohorts[other] == cohort]
        is_named = any(nodes[name][:2])
        if cohort is None or not others or (is_named and nodes[name] in [nodes[other] for other in others]):
            continue
        message = (
            "needs selector, gpu_type, tolerations, spot and topology.levels of another pool of the cohort"
        )
        hint = "queues lend quota of the same nodes, which selector or gpu_type name: make them equal, or remove cohort"
        yield draft.problem(("pools", name, "cohort"), message, code="pool-queue", hint=hint, at_key=True)


def pod_settings(draft: Draft) -> Iterator[Problem]:
    """The pods of a pool have the pool's GPU by the number of a spec, and tokens of an account that the pool names."""
    for pool in draft.each(*POOL):
        place = (*pool, "pod")
        gpu = draft.get(*pool, "gpu_resource", kind=str) or GPU_RESOURCE
        if draft.has(*place, "resources", gpu):
            message, hint = "must not be the pool's GPU, of which specs say the number", "run.resources.gpu"
            at = (*place, "resources", gpu)
            yield draft.problem(at, message, code="pool-pod", hint=hint, at_key=True)
        account = draft.get(*place, "service_account", kind=str) or kubernetes.TRIAL_ACCOUNT
        if draft.names(*place, "tokens") and account == kubernetes.TRIAL_ACCOUNT:
            message = f"needs a service account of the pool, got {safe_repr(account)}"
            hint = (
                "a service that checks tokens then knows the pool's trials by their account: service_account"
            )
            yield draft.problem((*place, "tokens"), message, code="pool-pod", hint=hint, at_key=True)


def claims(draft: Draft) -> Iterator[Problem]:
    """Claims of devices need a Kubernetes that has them, and no queue, which would not count them."""
    version = kubernetes.OLDEST_VERSION
    with suppress(ValueError):  # a text that is none has a problem of its own
        version = kubernetes.parse_version(draft.get("kubernetes", kind=str) or "")
    for place in draft.each(*POOL, "pod", "claims"):
        if draft.names(*place) and version < kubernetes.CLAIMS_VERSION:
            needed = kubernetes.format_version(kubernetes.CLAIMS_VERSION)
            message = f"needs Kubernetes {needed} or newer, got {kubernetes.format_version(version)}"
            hint = f'kubernetes: "{needed}", if every cluster has it'
            yield draft.problem(place, message, code="pool-pod", hint=hint, at_key=True)
        if draft.names(*place) and draft.has(*place[:2], "queue"):
            message = "must not be given with a queue: Kueue 0.15 does not count claimed devices"
            yield draft.problem(place, message, code="pool-pod", at_key=True)


def gpu_keys(draft: Draft) -> Iterator[Problem]:
    """Only pools with GPUs have keys of GPUs."""
    for place in draft.each(*POOL):
        node = draft.get(*place, "node", kind=dict)
        if node is None or (*place, "node", "gpu") in draft.broken or node.get("gpu"):
            continue
        for key in ("gpu_resource", "gpu_shares", "gpu_type"):
            if draft.has(*place, key):
                message, hint = "must be left out if nodes have no GPU", "or set their number: node.gpu"
                yield draft.problem((*place, key), message, code="pool-gpu", hint=hint, at_key=True)


FLEET = "fleet"
"""Code of the problems of several clusters."""


def cluster_names(draft: Draft) -> Iterator[Problem]:
    """A cluster's name is that of no folder of `clusters/`, and at least one cluster was not given up."""
    for name in draft.names("clusters"):
        other = name.removesuffix(PLATFORM_SUFFIX)
        if name in CLUSTERS_FOLDERS:
            reason = f"clusters/{name}/ is a folder of the platform"
        elif other != name and other in draft.names("clusters"):
            reason = f"the platform of {other!r} is called so"
        else:
            continue
        message = f"must be another name: {reason}, got {safe_repr(name)}"
        yield draft.problem(("clusters", name), message, code="cluster-name", at_key=True)
    if draft.has("clusters") and not _live(draft):
        message = "must have a cluster that was not given up, got none"
        yield draft.problem(("clusters",), message, code=FLEET, at_key=True)


def _live(draft: Draft) -> tuple[str, ...]:
    names = draft.names("clusters")
    return tuple(name for name in names if not draft.get("clusters", name, "lost", kind=bool))


def cluster_egress(draft: Draft) -> Iterator[Problem]:
    """The egress of a cluster is among that of the settings."""
    egress = (*draft.names("egress"), API_SERVER_EGRESS, GIT_EGRESS)
    for place in draft.each("clusters", "*", "egress", "*"):
        if place[-1] not in egress:
            message = f"must be one of the settings' egress, got {safe_repr(place[-1])}"
            near = did_you_mean(place[-1], egress)
            hint = f"{near}, or name its usual addresses by egress: the cluster's replace them"
            yield draft.problem(place, message, code=FLEET, hint=hint, at_key=True)


def pools_somewhere(draft: Draft) -> Iterator[Problem]:
    """Each pool is in a cluster, and the collector's in all of them."""
    having = {
        cluster: draft.get("clusters", cluster, "pools", kind=list) or list(draft.names("pools"))
        for cluster in _live(draft)
    }
    for name in draft.names("pools") if having else ():
        if not any(name in pools for pools in having.values()):
            message = f"must be a pool of at least one cluster, got {safe_repr(name)}"
            yield draft.problem(("pools", name), message, code=FLEET, at_key=True)
    own = draft.get("collector", "pool", kind=str)
    missing = ", ".join(sorted(cluster for cluster, pools in having.items() if own not in pools))
    if own in draft.names("pools") and missing:
        message = f"must be a pool of every cluster, got {safe_repr(own)}, which is not in {missing}"
        yield draft.problem(("collector", "pool"), message, code=FLEET)


def signed_commits(draft: Draft) -> Iterator[Problem]:
    """A controller verifies GnuPG signatures only, and a collector that pushes signs with SSH."""
    if draft.get("results", "mode", kind=str) == ResultsMode.BRANCH:
        return
    parents = ((), *(("clusters", name) for name in draft.names("clusters")))
    controllers = [own for own in GITOPS.values() if own.settings_key is not None]
    for parent, own in product(parents, controllers):
        place = (*parent, str(own.settings_key))
        if draft.has(*place, "signature_keys"):
            message = f"must not be given with results.mode push: {own.title} would not follow commits of the collector"
            hint = "protect the branch by rules of the git server"
            hint = hint if draft.has("clusters") else f"set results.mode to branch, or {hint}"
            yield draft.problem(
                (*place, "signature_keys"), message, code="wrong-value", hint=hint, at_key=True
            )


def fleet_settings(draft: Draft) -> Iterator[Problem]:
    """What several collectors would contend for, or a person does by hand, is not combined with `clusters`."""
    if not draft.has("clusters"):
        return
    controller = draft.get("controller", kind=str) or Controller.NONE
    if controller not in GITOPS:
        message = f"must be {' or '.join(GITOPS)} if there are clusters, got {safe_repr(str(controller))}"
        yield draft.problem(("controller",), message, code=FLEET, at_key=not draft.has("controller"))
    for key in filter(draft.has, CONTROLLER_KEYS):
        message = "must be set for each cluster if there are clusters"
        yield draft.problem((key,), message, code=FLEET, hint="move it below clusters.NAME", at_key=True)
    contend = "if there are clusters: their collectors would contend for one branch"
    if draft.get("results", "mode", kind=str) == ResultsMode.BRANCH:
        yield draft.problem(("results", "mode"), f"must be push {contend}, got 'branch'", code=FLEET)
    if draft.has("results", "progress"):
        message = f"must not be given {contend}"
        yield draft.problem(("results", "progress"), message, code=FLEET, at_key=True)
