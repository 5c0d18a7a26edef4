"""The CronJobs of the platform: the collector records results, sync writes them to stores, expiry deletes old folders.

Each fills in a frozen base. Expiry runs beside the trials, because their claims are there; it reads git and
writes only to these volumes. Sync is apart from the collector, so that neither a store nor its client's libraries can
keep results from being recorded, or see the credential that writes to git.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import Names, labels
from sweepledger.render.platform.source import GitSource
from sweepledger.render.pod import authorities_mount, authorities_volume, bucket_client, bucket_secrets
from sweepledger.structs.kubernetes import (
    COLLECTOR_ACCOUNT,
    COMPONENT_LABEL,
    EGRESS_LABEL,
    EXPIRY_ACCOUNT,
    GIT_READ_SECRET,
    GIT_WRITE_SECRET,
    QUEUE_LABEL,
    SYNC_ACCOUNT,
)
from sweepledger.structs.names import IDENTITY_EMAIL
from sweepledger.structs.node_pool import scheduling_fields
from sweepledger.structs.settings import (
    COLLECTOR_IMAGE,
    GIT_EGRESS,
    BucketSettings,
    CollectorSettings,
    NetworkSettings,
    ResultsSettings,
    ResultsStore,
    TrialSettings,
)

COLLECTOR_BASE = "collector/v1/cronjob.yaml"
SYNC_BASE = "sync/v1/cronjob.yaml"
SYNC_IMAGE = "sync"
"""The same with the libraries of stores."""

WORK = "/sweep/work"
REPOSITORY = f"{WORK}/repository"
CREDENTIAL = "/sweep/git"

ACCOUNTS = "/sweep/stores"
"""Where the job that writes to stores finds their credentials."""
GROUP_READABLE = 0o440

MINUTES = 60
"""Minutes per hour: cron's steps start again with each."""

WATCH_MARGIN = 15
"""Seconds from the end of watching to the next run, for a last collection."""

CREDENTIAL_HELPER = (
    "!f() { "
    f"read -r name <{CREDENTIAL}/username || :; "
    f"read -r word <{CREDENTIAL}/password || :; "
    'printf "username=%s\\npassword=%s\\n" "$name" "$word"; }; f'
)
"""Asked by git when the server asks: neither an argument nor a variable ever holds the password."""

SIGNING_KEY = "signing"
"""Key of the credential's Secret that signs results; without it, they are unsigned."""
SIGNER = IDENTITY_EMAIL
"""Who the commits are by, where git knows nobody."""

SSH_COMMAND = (
    f"ssh -i {CREDENTIAL}/identity -o IdentitiesOnly=yes -o BatchMode=yes "
    f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={CREDENTIAL}/known_hosts"
)


def collector_cron_job(
    names: Names,
    trials: TrialSettings,
    network: NetworkSettings,
    results: ResultsSettings,
    collector: CollectorSettings,
    source: GitSource,
    bases: Mapping[str, bytes],
) -> Manifest:
    """Fill in the frozen base. While settings name no image `collector` it is suspended."""
    made = _cron_job(
        bases[COLLECTOR_BASE], names, COLLECTOR_ACCOUNT, is_ready=COLLECTOR_IMAGE in trials.images
    )
    made["spec"]["schedule"] = _schedule(results.every_minutes)
    job = made["spec"]["jobTemplate"]
    pod = job["spec"]["template"]["spec"]
    _place(job, trials, collector)
    fill_clone(pod, trials, network, source, _configuration(source))
    job["spec"]["template"]["metadata"]["labels"] |= _identity_labels(results.bucket)
    _fill_collector_pod(pod, names.cluster, results, collector)
    sizes = {
        "memory": collector.memory,
        "ephemeral-storage": collector.disk,
    }
    for container in (*pod["initContainers"], *pod["containers"]):
        for amounts in container["resources"].values():
            amounts.update(sizes)
    (work,) = (volume for volume in pod["volumes"] if volume["name"] == "work")
    work["emptyDir"]["sizeLimit"] = collector.disk
    return made


