"""The settings: names of objects, datasets and stores, pools, budgets, and several clusters."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import urlsplit

from sweepledger.controllers import GITOPS
from sweepledger.model.text_forms import DNS_LABEL
from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.environment import written
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs import kubernetes, quantities
from sweepledger.structs.names import MAX_LABEL_LENGTH, PLATFORM_SUFFIX
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.platform import REMOTE
from sweepledger.structs.pod_fields import field_paths
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    DEFAULT_STORE,
    GIT_EGRESS,
    Cloud,
    Controller,
    ResultsMode,
    ResultsSettings,
    ResultsStore,
    Settings,
)
from sweepledger.structs.settings.network import PEERS_EGRESS

COLLECTOR = "-collector"
NAMES_OF_PLATFORMS = (
    COLLECTOR,
    *(own.namespace_suffix for own in GITOPS.values() if own.namespace_suffix is not None),
    PLATFORM_SUFFIX,
)
"""What names of namespaces and projects of a platform end in after the namespace of its trials."""
CONTROLLER_NAMESPACES = frozenset({"kueue-system"}).union(*(own.namespaces for own in GITOPS.values()))
WITH_SETTINGS = {own.settings_key: own for own in GITOPS.values() if own.settings_key is not None}
"""Controllers by the key of their settings."""
LONGEST_NAMESPACE = MAX_LABEL_LENGTH - len(COLLECTOR)
LONGEST_EGRESS = MAX_LABEL_LENGTH - len("egress-")
"""The label of a pod contains this name."""


FIELD_PATHS = {
    field: " ".join(".".join(path) for path in paths) for field, paths in field_paths(Settings).items()
}
"""Where the settings have fields of pods."""


class NameRule(NamedTuple):
    """Names that have another use: texts, or the keys of a mapping if the path ends in `*`."""

    paths: str
    reserved: tuple[str, ...]
    """`*` stands for any letters."""
    reason: str
    hint: str | None = None


NAME_RULES = (
    NameRule(
        "sidecars.*",
        (kubernetes.CODE_CONTAINER, kubernetes.STORE_CONTAINER, "trial", "pytorch", "tensorflow"),
        "a trial has these containers",
    ),
    # No store and no trial gets the credentials by which the platform reads and writes git.
    NameRule(
        "results.sync.*.secret secrets.*.secret results.bucket.secret results.bucket.seals",
        (kubernetes.GIT_READ_SECRET, kubernetes.GIT_SIGNING_SECRET, kubernetes.GIT_WRITE_SECRET),
        "they have credentials for git",
        "create one of its own",
    ),
    # A pod with a priority of the cluster's own would displace what nodes and the cluster need to work.
    NameRule(
        *(FIELD_PATHS["priorityClassName"], ("system-*",)),
        *("they are the cluster's own", "for example batch-low"),
    ),
    # An identity is given to an account on purpose.
    NameRule(
        FIELD_PATHS["serviceAccountName"],
        (
            *("default", "sweep-expiry", "sweep-root", kubernetes.APPLIER_ACCOUNT),
            *(kubernetes.COLLECTOR_ACCOUNT, kubernetes.SYNC_ACCOUNT),
        ),
        "they have another use",
        f"name another, or remove it: trials then have {kubernetes.TRIAL_ACCOUNT!r}, which has no rights",
    ),
    # Trials run untrusted code.
    NameRule(
        "namespace", ("default", "kube-*"), "trials need a namespace of their own", "for example sweeps"
    ),
    NameRule(
        *("namespace", tuple(f"*{end}" for end in NAMES_OF_PLATFORMS)),
        *("names of another platform would be the same", "for example vision-sweeps"),
    ),
    NameRule(
        *("clusters.*", ("extra", "monitoring", "optional", "platform", REMOTE, *GITOPS)),
        "they are folders of the platform in clusters/",
    ),
    NameRule("egress.*", (PEERS_EGRESS,), "pods of distributed trials use this one"),
)


def names(draft: Draft) -> Iterator[Problem]:
    """No name has another use."""
    for rule in NAME_RULES:
        at_key = rule.paths.endswith("*")
        for path in (path for paths in rule.paths.split() for path in draft.each(*paths.split("."))):
            for place, name in [(path, str(path[-1]))] if at_key else draft.texts(*path):
                if any(fnmatchcase(name, reserved) for reserved in rule.reserved):
                    add = draft.wrong_key if at_key else draft.wrong
                    message = f"must be none of {', '.join(rule.reserved)}: {rule.reason}"
                    yield add(place, message, "cluster-name", rule.hint)


def name_lengths(draft: Draft) -> Iterator[Problem]:
    """The namespace of trials is not a controller's, and names made of it and of an egress fit in a label."""
    controllers = {*CONTROLLER_NAMESPACES, *(draft.text(key, "namespace") for key in WITH_SETTINGS)}
    for place, name in draft.texts("namespace") if DNS_LABEL.fullmatch(draft.text("namespace") or "") else ():
        if name in controllers:
            message = "must be a separate namespace, not that of a controller"
            yield draft.wrong(place, message, "cluster-name", "for example sweeps")
        elif len(name) > LONGEST_NAMESPACE and not name.endswith(NAMES_OF_PLATFORMS):
            message = f"must have at most {LONGEST_NAMESPACE} characters, got {len(name)}"
            hint = f"the collector's namespace is this one and {COLLECTOR!r}"
            yield draft.problem(place, message, "cluster-name", hint)
    for name in draft.names("egress"):
        if DNS_LABEL.fullmatch(name) and len(name) > LONGEST_EGRESS:
            message = f"must have at most {LONGEST_EGRESS} characters, got {len(name)}"
            yield draft.at_key(("egress", name), message, "cluster-name")


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
    for path, domains in (
        (("labels",), RESERVED_DOMAINS),
        (("monitoring", "labels"), RESERVED_DOMAINS),
        (("pools", "*", "pod", "labels"), RESERVED_DOMAINS),
        (("pools", "*", "pod", "annotations"), OWN_DOMAINS),
    ):
        for place in draft.each(*path, "*"):
            prefix = str(place[-1]).rpartition("/")[0]
            if place[-1] in RESERVED_LABELS or any(f".{prefix}".endswith(f".{domain}") for domain in domains):
                hint = "use your own domain, for example example.org/team"
                yield draft.wrong_key(
                    place, "must not be a key that a program acts on", "label-reserved", hint
                )


