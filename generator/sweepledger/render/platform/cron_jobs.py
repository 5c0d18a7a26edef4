"""The CronJobs of the platform: the collector records results, sync writes them to stores, expiry deletes old folders.

Each fills in a frozen base. Expiry runs beside the trials, because their claims are there; it reads git and
writes only to these volumes. Sync is apart from the collector, so that neither a store nor its client's libraries can
keep results from being recorded, or see the credential that writes to git.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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

SIGNING = ("gpg.format=ssh", f"user.signingKey={CREDENTIAL}/{SIGNING_KEY}", "commit.gpgSign=true")
"""Git's configuration of signatures; the clone keeps it.

Beware of GIT_CONFIG_COUNT in the environment: the command forgets it, as it forgets all redirections.
"""

EXPIRY_BASE = "expiry/v1/cronjob.yaml"

ABSENT_FROM_CONTAINERS = ("args", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
"""Fields that none of its containers has."""
ABSENT_FROM_JOB = ("nodeSelector", "tolerations", "priorityClassName", "affinity")
"""What its Job says only where the settings place it; to its pod the API server may add some."""
UNTYPED = frozenset({"resources", "emptyDir"})
"""Of these only the presence is compared: they hold quantities, which have many notations."""


@dataclass(frozen=True, slots=True)
class CronJobs:
    """The CronJobs of one cluster, and what they are made from."""

    names: Names
    trials: TrialSettings
    network: NetworkSettings
    results: ResultsSettings
    collector: CollectorSettings
    source: GitSource
    bases: Mapping[str, bytes]

    def of_collector(self) -> Manifest:
        """Return the CronJob that records results."""
        kept = [*_credential_configuration(self.source), *SIGNING]
        made = self._filled(COLLECTOR_BASE, COLLECTOR_ACCOUNT, COLLECTOR_IMAGE, kept)
        pod = _template(made)["spec"]
        for volume in pod["volumes"]:
            if volume["name"] == "git":
                volume["secret"]["secretName"] = GIT_WRITE_SECRET
            if volume["name"] == "results":
                volume["persistentVolumeClaim"]["claimName"] = self.results.claim
            if volume["name"] == "work":
                volume["emptyDir"]["sizeLimit"] = self.collector.disk
        (work,) = pod["containers"]
        if self.names.cluster is not None:
            work["command"].append(f"--in={self.names.cluster}")
        if self.collector.watches:
            # A run ends before the next one, which would be left out otherwise.
            seconds = max(self.results.every_minutes * 60 - WATCH_MARGIN, WATCH_MARGIN)
            work["command"].append(f"--watch={seconds}")
        if self.results.store is not ResultsStore.VOLUME:
            _drop_results(pod, self.results.bucket)
        sizes = {"memory": self.collector.memory, "ephemeral-storage": self.collector.disk}
        for container in (*pod["initContainers"], work):
            for amounts in container["resources"].values():
                amounts.update(sizes)
        return made

    def of_sync(self) -> list[Manifest]:
        """Return the CronJob that writes results to stores; nothing where the settings name no store."""
        if not self.results.sync:
            return []
        made = self._filled(SYNC_BASE, SYNC_ACCOUNT, SYNC_IMAGE, self._read_configuration)
        pod = _template(made)["spec"]
        (sync,) = pod["containers"]
        for name, store in sorted(self.results.sync.items()):
            if store.secret is not None:
                volume = f"store-{name}"
                mount = {"name": volume, "mountPath": f"{ACCOUNTS}/{name}", "readOnly": True}
                sync["volumeMounts"].append(mount)
                secret = {"secretName": store.secret, "defaultMode": GROUP_READABLE}
                pod["volumes"].append({"name": volume, "secret": secret})
        if self.source.is_public:
            _drop_volume(pod, "git")  # everybody may read the repository
        return [made]

    def of_expiry(self) -> list[Manifest]:
        """Return the CronJob that deletes old results; nothing where they are kept for ever."""
        if self.results.keep_days is None:
            return []
        made = self._filled(EXPIRY_BASE, EXPIRY_ACCOUNT, COLLECTOR_IMAGE, self._read_configuration)
        template, bucket, proxy = _template(made), self.results.bucket, self.network.proxy
        opened = [GIT_EGRESS, *([bucket.egress] if bucket else []), *([proxy.egress] if proxy else [])]
        template["metadata"]["labels"] |= {f"{EGRESS_LABEL}{name}": "true" for name in opened}
        pod = template["spec"]
        (expire,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        volumes["git"]["secret"]["secretName"] = GIT_READ_SECRET
        volumes["results"]["persistentVolumeClaim"]["claimName"] = self.results.claim
        if not self.results.claims:
            _drop_results(pod, bucket)
        if self.source.is_public:
            _drop_volume(pod, "git")
        for name, claim in other_claims(self.results).items():
            place = f"/sweep/{name}"
            expire["command"].append(f"--{name}={place}")
            expire["volumeMounts"].append({"name": name, "mountPath": place})
            pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        return [made]

    @property
    def _read_configuration(self) -> list[str]:
        return [] if self.source.is_public else _credential_configuration(self.source)

    def _filled(self, base: str, account: str, image: str, kept: Iterable[str]) -> Manifest:
        """Return a frozen base with what all of them have; suspended while the settings name no such image.

        `kept` is the configuration of git that the clone keeps.
        """
        made: Manifest = yaml.load(self.bases[base])
        in_trials, job = account == EXPIRY_ACCOUNT, made["spec"]["jobTemplate"]
        ours = labels(self.names, **{COMPONENT_LABEL: account})
        made["metadata"] |= {
            "namespace": self.names.trials if in_trials else self.names.collector,
            "labels": ours,
        }
        made["spec"]["suspend"] = image not in self.trials.images
        job["metadata"] = {"labels": dict(ours)}
        identity = self.results.bucket.pod_labels if self.results.bucket and account != SYNC_ACCOUNT else {}
        template = job["spec"]["template"]
        template["metadata"] = {"labels": {**ours, **identity}}
        if not in_trials:
            made["spec"]["schedule"] = _schedule(self.results.every_minutes)
        # With a queue, Kueue chooses the nodes.
        pool = self.trials.pool(self.collector.pool)
        if pool is not None:
            template["spec"] |= scheduling_fields(pool, has_gpus=False)
            if pool.queue is not None and not in_trials:
                job["metadata"]["labels"][QUEUE_LABEL] = pool.queue
        if self.collector.priority_class is not None:
            template["spec"]["priorityClassName"] = self.collector.priority_class
        self._fill_clone(template["spec"], image, kept)
        return made

    def _fill_clone(self, pod: Manifest, image: str, kept: Iterable[str]) -> None:
        """Set the image of a pod that works on a clone, what its first container clones, and what git keeps of it."""
        clone, work = pod["initContainers"][0], pod["containers"][0]
        authorities, pull_secret = self.network.authorities, self.trials.image_pull_secret
        for container in (clone, work):
            if image in self.trials.images:
                container["image"] = self.trials.images[image].reference
            variables = {
                **self.network.client_variables(self.network.egress),
                "HOME": WORK,
                "TMPDIR": WORK,
                "GIT_TERMINAL_PROMPT": "0",
                "SWEEP_TRUSTED_CLONE": REPOSITORY,  # its configuration names the credential helper
            }
            if self.source.scheme == "ssh":
                variables["GIT_SSH_COMMAND"] = SSH_COMMAND
            container["env"] = [{"name": name, "value": value} for name, value in sorted(variables.items())]
            container["volumeMounts"] += authorities_mount(authorities)
        pod["volumes"] += authorities_volume(authorities)
        configuration = [f"--config={line}" for line in kept]
        clone["command"] += [
            f"--branch={self.source.branch}",
            *configuration,
            "--",
            self.source.url,
            REPOSITORY,
        ]
        if pull_secret is not None:
            pod["imagePullSecrets"] = [{"name": pull_secret}]


def _template(cron_job: Manifest) -> Manifest:
    template: Manifest = cron_job["spec"]["jobTemplate"]["spec"]["template"]
    return template


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


def _drop_volume(pod: Manifest, name: str) -> None:
    pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] != name]
    for container in (*pod["initContainers"], *pod["containers"]):
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != name]


def _schedule(minutes: int) -> str:
    """Return a cron schedule of every `minutes`, in whole hours from one hour on."""
    if minutes < MINUTES:
        return f"*/{minutes} * * * *"
    return f"0 */{min(minutes // MINUTES, 23)} * * *"


def _credential_configuration(source: GitSource) -> list[str]:
    """Return git's configuration for a password, for this server only; a key is in the environment."""
    if source.scheme not in {"https", "http"}:
        return []
    return [f"credential.{source.origin}.helper={CREDENTIAL_HELPER}"]


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
