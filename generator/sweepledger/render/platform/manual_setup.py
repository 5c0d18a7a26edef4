"""Setup steps for people: Secrets, the results folder, signing keys, the git server, kubectl commands."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sweepledger.controllers import GITOPS
from sweepledger.render.platform.objects import BANNER
from sweepledger.render.platform.team import SIGNING_KEY
from sweepledger.structs import pod_fields
from sweepledger.structs.kubernetes import (
    COLLECTOR_ACCOUNT,
    GIT_READ_SECRET,
    GIT_SIGNING_SECRET,
    GIT_WRITE_SECRET,
    STORE_SEALS_KEY,
    TRIAL_USER,
    WRITE_TEST_TITLE,
)
from sweepledger.structs.names import IDENTITY_EMAIL
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.platform import GitSource, Names, RequiredSecret, platform_folder
from sweepledger.structs.settings import (
    BucketSettings,
    Cloud,
    CodeSource,
    CollectorSettings,
    Controller,
    NextRoundMode,
    PlatformSettings,
    ResultsMode,
    ResultsSettings,
    TrialSettings,
)
from sweepledger.structs.settings.network import Authorities
from sweepledger.structs.values import bytes_digest

HOOK_BASE = "platform/team/v1/pre-receive.sh"
HOOK_FILE = "clusters/pre-receive.sh"
RULESET_FILE = "clusters/push-ruleset.json"
SIGNERS_FILE = "clusters/allowed_signers"


@dataclass(frozen=True, slots=True)
class RequiredObject:
    """An object that the settings name, but neither the platform nor `sweep` creates."""

    resource: str
    """The plural of its kind, with the API group."""
    kind: str
    namespace: str | None
    """None: it belongs to the cluster."""
    name: str
    purpose: str

    @property
    def title(self) -> str:
        """Return its kind, name and namespace as text."""
        return f"{self.kind} {self.name if self.namespace is None else f'{self.namespace}/{self.name}'}"


NAMED_KINDS = {
    "priorityClassName": ("priorityclasses.scheduling.k8s.io", "PriorityClass", False),
    "runtimeClassName": ("runtimeclasses.node.k8s.io", "RuntimeClass", False),
    "serviceAccountName": ("serviceaccounts", "ServiceAccount", True),
}
"""Resource and kind of the objects that fields of pods name, and whether they are in a namespace."""


def required_objects(
    names: Names, trials: TrialSettings, authorities: Authorities | None, collector: CollectorSettings
) -> tuple[RequiredObject, ...]:
    """List once each object, besides Secrets and volumes, that pods need and a person must create."""
    pools = [(f"pool {name}", pool.pod) for name, pool in sorted(trials.pools.items())]
    maps = [] if authorities is None else [authorities.config_map]
    made = [
        RequiredObject("configmaps", "ConfigMap", place, name, "authorities")
        for name in maps
        for place in (names.trials, names.collector)
    ]
    for purpose, value in (("trials", trials), ("collector", collector), *pools):
        for field, name in pod_fields.allowed(value):
            if field in NAMED_KINDS:
                resource, kind, is_namespaced = NAMED_KINDS[field]
                space = names.trials if is_namespaced else None
                made.append(RequiredObject(resource, kind, space, name, purpose))
    for purpose, pod in pools:
        templates = "resourceclaimtemplates.resource.k8s.io", "ResourceClaimTemplate", names.trials
        made += [RequiredObject(*templates, name, purpose) for name in sorted(set(pod.claims.values()))]
    first: dict[str, RequiredObject] = {}
    for one in made:
        first.setdefault(one.title, one)
    return tuple(first.values())


def checklist(
    names: Names, pools: Iterable[Pool], secrets: Iterable[RequiredSecret], objects: Iterable[RequiredObject]
) -> tuple[str, ...]:
    """Return the names of the checks of `sweep cluster doctor` that show a person's finished steps, in this order."""
    queues = sorted({pool.queue for pool in pools if pool.queue})
    return (
        f"{platform_folder(names.cluster)}/ on the branch",
        *(f"Namespace {namespace}" for namespace in (names.trials, names.collector)),
        *dict.fromkeys(secret.title for secret in secrets if not secret.is_elsewhere),
        *(one.title for one in objects),
        *(f"LocalQueue {names.trials}/{queue}" for queue in queues),
        f"collector of {names.collector}",
        WRITE_TEST_TITLE,
    )


