"""The objects of a team: values from sweepledger.yaml for the placeholders in the files of `base/platform/team`.

The CronJob of expiry runs in the trials' namespace, because their claims are there. Sync has its own CronJob,
so that neither a store nor its client's libraries can keep results from being recorded, or see the credential for git.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import from_base
from sweepledger.render.pod import authorities_mount, authorities_volume, bucket_client, bucket_secrets
from sweepledger.render.scheduling import scheduling_fields
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import EGRESS_LABEL
from sweepledger.structs.node_pool import Pool, capacity
from sweepledger.structs.platform import GitSource, Names
from sweepledger.structs.settings import (
    COLLECTOR_IMAGE,
    GIT_EGRESS,
    CollectorSettings,
    Dataset,
    NetworkSettings,
    ResultsSettings,
    TrialSettings,
)
from sweepledger.structs.settings.results import Nfs

TEAM = "platform/team/v1"
"""The folder of the files below `base/`."""
Words = dict[str, Any]

SYNC_IMAGE = "sync"
"""The name of the image with the collector and the libraries of stores."""

WORK = "/sweep/work"
CREDENTIAL = "/sweep/git"

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
"""Key of the Secret that signs results, which the credential is not in; without it, they are unsigned."""

SSH_COMMAND = (
    f"ssh -i {CREDENTIAL}/identity -o IdentitiesOnly=yes -o BatchMode=yes "
    f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={CREDENTIAL}/known_hosts"
)

QUOTA_RUNS = 8
"""How often the collector's namespace has room for its memory."""
SYNC_MEMORY = 2 * 1024**3
"""Bytes for the job that writes results to stores, twice: one that ends may still be there."""


def words(
    names: Names,
    trials: TrialSettings,
    network: NetworkSettings,
    results: ResultsSettings,
    collector: CollectorSettings,
    source: GitSource,
) -> Words:
    """Return the placeholder values of all files, except files with several copies."""
    expires, pools = results.keep_days is not None, trials.pools.values()
    # Nothing bounds all trials together if a pool has no maximum number of nodes.
    amounts = {} if any(pool.max_nodes is None for pool in pools) else capacity(*pools)
    return {
        **_access(results, source),
        "if-expiry": {} if expires else None,
        "if-sync": {} if results.sync else None,
        "if-distributed": {} if source.shapes else None,
        "if-private": None if source.is_public else {},
        "cron-jobs": "1" if expires else "0",
        "capacity": {f"requests.{name}": amount for name, amount in amounts.items()},
        "largest-pod": _largest_pod(pools),
        "collector-room": str(
            QUOTA_RUNS * quantities.whole_quantity(collector.memory) + (SYNC_MEMORY if results.sync else 0)
        ),
        **_clone(trials, network, source),
        **_collector(names, trials, results, collector),
        **_expiry(network, results),
        **_stores(results),
    }


