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
from sweepledger.structs.settings import COLLECTOR_IMAGE, GIT_EGRESS, ResultsStore, Settings

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


def collector_cron_job(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> Manifest:
    """Fill in the frozen base. While settings name no image `collector` it is suspended."""
    made = _cron_job(bases[COLLECTOR_BASE], settings, COLLECTOR_ACCOUNT, image=COLLECTOR_IMAGE)
    made["spec"]["schedule"] = _schedule(settings.results.every_minutes)
    job = made["spec"]["jobTemplate"]
    pod = job["spec"]["template"]["spec"]
    _place(job, settings)
    job["spec"]["template"]["metadata"]["labels"] |= _identity_labels(settings)
    _fill_collector_pod(pod, settings, source)
    sizes = {
        "memory": settings.platform.collector.memory,
        "ephemeral-storage": settings.platform.collector.disk,
    }
    for container in (*pod["initContainers"], *pod["containers"]):
        for amounts in container["resources"].values():
            amounts.update(sizes)
    (work,) = (volume for volume in pod["volumes"] if volume["name"] == "work")
    work["emptyDir"]["sizeLimit"] = settings.platform.collector.disk
    return made


def _cron_job(base: bytes, settings: Settings, account: str, *, image: str) -> Manifest:
    """Return a base with its namespace and labels, suspended while the settings do not name its image."""
    made: Manifest = yaml.load(base)
    names, job = Names.of(settings), made["spec"]["jobTemplate"]
    ours = labels(settings, **{COMPONENT_LABEL: account})
    place = names.trials if account == EXPIRY_ACCOUNT else names.collector
    made["metadata"] |= {"namespace": place, "labels": ours}
    made["spec"]["suspend"] = image not in settings.trials.images
    job["metadata"] = {"labels": dict(ours)}
    job["spec"]["template"]["metadata"] = {"labels": dict(ours)}
    return made


def _place(job: Manifest, settings: Settings) -> None:
    """Choose nodes or queue, and the priority, of what runs in the collector's namespace."""
    pool = settings.trials.pool(settings.platform.collector.pool)
    if pool is not None and pool.queue is not None:
        job["metadata"]["labels"][QUEUE_LABEL] = pool.queue
    _place_pod(job["spec"]["template"]["spec"], settings)


def _place_pod(pod: Manifest, settings: Settings) -> None:
    """Choose the nodes of the collector's pool and its priority; with a queue, Kueue would choose the nodes."""
    pool = settings.trials.pool(settings.platform.collector.pool)
    if pool is not None:
        pod |= scheduling_fields(pool, has_gpus=False)
    if settings.platform.collector.priority_class is not None:
        pod["priorityClassName"] = settings.platform.collector.priority_class


def fill_clone(
    pod: Manifest, settings: Settings, source: GitSource, kept: Iterable[str], *, image: str = COLLECTOR_IMAGE
) -> None:
    """Set the image of a pod that works on a clone, what its first container clones, and what git keeps of that."""
    clone, work = pod["initContainers"][0], pod["containers"][0]
    for container in (clone, work):
        if image in settings.trials.images:
            container["image"] = settings.trials.images[image].reference
        variables = {
            **settings.network.client_variables(settings.network.egress),
            "HOME": WORK,
            "TMPDIR": WORK,
            "GIT_TERMINAL_PROMPT": "0",
            "SWEEP_TRUSTED_CLONE": REPOSITORY,  # its configuration names the credential helper
        }
        if source.scheme == "ssh":
            variables["GIT_SSH_COMMAND"] = SSH_COMMAND
        container["env"] = [{"name": name, "value": value} for name, value in sorted(variables.items())]
        container["volumeMounts"] += authorities_mount(settings)
    pod["volumes"] += authorities_volume(settings)
    configuration = [f"--config={line}" for line in kept]
    clone["command"] += [f"--branch={source.branch}", *configuration, "--", source.url, REPOSITORY]
    if settings.trials.image_pull_secret is not None:
        pod["imagePullSecrets"] = [{"name": settings.trials.image_pull_secret}]


def _fill_collector_pod(pod: Manifest, settings: Settings, source: GitSource) -> None:
    fill_clone(pod, settings, source, _configuration(source))
    for volume in pod["volumes"]:
        if volume["name"] == "git":
            volume["secret"]["secretName"] = GIT_WRITE_SECRET
        if volume["name"] == "results":
            volume["persistentVolumeClaim"]["claimName"] = settings.results.claim
    if settings.fleet.cluster is not None:
        pod["containers"][0]["command"].append(f"--in={settings.fleet.cluster}")
    if settings.platform.collector.watches:
        # A run ends before the next one, which would be left out otherwise.
        pod["containers"][0]["command"].append(
            f"--watch={max(settings.results.every_minutes * 60 - WATCH_MARGIN, WATCH_MARGIN)}"
        )
    if settings.results.store is not ResultsStore.VOLUME:
        _drop_results(pod, settings)


def _drop_results(pod: Manifest, settings: Settings) -> None:
    """Remove the results volume; a bucket's client gets its variables and Secrets."""
    _drop_volume(pod, "results")
    work = pod["containers"][0]
    work["command"] = [word for word in work["command"] if not word.startswith("--results=")]
    if settings.results.bucket is not None:
        client = bucket_client(settings.results.bucket)
        work["env"] += client["env"]
        work["volumeMounts"] += client["volumeMounts"]
        pod["volumes"] += bucket_secrets(settings.results.bucket)


def _identity_labels(settings: Settings) -> Mapping[str, str]:
    """Return the labels by which a cloud adds an identity to the pod of a bucket's client."""
    bucket = settings.results.bucket
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


def sync_cron_job(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Fill in the frozen base; nothing where the settings name no store. Suspended without an image `sync`."""
    if not settings.results.sync:
        return []
    made = _cron_job(bases[SYNC_BASE], settings, SYNC_ACCOUNT, image=SYNC_IMAGE)
    made["spec"]["schedule"] = _schedule(settings.results.every_minutes)
    job = made["spec"]["jobTemplate"]
    pod = job["spec"]["template"]["spec"]
    _place(job, settings)
    configuration = [] if source.is_public else credential_configuration(source)
    fill_clone(pod, settings, source, configuration, image=SYNC_IMAGE)
    (sync,) = pod["containers"]
    for name, store in sorted(settings.results.sync.items()):
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


def expiry_cron_job(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Fill in the frozen base; nothing where results are kept for ever. Suspended like the collector."""
    if settings.results.keep_days is None:
        return []
    made = _cron_job(bases[EXPIRY_BASE], settings, EXPIRY_ACCOUNT, image=COLLECTOR_IMAGE)
    template, bucket = made["spec"]["jobTemplate"]["spec"]["template"], settings.results.bucket
    proxy = [] if settings.network.proxy is None else [settings.network.proxy.egress]
    opened = [GIT_EGRESS, *([bucket.egress] if bucket is not None else []), *proxy]
    template["metadata"]["labels"] |= {f"{EGRESS_LABEL}{name}": "true" for name in opened}
    template["metadata"]["labels"] |= _identity_labels(settings)
    _fill_expiry_pod(template["spec"], settings, source)
    _place_pod(template["spec"], settings)
    return [made]


def _fill_expiry_pod(pod: Manifest, settings: Settings, source: GitSource) -> None:
    fill_clone(pod, settings, source, [] if source.is_public else credential_configuration(source))
    expire = pod["containers"][0]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    volumes["git"]["secret"]["secretName"] = GIT_READ_SECRET
    volumes["results"]["persistentVolumeClaim"]["claimName"] = settings.results.claim
    if not settings.results.claims:
        _drop_results(pod, settings)
    if source.is_public:
        _drop_volume(pod, "git")
    for name, claim in other_claims(settings).items():
        place = f"/sweep/{name}"
        expire["command"].append(f"--{name}={place}")
        expire["volumeMounts"].append({"name": name, "mountPath": place})
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": claim}})


def other_claims(settings: Settings) -> dict[str, str]:
    """Return the claims other than that of the results, by volume."""
    claims = settings.results.claims
    return {volume: claim for volume, claim in claims.items() if claim != settings.results.claim}


def expiry_expression(
    settings: Settings, source: GitSource, bases: Mapping[str, bytes], *, is_pod: bool
) -> str:
    """Write in CEL that a Job, or a pod, is what this CronJob makes, to the last mount: no trial.

    Who made it is not enough, and what it is called even less: it may read a Secret, and write all results.
    """
    (made,) = expiry_cron_job(settings, source, bases)
    spec = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    at = "object.spec" if is_pod else "object.spec.template.spec"
    absent = [f"{at}.{key}" for key in ("hostAliases", "dnsConfig", "ephemeralContainers")]
    absent += [] if is_pod else [f"{at}.{key}" for key in ABSENT_FROM_JOB if key not in spec]
    if is_pod:
        spec.pop("tolerations", None)  # the API server adds those of nodes that are lost
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