def _cron_job(base: bytes, names: Names, account: str, *, is_ready: bool) -> Manifest:
    """Return a base with its namespace and labels, suspended until the settings name its image."""
    made: Manifest = yaml.load(base)
    job = made["spec"]["jobTemplate"]
    ours = labels(names, **{COMPONENT_LABEL: account})
    place = names.trials if account == EXPIRY_ACCOUNT else names.collector
    made["metadata"] |= {"namespace": place, "labels": ours}
    made["spec"]["suspend"] = not is_ready
    job["metadata"] = {"labels": dict(ours)}
    job["spec"]["template"]["metadata"] = {"labels": dict(ours)}
    return made


def _place(job: Manifest, trials: TrialSettings, collector: CollectorSettings) -> None:
    """Choose nodes or queue, and the priority, of what runs in the collector's namespace."""
    pool = trials.pool(collector.pool)
    if pool is not None and pool.queue is not None:
        job["metadata"]["labels"][QUEUE_LABEL] = pool.queue
    _place_pod(job["spec"]["template"]["spec"], trials, collector)


def _place_pod(pod: Manifest, trials: TrialSettings, collector: CollectorSettings) -> None:
    """Choose the nodes of the collector's pool and its priority; with a queue, Kueue would choose the nodes."""
    pool = trials.pool(collector.pool)
    if pool is not None:
        pod |= scheduling_fields(pool, has_gpus=False)
    if collector.priority_class is not None:
        pod["priorityClassName"] = collector.priority_class


def fill_clone(
    pod: Manifest,
    trials: TrialSettings,
    network: NetworkSettings,
    source: GitSource,
    kept: Iterable[str],
    *,
    image: str = COLLECTOR_IMAGE,
) -> None:
    """Set the image of a pod that works on a clone, what its first container clones, and what git keeps of that."""
    clone, work = pod["initContainers"][0], pod["containers"][0]
    for container in (clone, work):
        if image in trials.images:
            container["image"] = trials.images[image].reference
        variables = {
            **network.client_variables(network.egress),
            "HOME": WORK,
            "TMPDIR": WORK,
            "GIT_TERMINAL_PROMPT": "0",
            "SWEEP_TRUSTED_CLONE": REPOSITORY,  # its configuration names the credential helper
        }
        if source.scheme == "ssh":
            variables["GIT_SSH_COMMAND"] = SSH_COMMAND
        container["env"] = [{"name": name, "value": value} for name, value in sorted(variables.items())]
        container["volumeMounts"] += authorities_mount(network.authorities)
    pod["volumes"] += authorities_volume(network.authorities)
    configuration = [f"--config={line}" for line in kept]
    clone["command"] += [f"--branch={source.branch}", *configuration, "--", source.url, REPOSITORY]
    if trials.image_pull_secret is not None:
        pod["imagePullSecrets"] = [{"name": trials.image_pull_secret}]


def _fill_collector_pod(
    pod: Manifest, cluster: str | None, results: ResultsSettings, collector: CollectorSettings
) -> None:
    for volume in pod["volumes"]:
        if volume["name"] == "git":
            volume["secret"]["secretName"] = GIT_WRITE_SECRET
        if volume["name"] == "results":
            volume["persistentVolumeClaim"]["claimName"] = results.claim
    if cluster is not None:
        pod["containers"][0]["command"].append(f"--in={cluster}")
    if collector.watches:
        # A run ends before the next one, which would be left out otherwise.
        pod["containers"][0]["command"].append(
            f"--watch={max(results.every_minutes * 60 - WATCH_MARGIN, WATCH_MARGIN)}"
        )
    if results.store is not ResultsStore.VOLUME:
        _drop_results(pod, results.bucket)