class KeyRule(NamedTuple):
    """Keys that another key of the same mapping, or its absence, forbids or requires."""

    mapping: tuple[str, ...]
    keys: str
    relation: str
    other: str
    hint: str | None = None
    code: str = "missing-key"


UNLESS, WITH = "must be given unless {} is", "must be given with {}"
NOT_WITH, NOT_WITHOUT = "must not be given with {}", "must not be given without {}"
WRONG = {UNLESS: (False, False), WITH: (False, True), NOT_WITH: (True, True), NOT_WITHOUT: (True, False)}
"""Whether the key and the other one are given where that is wrong."""
DATASET, POOL, BUCKET = ("datasets", "*"), ("pools", "*"), ("results", "bucket")
ADDRESSES = "hosts needs Cilium; with another network, open addresses, or a `proxy` that decides by name"
SERVERS = "`kubectl get pods --all-namespaces --show-labels` shows both"
KEY_RULES = (
    KeyRule(DATASET, "digest", UNLESS, "version", "`sweep cluster data PATH` computes it"),
    KeyRule(
        *(DATASET, "version", NOT_WITH, "digest"),
        *("the digest is more exact: delete the version", "data-digest"),
    ),
    KeyRule(
        *(DATASET, "claim", UNLESS, "bucket"),
        "the PersistentVolumeClaim with the data; or bucket and size, with results.store: bucket",
    ),
    KeyRule(DATASET, "size", WITH, "bucket", "a little more than `du --human-readable FOLDER` says"),
    KeyRule(DATASET, "size", NOT_WITHOUT, "bucket", "a claim has its size: delete the key", "data-source"),
    # Each copy is verified by a digest and bounded by a size.
    KeyRule(
        *(DATASET, "claim path nfs version", NOT_WITH, "bucket"),
        *("a copy has no volume, and a digest: delete the key", "data-source"),
    ),
    KeyRule(
        *(BUCKET, "identity collector_identity expiry_identity", NOT_WITH, "secret"),
        *("a client has one credential: delete one of them", "bucket"),
    ),
    KeyRule(
        *(POOL, "min_parallelism flavor cohort topology provisioning", NOT_WITHOUT, "queue"),
        *(None, "pool-queue"),
    ),
    KeyRule(
        POOL, "selector tolerations", NOT_WITH, "flavor", "the flavor has the nodes of the pool", "pool-queue"
    ),
    KeyRule((*POOL, "topology"), "prefer", NOT_WITH, "require", "Kueue takes one of them", "pool-queue"),
    KeyRule(("budgets", "*"), "gpu_hours", UNLESS, "money"),
    KeyRule(("egress", "*"), "cidrs", UNLESS, "hosts", ADDRESSES, "egress-empty"),
    KeyRule(
        *(("dns",), "namespace", UNLESS, "cidrs"),
        "for example kube-system, and labels: {k8s-app: coredns}; or cidrs: [169.254.169.254/32]",
    ),
    KeyRule(("dns",), "labels", WITH, "namespace", SERVERS),
    KeyRule(("dns",), "namespace", WITH, "labels", SERVERS),
)


