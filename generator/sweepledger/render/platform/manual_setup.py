"""Setup steps for people: Secrets, the results folder, signing keys, the git server, kubectl commands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sweepledger.render.platform.cron_jobs import SIGNER, SIGNING_KEY
from sweepledger.render.platform.notifications import NOTIFY_SECRET, STATUS_SECRET
from sweepledger.render.platform.objects import BANNER, WEBHOOK_SECRET, Names, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import (
    COLLECTOR_ACCOUNT,
    GIT_READ_SECRET,
    GIT_WRITE_SECRET,
    STORE_SEALS_KEY,
    TRIAL_USER,
)
from sweepledger.structs.settings import Cloud, Controller, ResultsMode, ResultsStore, Settings
from sweepledger.structs.values import bytes_digest

HOOK_BASE = "collector/v1/pre-receive.sh"
HOOK_FILE = "clusters/pre-receive.sh"
SIGNERS_FILE = "clusters/allowed_signers"


@dataclass(frozen=True, slots=True)
class RequiredSecret:
    """A Secret that a person makes; its content is never in git, nor on a command line."""

    purpose: str
    namespace: str
    name: str
    keys: tuple[str, ...]
    """Each is read from a file of its own."""
    type: str | None = None
    literals: tuple[str, ...] = ()
    label: str | None = None
    is_elsewhere: bool = False
    """It lies in the cluster of Argo CD, which is not that of the trials."""

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands that create it from files named like its keys."""
        words = ["kubectl", "--namespace", self.namespace, "create", "secret", "generic", self.name]
        words += [f"--type={self.type}"] if self.type else []
        words += [f"--from-literal={literal}" for literal in self.literals]
        words += [f"--from-file={key}=./{key.lstrip('.')}" for key in self.keys]
        make = " ".join(words)
        if self.label is None:
            return (make,)
        return (make, f"kubectl --namespace {self.namespace} label secret {self.name} {self.label}")


@dataclass(frozen=True, slots=True)
class RequiredObject:
    """An object that the settings name, and that neither the platform nor `sweep` makes."""

    resource: str
    """The plural of its kind, with the API group."""
    kind: str
    namespace: str | None
    """None: it belongs to the cluster."""
    name: str
    purpose: str

    @property
    def title(self) -> str:
        """Return kind and name, with the namespace."""
        return f"{self.kind} {self.name if self.namespace is None else f'{self.namespace}/{self.name}'}"


def required_objects(settings: Settings) -> tuple[RequiredObject, ...]:
    """List the objects beside Secrets and volumes that pods need, and a person makes."""
    names, made = Names.of(settings), list[RequiredObject]()
    if settings.network.authorities is not None:
        for place in (names.trials, names.collector):
            name, purpose = settings.network.authorities.config_map, "authorities"
            made.append(RequiredObject("configmaps", "ConfigMap", place, name, purpose))
    classes = [
        (settings.trials.priority_class, "trials"),
        (settings.platform.collector.priority_class, "collector"),
    ]
    classes += [
        (pool.pod.priority_class, f"pool {name}") for name, pool in sorted(settings.trials.pools.items())
    ]
    for priority, purpose in classes:
        if priority is not None:
            resource = "priorityclasses.scheduling.k8s.io"
            made.append(RequiredObject(resource, "PriorityClass", None, priority, purpose))
    for name, pool in sorted(settings.trials.pools.items()):
        pod, purpose = pool.pod, f"pool {name}"
        if pod.runtime_class is not None:
            resource = "runtimeclasses.node.k8s.io"
            made.append(RequiredObject(resource, "RuntimeClass", None, pod.runtime_class, purpose))
        if pod.service_account is not None:
            account = pod.service_account
            made.append(RequiredObject("serviceaccounts", "ServiceAccount", names.trials, account, purpose))
        for template in sorted(set(pod.claims.values())):
            resource, kind = "resourceclaimtemplates.resource.k8s.io", "ResourceClaimTemplate"
            made.append(RequiredObject(resource, kind, names.trials, template, purpose))
    first: dict[str, RequiredObject] = {}
    for one in made:
        first.setdefault(one.title, one)
    return tuple(first.values())