def _drop_results(pod: Manifest, bucket: BucketSettings | None) -> None:
    """Remove the results volume; a bucket's client gets its variables and Secrets."""
    _drop_volume(pod, "results")
    work = pod["containers"][0]
    work["command"] = [word for word in work["command"] if not word.startswith("--results=")]
    if bucket is not None:
        client = bucket_client(bucket)
        work["env"] += client["env"]
        work["volumeMounts"] += client["volumeMounts"]
        pod["volumes"] += bucket_secrets(bucket)


def _identity_labels(bucket: BucketSettings | None) -> Mapping[str, str]:
    """Return the labels by which a cloud adds an identity to the pod of a bucket's client."""
    return {} if bucket is None else bucket.pod_labels


def _schedule(minutes: int) -> str:
    """Return a cron schedule of every `minutes`, in whole hours from one hour on."""
    if minutes < MINUTES:
        return f"*/{minutes} * * * *"
    return f"0 */{min(minutes // MINUTES, 23)} * * *"


def _configuration(source: GitSource) -> list[str]:
    """Return git's configuration of the credential, for this server only; the clone keeps it.

    Beware of GIT_CONFIG_COUNT in the environment: the command forgets it, as it forgets all redirections.
    """
    signing = ("gpg.format=ssh", f"user.signingKey={CREDENTIAL}/{SIGNING_KEY}", "commit.gpgSign=true")
    return [*credential_configuration(source), *signing]


def credential_configuration(source: GitSource) -> list[str]:
    """Return git's configuration for a password; a key is in the environment."""
    if source.scheme not in {"https", "http"}:
        return []
    return [f"credential.{source.origin}.helper={CREDENTIAL_HELPER}"]


def sync_cron_job(
    names: Names,
    trials: TrialSettings,
    network: NetworkSettings,
    results: ResultsSettings,
    collector: CollectorSettings,
    source: GitSource,
    bases: Mapping[str, bytes],
) -> list[Manifest]:
    """Fill in the frozen base; nothing where the settings name no store. Suspended without an image `sync`."""
    if not results.sync:
        return []
    made = _cron_job(bases[SYNC_BASE], names, SYNC_ACCOUNT, is_ready=SYNC_IMAGE in trials.images)
    made["spec"]["schedule"] = _schedule(results.every_minutes)
    job = made["spec"]["jobTemplate"]
    pod = job["spec"]["template"]["spec"]
    _place(job, trials, collector)
    configuration = [] if source.is_public else credential_configuration(source)
    fill_clone(pod, trials, network, source, configuration, image=SYNC_IMAGE)
    (sync,) = pod["containers"]
    for name, store in sorted(results.sync.items()):
        if store.secret is not None:
            volume = f"store-{name}"
            mount = {"name": volume, "mountPath": f"{ACCOUNTS}/{name}", "readOnly": True}
            sync["volumeMounts"].append(mount)
            secret = {"secretName": store.secret, "defaultMode": GROUP_READABLE}
            pod["volumes"].append({"name": volume, "secret": secret})
    if source.is_public:
        _drop_volume(pod, "git")  # everybody may read the repository
    return [made]


def _drop_volume(pod: Manifest, name: str) -> None:
    pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] != name]
    for container in (*pod["initContainers"], *pod["containers"]):
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != name]


EXPIRY_BASE = "expiry/v1/cronjob.yaml"