def keys_together(draft: Draft) -> Iterator[Problem]:
    """Keys of a mapping fit together."""
    for rule in KEY_RULES:
        for place in written(draft, *rule.mapping):
            keys = draft.names(*place)
            for key in rule.keys.split() if draft.get(*place, kind=dict) is not None else ():
                if (key in keys, rule.other in keys) == WRONG[rule.relation]:
                    yield draft.at_key((*place, key), rule.relation.format(rule.other), rule.code, rule.hint)


def manifests(draft: Draft) -> Iterator[Problem]:
    """A controller that applies batches needs their manifests."""
    controller = draft.text("controller")
    if draft.get("manifests", kind=bool) is False and controller not in {None, Controller.NONE}:
        message = f"must be true if controller is {safe_repr(controller)}"
        yield draft.wrong(("manifests",), message, "no-manifests", "delete the key: true is the default")


STORE_SCHEMES = {"mlflow": ("https", "http"), "optuna": ("postgresql", "mysql")}
"""Schemes of addresses; Optuna's may name a driver after a plus sign."""
MAX_ADDRESS = 2000


def stores(draft: Draft) -> Iterator[Problem]:
    """A store of results has the address of a server, without credentials."""
    for place, text in draft.each_text("results", "sync", "*", "to"):
        schemes = STORE_SCHEMES.get(str(place[2]), ())
        if not _is_server(text, schemes):
            listed = " or ".join(f"{scheme}://" for scheme in schemes)
            message = f"must begin with {listed} and a host without credentials"
            yield draft.wrong(place, message, "store-address", "credentials are variables of `secret`")


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


def store_keys(draft: Draft) -> Iterator[Problem]:
    """A store has its own keys and no keys of another: only volumes have claims, and only files expire."""
    name = draft.text("results", "store") or DEFAULT_STORE
    for store in (store for store in ResultsStore if store == name):
        facts, where = store.facts, f"with results.store: {store}"
        for key in facts.foreign_keys:
            if draft.has("results", key):
                yield draft.unwanted(("results", key), where, "store-key", facts.why)
        for needed, hint in facts.needed_keys:
            if not draft.has(*needed):
                yield draft.at_key(needed, f"must be given {where}", "missing-key", hint)
        for place in draft.each(*DATASET, "bucket") if not facts.has_sidecar else ():
            hint = "only the sidecar of a bucket copies data: choose that store, or a claim"
            yield draft.at_key(place, f"must not be given {where}", "data-source", hint)