def required_secrets(settings: Settings, source: GitSource) -> tuple[RequiredSecret, ...]:
    """List the Secrets that the platform reads."""
    names = Names.of(settings)
    keys = ("identity", "known_hosts") if source.scheme == "ssh" else ("username", "password")
    made = [] if source.is_public else [_controller(settings, source, keys)]
    if settings.platform.controller is Controller.FLUX:
        made.append(RequiredSecret("webhook of the git server", names.flux, WEBHOOK_SECRET, ("token",)))
    made.append(RequiredSecret("collector, write", names.collector, GIT_WRITE_SECRET, (*keys, SIGNING_KEY)))
    made += _sync(settings, source, keys)
    if settings.results.keep_days is not None and not source.is_public:
        made.append(RequiredSecret("expiry, read", names.trials, GIT_READ_SECRET, keys))
    if settings.trials.image_pull_secret is not None:
        made += [
            RequiredSecret(
                "image pull",
                place,
                settings.trials.image_pull_secret,
                (".dockerconfigjson",),
                type="kubernetes.io/dockerconfigjson",
            )
            for place in (names.trials, names.collector)
        ]
    if settings.platform.controller is Controller.FLUX and settings.platform.monitoring.enabled:
        made += _flux_notifications(settings)
    if settings.git.code is not None and settings.git.code.secret is not None:
        made.append(
            RequiredSecret("code fetch", names.trials, settings.git.code.secret, ("username", "password"))
        )
    return (*made, *_bucket(settings), *_listed(settings))


BUCKET_VARIABLES: Mapping[Cloud, tuple[str, ...]] = {
    Cloud.AZURE: ("AZURE_STORAGE_ACCOUNT_KEY",),
    Cloud.GOOGLE: ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    Cloud.S3: ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
}
"""Variables of a credential for a bucket, the usual ones."""


def _bucket(settings: Settings) -> list[RequiredSecret]:
    """Return the Secrets of a bucket's clients: they may have other rights in each of the namespaces."""
    bucket, names, made = settings.results.bucket, Names.of(settings), list[RequiredSecret]()
    if bucket is None:
        return made
    for who, place in (("trials", names.trials), ("collector", names.collector)):
        if bucket.secret is not None:
            purpose = f"bucket, {who}"
            made.append(RequiredSecret(purpose, place, bucket.secret, BUCKET_VARIABLES[bucket.cloud]))
        if bucket.seals is not None:
            made.append(RequiredSecret("bucket, seals", place, bucket.seals, (STORE_SEALS_KEY,)))
    return made


STORE_VARIABLES = {
    "mlflow": ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"),
    "optuna": ("PGUSER", "PGPASSWORD"),
}
"""Variables that the clients of stores read credentials from, the usual ones."""


def _sync(settings: Settings, source: GitSource, keys: tuple[str, ...]) -> list[RequiredSecret]:
    stores, place = settings.results.sync, Names.of(settings).collector
    made = [
        RequiredSecret(f"sync to {name}", place, store.secret, STORE_VARIABLES[name])
        for name, store in sorted(stores.items())
        if store.secret is not None
    ]
    if stores and not source.is_public:
        made.append(RequiredSecret("sync, read", place, GIT_READ_SECRET, keys))
    return made


def _flux_notifications(settings: Settings) -> list[RequiredSecret]:
    place, monitoring = Names.of(settings).flux, settings.platform.monitoring
    messages = RequiredSecret("messages: the address of the service", place, NOTIFY_SECRET, ("address",))
    statuses = RequiredSecret("commit statuses, write", place, STATUS_SECRET, ("token",))
    return [*([messages] if monitoring.notify else []), *([statuses] if monitoring.commit_status else [])]


def _controller(settings: Settings, source: GitSource, keys: tuple[str, ...]) -> RequiredSecret:
    names, purpose = Names.of(settings), "controller, read"
    if settings.platform.controller is Controller.FLUX:
        return RequiredSecret(purpose, names.flux, GIT_READ_SECRET, keys)
    return RequiredSecret(
        purpose,
        settings.platform.argocd.namespace,
        f"{names.trials}-git-read",
        ("sshPrivateKey",) if source.scheme == "ssh" else keys,
        literals=("type=git", f"url={source.url}"),
        label="argocd.argoproj.io/secret-type=repository",
        is_elsewhere=settings.platform.argocd.is_remote,
    )


def _listed(settings: Settings) -> list[RequiredSecret]:
    keys: dict[str, set[str]] = {}
    for one in settings.trials.secrets.values():
        keys.setdefault(one.secret, set()).add(one.key)
    place = Names.of(settings).trials
    return [RequiredSecret("trials", place, name, tuple(sorted(held))) for name, held in sorted(keys.items())]