ABSENT_FROM_CONTAINERS = ("args", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
"""Fields that none of its containers has."""
ABSENT_FROM_JOB = ("nodeSelector", "tolerations", "priorityClassName", "affinity")
"""What its Job says only where the settings place it; to its pod the API server may add some."""
UNTYPED = frozenset({"resources", "emptyDir"})
"""Of these only the presence is compared: they hold quantities, which have many notations."""


def expiry_cron_job(
    names: Names,
    trials: TrialSettings,
    network: NetworkSettings,
    results: ResultsSettings,
    collector: CollectorSettings,
    source: GitSource,
    bases: Mapping[str, bytes],
) -> list[Manifest]:
    """Fill in the frozen base; nothing where results are kept for ever. Suspended like the collector."""
    if results.keep_days is None:
        return []
    made = _cron_job(bases[EXPIRY_BASE], names, EXPIRY_ACCOUNT, is_ready=COLLECTOR_IMAGE in trials.images)
    template, bucket = made["spec"]["jobTemplate"]["spec"]["template"], results.bucket
    proxy = [] if network.proxy is None else [network.proxy.egress]
    opened = [GIT_EGRESS, *([bucket.egress] if bucket is not None else []), *proxy]
    template["metadata"]["labels"] |= {f"{EGRESS_LABEL}{name}": "true" for name in opened}
    template["metadata"]["labels"] |= _identity_labels(results.bucket)
    fill_clone(
        template["spec"],
        trials,
        network,
        source,
        [] if source.is_public else credential_configuration(source),
    )
    _fill_expiry_pod(template["spec"], results, source)
    _place_pod(template["spec"], trials, collector)
    return [made]


def _fill_expiry_pod(pod: Manifest, results: ResultsSettings, source: GitSource) -> None:
    expire = pod["containers"][0]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    volumes["git"]["secret"]["secretName"] = GIT_READ_SECRET
    volumes["results"]["persistentVolumeClaim"]["claimName"] = results.claim
    if not results.claims:
        _drop_results(pod, results.bucket)
    if source.is_public:
        _drop_volume(pod, "git")
    for name, claim in other_claims(results).items():
        place = f"/sweep/{name}"
        expire["command"].append(f"--{name}={place}")
        expire["volumeMounts"].append({"name": name, "mountPath": place})
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": claim}})


def other_claims(results: ResultsSettings) -> dict[str, str]:
    """Return the claims other than that of the results, by volume."""
    claims = results.claims
    return {volume: claim for volume, claim in claims.items() if claim != results.claim}


def expiry_expression(made: Manifest, *, is_pod: bool) -> str:
    """Write in CEL that a Job, or a pod, is what the CronJob of expiry makes, to the last mount: no trial.

    Who made it is not enough, and what it is called even less: it may read a Secret, and write all results.
    """
    spec = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    at = "object.spec" if is_pod else "object.spec.template.spec"
    absent = [f"{at}.{key}" for key in ("hostAliases", "dnsConfig", "ephemeralContainers")]
    absent += [] if is_pod else [f"{at}.{key}" for key in ABSENT_FROM_JOB if key not in spec]
    if is_pod:  # the API server adds tolerations of nodes that are lost
        spec = {key: value for key, value in spec.items() if key != "tolerations"}
    owner = "Job" if is_pod else "CronJob"
    # Git cannot name an owner: its identifier is the cluster's, and what names a wrong one is deleted.
    owned = (
        "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o,"
        f" o.kind == '{owner}' && has(o.controller) && o.controller)"
    )
    holds = [owned, *_equal(at, spec)]
    for sort in ("initContainers", "containers"):
        absent += [f"{at}.{sort}[0].{key}" for key in ABSENT_FROM_CONTAINERS]
    return " && ".join([*holds, *(f"!has({path})" for path in absent)])


def _equal(path: str, value: Any) -> Iterator[str]:
    """Compare field by field: the API server adds its defaults, and types are no maps to it."""
    match value:
        case dict() if not path.endswith(".nodeSelector"):  # a map, whose keys are no fields
            for key, inner in value.items():
                yield f"has({path}.{key})"
                if key not in UNTYPED:
                    yield from _equal(f"{path}.{key}", inner)
            if "mountPath" in value:
                yield f"!has({path}.subPath) && !has({path}.subPathExpr)"
        case [] | [dict(), *_]:
            yield f"{path}.size() == {len(value)}"
            for number, inner in enumerate(value):
                yield from _equal(f"{path}[{number}]", inner)
        case _:
            yield f"{path} == {json.dumps(value)}"