def bucket_keys(draft: Draft) -> Iterator[Problem]:
    """A bucket has only keys that its cloud has, and no Secret that trials may mount."""
    scheme = (draft.text(*BUCKET, "url") or "").partition("://")[0]
    clouds = {"endpoint": (Cloud.S3, Cloud.AZURE), "region": (Cloud.S3,), "account": (Cloud.AZURE,)}
    for key, having in clouds.items() if scheme in {*Cloud} else ():
        for place, value in draft.texts(*BUCKET, key) if scheme not in having else ():
            schemes = " or ".join(f"{cloud}://" for cloud in having)
            message = f"must not be given unless the address begins with {schemes}, got {safe_repr(value)}"
            yield draft.at_key(place, message, "bucket", "delete the key")
    mounted = {
        name for _, name in (*draft.each_text("secrets", "*", "secret"), *draft.texts("code", "secret"))
    }
    for place, name in (*draft.texts(*BUCKET, "secret"), *draft.texts(*BUCKET, "seals")):
        if name in mounted:
            message = "must be a Secret of its own, which no trial mounts"
            yield draft.wrong(place, message, "bucket", "create another one")
        mounted.add(name)


def collected_in_time(draft: Draft) -> Iterator[Problem]:
    """A Job must not be deleted before the collector has read its records."""
    ttl = draft.meaning(quantities.seconds, "submit", "ttl", default=None)
    every = ResultsSettings().every_minutes
    minutes = draft.meaning(quantities.minutes, "results", "every", default=every)
    if ttl is not None and minutes is not None and ttl <= minutes * quantities.TIME_UNITS["m"]:
        message = f"must be longer than results.every ({minutes}m)"
        yield draft.wrong(("submit", "ttl"), message, "duration", "for example 7d")


MAX_FLAVOR_ITEMS = 8
"""Labels, and tolerations, of a ResourceFlavor (Kueue v1beta1)."""


def pool_nodes(draft: Draft) -> Iterator[Problem]:
    """A flavor that the platform makes allows eight labels and tolerations."""
    for place in (*draft.each(*POOL, "selector"), *draft.each(*POOL, "tolerations")):
        count = len(draft.names(*place)) or len([*draft.items(*place)])
        if draft.has(*place[:-1], "queue") and count > MAX_FLAVOR_ITEMS:
            message = f"must have at most {MAX_FLAVOR_ITEMS} entries if the pool has a queue, got {count}"
            yield draft.at_key(place, message, "pool-flavor")


def queues(draft: Draft) -> Iterator[Problem]:
    """A queue that the platform makes, for a pool with max_nodes, has the quota of one pool."""
    own = GITOPS.get(draft.text("controller") or "")
    # Partial admission needs a controller that does not revert Kueue's changes of a Job.
    for place in draft.each(*POOL, "min_parallelism") if own is not None and own.resets_parallelism else ():
        message = f"needs another controller than {draft.text('controller')}, "
        message += "which would write the parallelism of a running Job back"
        hint = "remove it: Kueue then admits all trials of a batch that may run at once, or none"
        yield draft.at_key(place, message, "pool-queue", hint)
    pools: dict[str, str] = {}
    for name in draft.names("pools"):
        queue = draft.text("pools", name, "queue")
        if queue is not None and draft.has("pools", name, "max_nodes"):
            other = pools.setdefault(queue, name)
            if other != name:
                message = f"must be the queue of one pool with max_nodes, got {safe_repr(queue)}, that of {other!r} too"
                hint = "name another queue; a cohort lets queues share their quotas"
                yield draft.problem(("pools", name, "queue"), message, "pool-queue", hint)