BUCKET_VARIABLES: Mapping[Cloud, tuple[str, ...]] = {
    Cloud.AZURE: ("AZURE_STORAGE_ACCOUNT_KEY",),
    Cloud.GOOGLE: ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    Cloud.S3: ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
}
"""Variables of a credential for a bucket, the usual ones."""

STORE_VARIABLES = {
    "mlflow": ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"),
    "optuna": ("PGUSER", "PGPASSWORD"),
}
"""Variables that the clients of stores read credentials from, the usual ones."""


def required_secrets(
    names: Names,
    trials: TrialSettings,
    code: CodeSource | None,
    results: ResultsSettings,
    of_controller: Iterable[RequiredSecret],
    source: GitSource,
) -> Iterator[RequiredSecret]:
    """Yield the Secrets that the platform reads, beginning with those of its controller."""
    keys = source.credential_keys
    yield from of_controller
    yield RequiredSecret("collector, write", names.collector, GIT_WRITE_SECRET, keys)
    yield RequiredSecret("collector, signing", names.collector, GIT_SIGNING_SECRET, (SIGNING_KEY,))
    for name, store in sorted(results.sync.items()):
        if store.secret is not None:
            yield RequiredSecret(f"sync to {name}", names.collector, store.secret, STORE_VARIABLES[name])
    if results.sync and not source.is_public:
        yield RequiredSecret("sync, read", names.collector, GIT_READ_SECRET, keys)
    if results.keep_days is not None and not source.is_public:
        yield RequiredSecret("expiry, read", names.trials, GIT_READ_SECRET, keys)
    if trials.image_pull_secret is not None:
        pull = partial(RequiredSecret, type="kubernetes.io/dockerconfigjson")
        for place in (names.trials, names.collector):
            yield pull("image pull", place, trials.image_pull_secret, (".dockerconfigjson",))
    yield from _of_pods(names, trials, code, results.bucket)


def _of_pods(
    names: Names, trials: TrialSettings, code: CodeSource | None, bucket: BucketSettings | None
) -> Iterator[RequiredSecret]:
    if code is not None and code.secret is not None:
        yield RequiredSecret("code fetch", names.trials, code.secret, ("username", "password"))
    # A bucket's clients may have other rights in each of the namespaces.
    for who, place in (("trials", names.trials), ("collector", names.collector)):
        if bucket is not None and bucket.secret is not None:
            yield RequiredSecret(f"bucket, {who}", place, bucket.secret, BUCKET_VARIABLES[bucket.cloud])
        if bucket is not None and bucket.seals is not None:
            yield RequiredSecret("bucket, seals", place, bucket.seals, (STORE_SEALS_KEY,))
    for name in sorted({reference.secret for reference in trials.secrets.values()}):
        listed = {reference.key for reference in trials.secrets.values() if reference.secret == name}
        yield RequiredSecret("trials", names.trials, name, tuple(sorted(listed)))


def results_folder_commands(results: Sequence[ResultsSettings]) -> tuple[str, ...]:
    """Return the commands that create the root of the results export on the NFS server of each cluster.

    The kubelet makes a trial's folder as root with the mode of the folder above it, and fsGroup does
    nothing on NFS: a trial can write because of the group and its setgid bit.
    """
    exports = [own.nfs for own in results if own.store.facts.is_shared]
    paths = dict.fromkeys("<the export's folder>" if export is None else export.path for export in exports)
    return tuple(
        command
        for path in paths
        for command in (f"mkdir -p {path}", f"chown root:{TRIAL_USER} {path}", f"chmod 2770 {path}")
    )


def pre_receive_hook(
    mode: ResultsMode, next_round: NextRoundMode, source: GitSource, bases: Mapping[str, bytes]
) -> bytes:
    """Write the pre-receive hook that confines the collector's credential on the git server."""
    head = (
        f"#!/bin/sh\n# {BANNER}\nset -eu\n"
        f"branch='{source.branch}' mode='{mode}' next='{next_round}' "
        f"collector='{COLLECTOR_ACCOUNT}'\n"
    )
    return head.encode() + bases[HOOK_BASE]


def key_pair_commands() -> tuple[str, str]:
    """Return the commands that create the key pair for signing results, and that list it."""
    make = f"ssh-keygen -q -t ed25519 -N '' -C {IDENTITY_EMAIL} -f ./{SIGNING_KEY}"
    return make, f"""printf '%s namespaces="git" %s\\n' {IDENTITY_EMAIL} "$(cat ./{SIGNING_KEY}.pub)\""""