def results_folder_commands(settings: Settings) -> tuple[str, ...]:
    """Return the commands that create the root of the results export on each NFS server.

    The kubelet makes a trial's folder as root with the mode of the folder above it, and fsGroup does
    nothing on NFS: the group and its setgid bit are what lets a trial write.
    """
    if settings.results.store is not ResultsStore.VOLUME:
        return ()
    exports = [own.results.nfs for own in settings.in_clusters]
    paths = dict.fromkeys("<the export's folder>" if export is None else export.path for export in exports)
    return tuple(
        command
        for path in paths
        for command in (f"mkdir -p {path}", f"chown root:{TRIAL_USER} {path}", f"chmod 2770 {path}")
    )


def pre_receive_hook(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> bytes:
    """Write the pre-receive hook that confines the collector's credential on the git server."""
    head = (
        f"#!/bin/sh\n# {BANNER}\nset -eu\n"
        f"branch='{source.branch}' mode='{settings.results.mode}' next='{settings.git.next}' "
        f"collector='{COLLECTOR_ACCOUNT}'\n"
    )
    return head.encode() + bases[HOOK_BASE]


def key_pair_commands() -> tuple[str, str]:
    """Return the commands that create the key pair for signing results, and that list it."""
    make = f"ssh-keygen -q -t ed25519 -N '' -C {SIGNER} -f ./{SIGNING_KEY}"
    return make, f"""printf '%s namespaces="git" %s\\n' {SIGNER} "$(cat ./{SIGNING_KEY}.pub)\""""


def allowed_signers(settings: Settings) -> bytes:
    """Write the settings' signers as the file that git reads."""
    return "".join(f"{line}\n" for line in (f"# {BANNER}", *settings.git.signers)).encode()


def ruleset(settings: Settings, source: GitSource, workflows: Iterable[str]) -> str:
    """Return the same for a server without hooks, whose workflows are in these folders and files."""
    past = ", past which deploy keys may push" if settings.results.mode is ResultsMode.PUSH else ""
    # Several collectors only push: by merges they would contend for one branch.
    instead = "" if settings.fleet.clusters else ": use --results-mode branch there"
    return (
        "where the server runs no hooks (GitHub): give the collector a deploy key with write access, and no other "
        f"such key to anybody; let a ruleset on {source.branch} refuse force pushes and deletions and "
        f"require `sweep check`{past}; let a push ruleset that people may bypass, and deploy keys may not, "
        f"restrict the paths {', '.join(_protected_paths(settings, workflows))} (a public repository has no push "
        f"rulesets{instead})"
    )


def _protected_paths(settings: Settings, workflows: Iterable[str]) -> list[str]:
    """List the paths that are not the collector's; it takes something away in clusters/ with Flux only."""
    clusters = ["clusters/**/*"]
    if settings.platform.controller is Controller.FLUX:
        clusters = ["clusters/*", "clusters/extra/**/*"]
        for own in settings.in_clusters:
            place = platform_folder(own.fleet.cluster)
            clusters += [] if own.fleet.cluster is None else [f"{place}/*"]
            clusters += [f"{place}/flux/*"]
            clusters += [f"{place}/{name}/**/*" for name in ("platform", "optional", "monitoring")]
    ours = [f"{path[1:]}**/*" if path.endswith("/") else path[1:] for path in workflows]
    return [*ours, "sweeps/**/*", "base/**/*", *clusters, "sweepledger.yaml"]


OWNED_PATHS = ("/base/", "/clusters/", "/sweepledger.yaml")


def codeowners(workflows: Iterable[str]) -> tuple[str, ...]:
    """Return the lines of CODEOWNERS for workflows and for the files that decide where and how code runs."""
    return tuple(f"{path} @<the platform team>" for path in (*workflows, *OWNED_PATHS))


def apply_command(source: GitSource, what: str) -> str:
    """Return the command that applies files for the first time.

    Each repository has a field manager of its own: objects that another one has applied are a conflict.
    """
    manager = f"sweepledger-{bytes_digest(source.url.encode()).removeprefix('sha256:')[:8]}"
    return f"kubectl apply --server-side --field-manager={manager} {what}"


def apply_platform_command(settings: Settings, source: GitSource) -> str:
    """Return the command that applies `clusters/platform`.

    What two managers own stays in the cluster when one takes it out of git: Argo CD is to be the only one.
    """
    folder = f"{platform_folder(settings.fleet.cluster)}/platform"
    if settings.platform.controller is Controller.ARGOCD:
        return f"kubectl apply --server-side --field-manager=argocd-controller -k {folder}"
    return apply_command(source, f"-k {folder}")


def apply_controller_command(settings: Settings, source: GitSource) -> str:
    """Return the command that applies the objects that the controller reads."""
    return apply_command(
        source, f"-k {platform_folder(settings.fleet.cluster)}/{settings.platform.controller.value}"
    )