def topologies(draft: Draft) -> Iterator[Problem]:
    """Levels are labels of nodes, each once and hosts last, and a trial requires or prefers one of them."""
    for place in draft.each(*POOL, "topology"):
        levels = [level for _, level in draft.texts(*place, "levels")]
        for index, (at, level) in enumerate(draft.texts(*place, "levels")):
            if level in levels[:index]:
                message = f"must be given once, got {safe_repr(level)} again"
                yield draft.problem(at, message, "pool-queue")
            elif level == "kubernetes.io/hostname" and index + 1 < len(levels):
                after = safe_repr(levels[index + 1])
                message = f"must be the last level, got {safe_repr(level)} before {after}"
                hint = "order the levels from the largest domains to the smallest"
                yield draft.problem(at, message, "pool-queue", hint)
        for at, chosen in (*draft.texts(*place, "require"), *draft.texts(*place, "prefer")):
            if levels and chosen not in levels:
                near = did_you_mean(chosen, levels)
                yield draft.wrong(at, "must be one of the levels", "pool-queue", near)
        annotations = draft.each(*map(str, place[:-1]), "pod", "annotations", "*")
        for at in annotations if draft.names(*place) else ():
            if str(at[-1]).startswith(kubernetes.POD_SET_ANNOTATIONS):
                hint = f"pools.{place[1]}.topology.require or prefer"
                message = "must not be given with topology, which writes it"
                yield draft.wrong_key(at, message, "pool-queue", hint)


NODES = (("selector",), ("gpu_type",), ("tolerations",), ("spot",), ("topology", "levels"))
"""The keys of a pool that say which nodes are its own."""


def lenders(draft: Draft) -> Iterator[Problem]:
    """Queues of a cohort lend quota of the same nodes only. A queue with an existing flavor may also lend to others."""
    pools = [pool for pool in draft.each(*POOL) if not draft.has(*pool, "flavor")]
    cohorts = {pool: draft.text(*pool, "cohort") for pool in pools}
    nodes = {pool: [draft.get(*pool, *key, kind=object) or None for key in NODES] for pool in pools}
    for pool, cohort in cohorts.items():
        others = [other for other in cohorts if other != pool and cohorts[other] == cohort]
        is_named = any(nodes[pool][:2])
        if cohort is None or not others or (is_named and nodes[pool] in [nodes[other] for other in others]):
            continue
        message = "needs selector, gpu_type, tolerations, spot and topology.levels "
        message += "of another pool of the cohort"
        hint = "queues lend quota of the same nodes, which selector or gpu_type name: make them equal, or remove cohort"
        yield draft.at_key((*pool, "cohort"), message, "pool-queue", hint)


def pod_settings(draft: Draft) -> Iterator[Problem]:
    """The pods of a pool have the pool's GPU by the number of a spec, and tokens of an account that the pool names."""
    for pool in draft.each(*POOL):
        place = (*pool, "pod")
        gpu = (*place, "resources", draft.text(*pool, "gpu_resource") or GPU_RESOURCE)
        if draft.has(*gpu):
            message = "must not be the pool's GPU, of which specs say the number"
            yield draft.at_key(gpu, message, "pool-pod", "run.resources.gpu")
        account = draft.text(*place, "service_account") or kubernetes.TRIAL_ACCOUNT
        if draft.names(*place, "tokens") and account == kubernetes.TRIAL_ACCOUNT:
            message = f"needs a service account of the pool, got {safe_repr(account)}"
            hint = "a service that checks tokens then knows the pool's trials by their account: "
            hint += "service_account"
            yield draft.at_key((*place, "tokens"), message, "pool-pod", hint)
        node = draft.get(*pool, "node", kind=dict)  # only pools with GPUs have keys of GPUs
        if node is not None and (*pool, "node", "gpu") not in draft.broken and not node.get("gpu"):
            for key in (key for key in ("gpu_resource", "gpu_shares", "gpu_type") if draft.has(*pool, key)):
                message, hint = "must be left out if nodes have no GPU", "or set their number: node.gpu"
                yield draft.at_key((*pool, key), message, "pool-gpu", hint)


def claims(draft: Draft) -> Iterator[Problem]:
    """Claims of devices need a Kubernetes that has them, and no queue, which would not count them."""
    oldest = kubernetes.OLDEST_VERSION
    version = draft.meaning(kubernetes.parse_version, "kubernetes", default=oldest) or oldest
    for place in (place for place in draft.each(*POOL, "pod", "claims") if draft.names(*place)):
        if version < kubernetes.CLAIMS_VERSION:
            needed = kubernetes.format_version(kubernetes.CLAIMS_VERSION)
            message = f"needs Kubernetes {needed} or newer, got {kubernetes.format_version(version)}"
            yield draft.at_key(place, message, "pool-pod", f'kubernetes: "{needed}", if every cluster has it')
        if draft.has(*place[:2], "queue"):
            message = "must not be given with a queue: Kueue 0.15 does not count claimed devices"
            yield draft.at_key(place, message, "pool-pod")