def allowed_signers(signers: Iterable[str]) -> bytes:
    """Write the settings' signers as the file that git reads."""
    return "".join(f"{line}\n" for line in (f"# {BANNER}", *signers)).encode()


PEOPLE = (2, 4, 5)
"""GitHub's roles of a repository that may write, by number: maintain, write, admin."""


def push_ruleset(controller: Controller, clusters: Sequence[str | None]) -> bytes:
    """Write a push ruleset of GitHub: people may change every path; deploy keys and Apps only unprotected ones."""
    people = [{"actor_id": role, "actor_type": "RepositoryRole", "bypass_mode": "always"} for role in PEOPLE]
    parameters = {"restricted_file_paths": _protected_paths(controller, clusters)}
    rules = {
        "name": "the collector writes results only",
        "target": "push",
        "enforcement": "active",
        "bypass_actors": people,
        "rules": [{"type": "file_path_restriction", "parameters": parameters}],
    }
    return f"{json.dumps(rules, indent=2)}\n".encode()


def _protected_paths(controller: Controller, places: Sequence[str | None]) -> list[str]:
    """List the paths that the collector must not change; in clusters/ it may remove the files of batches."""
    clusters = ["clusters/**/*"]
    if GITOPS[controller].batch_kind is not None:
        clusters = ["clusters/*", "clusters/extra/**/*"]
        for cluster in places:
            place = platform_folder(cluster)
            clusters += [] if cluster is None else [f"{place}/*"]
            clusters += [f"{place}/{controller}/*"]
            clusters += [f"{place}/{name}/**/*" for name in ("platform", "optional", "monitoring")]
    return [".github/**/*", "sweeps/**/*", "base/**/*", *clusters, "sweepledger.yaml"]


NO_OWNER = "@YOUR-ORG/YOUR-PLATFORM-TEAM"
"""What `sweep cluster init` writes until somebody names a team."""
OWNED_PATHS = ("/base/", "/clusters/", "/sweepledger.yaml")


def codeowners(workflows: Iterable[str]) -> tuple[str, ...]:
    """Return the lines of CODEOWNERS for workflows and for the files that decide where and how code runs."""
    return tuple(f"{path} {NO_OWNER}" for path in (*workflows, *OWNED_PATHS))


def apply_command(source: GitSource, what: str, manager: str | None = None) -> str:
    """Return the command that applies files for the first time.

    Each repository has its own field manager, so an object that another repository applied is a conflict.
    """
    manager = manager or f"sweepledger-{bytes_digest(source.url.encode()).removeprefix('sha256:')[:8]}"
    return f"kubectl apply --server-side --field-manager={manager} {what}"


def apply_platform_command(cluster: str | None, controller: Controller, source: GitSource) -> str:
    """Return the command that applies `clusters/platform`.

    A field with two managers stays in the cluster when one of them drops it. A controller that keeps the platform
    applied must therefore be the only manager.
    """
    return apply_command(source, f"-k {platform_folder(cluster)}/platform", GITOPS[controller].field_manager)


def apply_controller_command(cluster: str | None, controller: Controller, source: GitSource) -> str:
    """Return the command that applies the objects that the controller reads."""
    return apply_command(source, f"-k {platform_folder(cluster)}/{controller.value}")


def removal_steps(names: Names, platform: PlatformSettings) -> tuple[str, ...]:
    """Return the commands that take a platform out of a cluster, in order: creators go before their objects."""
    place, controller = platform_folder(names.cluster), platform.controller.value
    chosen = "" if names.cluster is None else f" --in {names.cluster}"
    batches = GITOPS[platform.controller].removal(names, platform)
    return (
        "sweep cancel NAME    # each active sweep, merge it, and wait: `sweep status` shows none, all are recorded",
        batches + "    # with the Jobs that are left",
        f"sweep cluster doctor{chosen} --release    # pods that are kept for their records would hold the namespace",
        f"kubectl delete -k {place}/{controller}",
        *((f"kubectl delete -k {place}/monitoring",) if platform.monitoring.enabled else ()),
        f"kubectl delete -k {place}/platform    # data of volumes and buckets stay",
        "delete the collector's key or App, the webhooks and the rulesets on the git server",
        "set `controller: none` in sweepledger.yaml, `git rm -r clusters`, and merge; the records stay in git",
    )