def _access(results: ResultsSettings, source: GitSource) -> Words:
    bucket, identities = results.bucket, dict[str, Mapping[str, str]]()
    if bucket is not None:
        identities = {
            "trial-identity": bucket.identity,
            "collector-identity": bucket.collector_identity,
            "expiry-identity": bucket.expiry_identity,
        }
    return {
        **dict.fromkeys(("trial-identity", "collector-identity", "expiry-identity")),
        **{word: dict(sorted(identity.items())) for word, identity in identities.items() if identity},
        "release": "patch" if results.store.facts.holds_pods else None,
        "reads-workloads": [
            {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list"]}
            for kind in source.custom_kinds
        ],
    }


def _largest_pod(pools: Iterable[Pool]) -> Manifest | None:
    nodes = [pool.node for pool in pools]
    if not nodes:
        return None
    cpu = max((node.cpu for node in nodes), key=quantities.parse_quantity)
    memory = max((node.memory for node in nodes), key=quantities.parse_quantity)
    return {"type": "Pod", "max": {"cpu": cpu, "memory": memory}}


def _clone(trials: TrialSettings, network: NetworkSettings, source: GitSource) -> Words:
    """Return the placeholder values that all pods with a clone of the repository share."""
    variables = {
        **network.client_variables(network.egress),
        "HOME": WORK,
        "TMPDIR": WORK,
        "GIT_TERMINAL_PROMPT": "0",
        "SWEEP_TRUSTED_CLONE": f"{WORK}/repository",  # its configuration names the credential helper
        **({"GIT_SSH_COMMAND": SSH_COMMAND} if source.scheme == "ssh" else {}),
    }
    # Git's configuration for a password, for this server only; the clone keeps it. A key is in the environment.
    has_password = source.scheme in {"https", "http"}
    helper = f"--config=credential.{source.origin}.helper={CREDENTIAL_HELPER}" if has_password else None
    images = {
        name: trials.images[name].reference if name in trials.images else f"sweepledger.invalid/{name}"
        for name in (COLLECTOR_IMAGE, SYNC_IMAGE)
    }
    secret = trials.image_pull_secret
    return {
        "url": source.url,
        "branch": source.branch,
        "write-credential": helper,
        "read-credential": None if source.is_public else helper,
        "git-environment": [{"name": name, "value": value} for name, value in sorted(variables.items())],
        "authorities-mount": authorities_mount(network.authorities),
        "authorities-volume": authorities_volume(network.authorities),
        "pull-secrets": None if secret is None else [{"name": secret}],
        **{f"{name}-image": image for name, image in images.items()},
        **{f"{name}-suspended": name not in trials.images for name in images},
    }


def _collector(
    names: Names, trials: TrialSettings, results: ResultsSettings, collector: CollectorSettings
) -> Words:
    pool, priority, bucket = trials.pool(collector.pool), collector.priority_class, results.bucket
    nodes = {} if pool is None else scheduling_fields(pool, has_gpus=False)
    client = {"env": [], "volumeMounts": []} if bucket is None else bucket_client(bucket)
    on_volume, minutes = results.store.facts.is_shared, results.every_minutes
    # A run ends before the next one, which would be left out otherwise.
    seconds = max(minutes * 60 - WATCH_MARGIN, WATCH_MARGIN)
    return {
        # From one hour on, intervals are whole hours.
        "schedule": f"*/{minutes} * * * *"
        if minutes < MINUTES
        else f"0 */{min(minutes // MINUTES, 23)} * * *",
        # With a queue, Kueue chooses the nodes.
        "collector-queue": None if pool is None else pool.queue,
        "collector-nodes": {**nodes, **({} if priority is None else {"priorityClassName": priority})},
        "collector-memory": collector.memory,
        "collector-disk": collector.disk,
        "if-results-volume": {} if on_volume else None,
        "results-option": "--results=/sweep/results" if on_volume else None,
        "results-claim": results.claim,
        "in-cluster": None if names.cluster is None else f"--in={names.cluster}",
        "watch": f"--watch={seconds}" if collector.watches else None,
        "identity-labels": {} if bucket is None else bucket.pod_labels,
        "bucket-environment": client["env"],
        "bucket-mounts": client["volumeMounts"],
        "bucket-volumes": [] if bucket is None else bucket_secrets(bucket),
    }


def _expiry(network: NetworkSettings, results: ResultsSettings) -> Words:
    bucket, proxy = results.bucket, network.proxy
    opened = [GIT_EGRESS, *([bucket.egress] if bucket else []), *([proxy.egress] if proxy else [])]
    claims = {volume: claim for volume, claim in results.claims.items() if claim != results.claim}
    return {
        "expiry-egress": {f"{EGRESS_LABEL}{name}": "true" for name in opened},
        "if-claims": {} if results.claims else None,
        "expiry-results-option": "--results=/sweep/results" if results.claims else None,
        "claim-options": [f"--{name}=/sweep/{name}" for name in claims],
        "claim-mounts": [{"name": name, "mountPath": f"/sweep/{name}"} for name in claims],
        "claim-volumes": [
            {"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()
        ],
    }


def _stores(results: ResultsSettings) -> Words:
    secrets = {name: store.secret for name, store in sorted(results.sync.items()) if store.secret is not None}
    return {
        "store-mounts": [
            {"name": f"store-{name}", "mountPath": f"/sweep/stores/{name}", "readOnly": True}
            for name in secrets
        ],
        "store-volumes": [
            {"name": f"store-{name}", "secret": {"secretName": secret, "defaultMode": 0o440}}
            for name, secret in secrets.items()
        ],
    }


def volumes(
    names: Names, results: ResultsSettings, datasets: Sequence[Dataset], bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the volumes of the NFS exports in the settings: results twice, once read-only; datasets read-only.

    Two datasets that share a claim share a volume.
    """
    export, claim, trials = results.nfs, results.claim, names.trials
    made = list[tuple[str, str, str, Nfs, bool]]()
    if export is not None and results.store.facts.is_shared:
        made.append((f"{trials}-{claim}", trials, claim, export, False))
        made.append((f"{trials}-{claim}-read", names.collector, claim, export, True))
    exports = {one.claim: one.nfs for one in datasets if one.claim is not None and one.nfs is not None}
    made += [(f"{trials}-data-{data}", trials, data, nfs, True) for data, nfs in exports.items()]
    return [
        manifest
        for volume, namespace, claim, export, reads in made
        for manifest in from_base(
            bases[f"{TEAM}/volume.yaml"],
            names,
            {
                "volume": volume,
                "namespace": namespace,
                "claim": claim,
                "mode": "ReadOnlyMany" if reads else "ReadWriteMany",
                "read-option": "ro" if reads else None,
                "reads-only": reads,
                "server": export.server,
                "path": export.path,
            },
        )
    ]