FLEET = "fleet"
"""Code of the problems of several clusters."""


def cluster_names(draft: Draft) -> Iterator[Problem]:
    """No cluster has the name of another's platform, and at least one cluster was not given up."""
    clusters = draft.names("clusters")
    for name in clusters:
        other = name.removesuffix(PLATFORM_SUFFIX)
        if other != name and other in clusters:
            message = f"must be another name: the platform of {other!r} is called so"
            yield draft.wrong_key(("clusters", name), message, "cluster-name")
    if draft.has("clusters") and not _live(draft):
        yield draft.at_key(("clusters",), "must have a cluster that was not given up, got none", FLEET)


def _live(draft: Draft) -> tuple[str, ...]:
    names = draft.names("clusters")
    return tuple(name for name in names if not draft.get("clusters", name, "lost", kind=bool))


def clusters(draft: Draft) -> Iterator[Problem]:
    """The settings contain the egress of a cluster; each pool is in a cluster, the collector's pool in all clusters."""
    egress = (*draft.names("egress"), API_SERVER_EGRESS, GIT_EGRESS)
    for place in draft.each("clusters", "*", "egress", "*"):
        if place[-1] not in egress:
            near = did_you_mean(place[-1], egress)
            hint = f"{near}, or name its usual addresses by egress: the cluster's replace them"
            yield draft.wrong_key(place, "must be one of the settings' egress", FLEET, hint)
    having = {
        cluster: draft.get("clusters", cluster, "pools", kind=list) or list(draft.names("pools"))
        for cluster in _live(draft)
    }
    for place in draft.each(*POOL) if having else ():
        if not any(place[-1] in pools for pools in having.values()):
            yield draft.wrong_key(place, "must be a pool of at least one cluster", FLEET)
    own = draft.text("collector", "pool")
    missing = ", ".join(sorted(cluster for cluster, pools in having.items() if own not in pools))
    if own in draft.names("pools") and missing:
        message = f"must be a pool of every cluster, got {safe_repr(own)}, which is not in {missing}"
        yield draft.problem(("collector", "pool"), message, FLEET)


def signed_commits(draft: Draft) -> Iterator[Problem]:
    """A controller verifies GnuPG signatures only, and a collector that pushes signs with SSH."""
    places = (place for key in WITH_SETTINGS for place in written(draft, key, "signature_keys"))
    for place in places if draft.text("results", "mode") != ResultsMode.BRANCH else ():
        message = "must not be given with results.mode push: "
        message += f"{WITH_SETTINGS[str(place[-2])].title} would not follow commits of the collector"
        hint = "protect the branch by rules of the git server"
        hint = hint if draft.has("clusters") else f"set results.mode to branch, or {hint}"
        yield draft.at_key(place, message, "wrong-value", hint)


def fleet_settings(draft: Draft) -> Iterator[Problem]:
    """Settings that several collectors would contend for, or that need manual work, exclude `clusters`."""
    if not draft.has("clusters"):
        return
    place, controller = ("controller",), draft.text("controller") or Controller.NONE
    if controller not in GITOPS:
        message = f"must be {' or '.join(GITOPS)} if there are clusters, got {safe_repr(str(controller))}"
        yield draft.problem(place, message, FLEET, at_key=not draft.has(*place))
    for key in filter(draft.has, WITH_SETTINGS):
        message = "must be set for each cluster if there are clusters"
        yield draft.at_key((key,), message, FLEET, "move it below clusters.NAME")
    contend = "if there are clusters: their collectors would contend for one branch"
    if draft.text("results", "mode") == ResultsMode.BRANCH:
        yield draft.problem(("results", "mode"), f"must be push {contend}, got 'branch'", FLEET)
    if draft.has("results", "progress"):
        yield draft.at_key(("results", "progress"), f"must not be given {contend}", FLEET)
