"""The settings of a repository, which the platform team decides for all sweeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

from sweepledger.problems import Problem
from sweepledger.structs.kubernetes import ARTIFACTS_VOLUME, CHECKPOINTS_VOLUME, RESULTS_VOLUME, TRIAL_ACCOUNT
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import LOCAL_IMAGE

T = TypeVar("T")


def _empty_mapping() -> Mapping[str, T]:
    return MappingProxyType({})


API_SERVER_EGRESS = "api-server"
"""The egress to the cluster's API server: for the collector, never for trials."""
GIT_EGRESS = "git"
"""The egress that leads to the git server, if the settings have it."""
PEERS_EGRESS = "peers"
"""Lets pods of one distributed trial reach each other; a reserved name."""


COLLECTOR_IMAGE = "collector"
"""The name among `images` of the image with this command and git; the sidecar of a bucket runs in it, too."""


class GenerateMode(StrEnum):
    """When the overlay of a batch is written."""

    IN_PULL_REQUEST = "in-pull-request"
    ON_MERGE = "on-merge"


class NextRoundMode(StrEnum):
    """Who adds the next round of a search when the previous one is recorded."""

    REVIEW = "review"
    """The author, with `sweep next` and one pull request per round."""
    WORKFLOW = "workflow"
    """A workflow on the branch, with `sweep next --push`."""
    COLLECTOR = "collector"
    """The commit that records a round also adds the next."""


class Controller(StrEnum):
    """What applies the active overlays."""

    NONE = "none"
    """`sweep local`, or the user."""
    ARGOCD = "argocd"
    FLUX = "flux"
    """Each active batch has exactly one Kustomization file in `clusters/flux/active/`."""
    SUBMIT = "submit"
    """`sweep submit`, for clusters that forbid GitOps because they generate names."""


class ResultsMode(StrEnum):
    """How the collector's commits reach the branch."""

    PUSH = "push"
    BRANCH = "branch"


class ResultsStore(StrEnum):
    """Where trials leave their records."""

    API = "api"
    """In the termination messages of their pods; files are not kept."""
    BUCKET = "bucket"
    """In object storage, where a sidecar moves files; what counts, the termination messages say."""
    VOLUME = "volume"
    """On a volume that every node can mount."""

    @property
    def keeps_files(self) -> bool:
        """Whether output, artifacts and checkpoints outlive the pod."""
        return self is not ResultsStore.API

    @property
    def holds_pods(self) -> bool:
        """Whether a finalizer keeps pods until their termination messages are recorded."""
        return self is not ResultsStore.VOLUME


MAX_API_TRIALS = 5_000
"""Trials of a batch whose pods the API server has to keep until the results are recorded."""


class PullRequestResults(StrEnum):
    """Which results a pull request may bring."""

    SIGNED = "signed"
    """Those of commits that a listed key signed."""
    MARKED = "marked"
    """Those, and results of new batches that are marked as made on a laptop."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Image:
    """A container image that specs name."""

    name: str
    repository: str
    digest: str
    tag: str | None = None
    """Tag that `sweep pin` resolved; for information, because the digest decides."""

    @property
    def reference(self) -> str:
        """The image reference in a pod."""
        return f"{self.repository}{f':{self.tag}' if self.tag else ''}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Nfs:
    """An NFS export for a static PersistentVolume."""

    server: str
    path: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data that specs name."""

    name: str
    claim: str
    """The PersistentVolumeClaim that contains it."""
    identity: str
    """Content of the folder: `sha256:` over its sorted `<sha256>  <name>` lines, or `version:` and a word."""
    path: str = ""
    """Folder inside the volume; empty: its root."""
    prepare: tuple[str, ...] = ()
    """A command that fills the folder `$SWEEP_DATA` on a machine without the volume."""
    nfs: Nfs | None = None
    """NFS export, if the platform files create the volume."""
    examples: int | None = None
    """Number of training examples; None: unknown."""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A secret value of the cluster, which reaches a trial as a file and is never in git."""

    name: str
    secret: str
    """The Kubernetes Secret."""
    key: str
    variable: str
    """Environment variable of the command that contains the value."""


@dataclass(frozen=True, slots=True)
class Egress:
    """A network destination that specs can request; without one a trial reaches nothing."""

    name: str
    cidrs: tuple[str, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """Where the cluster answers DNS queries; the default is that of kube-dns, CoreDNS and NodeLocal DNSCache."""

    namespace: str | None = None
    """Namespace of the servers' pods; None: they are not pods of the cluster."""
    labels: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Labels of their pods."""
    cidrs: tuple[str, ...] = ()
    """Networks of servers that are not pods."""
    port: int = 53
    """Port on which the servers themselves listen: network policies apply after a Service's translation."""


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """A server that `sweep sync` writes recorded results to."""

    to: str
    """Its address, without credentials."""
    egress: str
    """Name of the egress that leads to it."""
    secret: str | None = None
    """The Kubernetes Secret whose keys are environment variables for its client."""


class Cloud(StrEnum):
    """Whose protocol a bucket speaks, as the scheme of its address."""

    AZURE = "az"
    GOOGLE = "gs"
    S3 = "s3"


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """A bucket for results, and how its clients are let in."""

    url: str
    egress: str
    """Name of the egress that leads to it."""
    endpoint: str | None = None
    """Address of a server with the same protocol; None: the cloud's."""
    region: str | None = None
    account: str | None = None
    """Storage account of a container of Azure."""
    secret: str | None = None
    """The Kubernetes Secret with a credential, a key for each variable; None: the platform gives an identity."""
    seals: str | None = None
    """The Kubernetes Secret with the key of seals."""
    identity: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Annotations of the trials' service account."""
    collector_identity: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Annotations of the collector's service account."""

    @property
    def cloud(self) -> Cloud:
        """Whose protocol it speaks."""
        return Cloud(self.url.partition(":")[0])

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of its clients that are no secret, by the names that they know."""
        names = {
            Cloud.S3: ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"),
            Cloud.AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP"),
            Cloud.GOOGLE: ("GOOGLE_BASE_URL", "GOOGLE_ALLOW_HTTP"),
        }
        endpoint, in_the_clear = names[self.cloud]
        values = {
            endpoint: self.endpoint,
            in_the_clear: "true" if self.endpoint is not None and self.endpoint.startswith("http:") else None,
            "AWS_REGION": self.region,
            "AZURE_STORAGE_ACCOUNT_NAME": self.account,
        }
        return {name: value for name, value in sorted(values.items()) if value is not None}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The Kubernetes Secrets that only its sidecars and the collector mount."""
        return tuple(name for name in (self.secret, self.seals) if name is not None)


@dataclass(frozen=True, slots=True)
class ResultsSettings:
    """Where trials write their records, and how these are committed."""

    claim: str = "sweep-results"
    checkpoints: str | None = None
    """Another claim for checkpoints; None: the results volume."""
    artifacts: str | None = None
    """Another claim for artifacts; None: the results volume."""
    mode: ResultsMode = ResultsMode.PUSH
    every_minutes: int = 5
    """Interval of the collector, in minutes."""
    progress_minutes: int | None = None
    """Interval of summaries of running batches on the progress branch, in minutes; None: never."""
    keep_days: int | None = None
    """Retention of a batch's folders on the volumes after its results commit, in days; None: permanent."""
    from_pull_request: PullRequestResults = PullRequestResults.SIGNED
    nfs: Nfs | None = None
    """NFS export, if the platform files create the volumes: once writable and once read-only."""
    sync: Mapping[str, SyncTarget] = field(default_factory=_empty_mapping)
    """Servers that get the recorded results, by the kind of store."""
    store: ResultsStore = ResultsStore.VOLUME
    """Through what records travel from trials to the collector."""
    bucket: BucketSettings | None = None
    """The bucket; None: the store is another."""

    @property
    def volumes(self) -> tuple[str, ...]:
        """The volumes that trials write to; without claims, one that ends with the pod."""
        return tuple(self.claims) or (RESULTS_VOLUME,)

    @property
    def claims(self) -> Mapping[str, str]:
        """The claims that trials write to, by volume; none if the store is no volume."""
        if self.store is not ResultsStore.VOLUME:
            return {}
        claims = {
            RESULTS_VOLUME: self.claim,
            CHECKPOINTS_VOLUME: self.checkpoints,
            ARTIFACTS_VOLUME: self.artifacts,
        }
        return {volume: claim for volume, claim in claims.items() if claim is not None}

    @property
    def checkpoints_volume(self) -> str:
        """The volume that trials write their checkpoints to."""
        return RESULTS_VOLUME if self.checkpoints is None else CHECKPOINTS_VOLUME


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """Where the collector runs in the cluster, and what it may use."""

    pool: str | None = None
    """Pool whose nodes or queue it uses; None: any node."""
    priority_class: str | None = None
    memory: str = "256Mi"
    disk: str = "1Gi"
    watches: bool = False
    """Whether a run collects whenever a batch ends, until the next run is due or no batch is active."""


LOCAL_CLUSTER = "https://kubernetes.default.svc"
"""Argo CD's name for the cluster that it runs in."""


@dataclass(frozen=True, slots=True)
class ArgoCdSettings:
    """Where Argo CD runs, and the cluster in which it creates Jobs."""

    namespace: str = "argocd"
    server: str = LOCAL_CLUSTER
    """Address of the API server that it applies to."""
    cluster: str | None = None
    """Name of a cluster that is registered with it, instead of an address."""

    @property
    def destination(self) -> dict[str, str]:
        """The destination of its Applications, without their namespace."""
        return {"server": self.server} if self.cluster is None else {"name": self.cluster}

    @property
    def is_remote(self) -> bool:
        """Whether trials run in another cluster than Argo CD."""
        return self.destination != {"server": LOCAL_CLUSTER}


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Where an init container fetches the locked code, if the image does not contain it."""

    url: str
    image: str
    """Name of an image with git, among `images`."""
    secret: str | None = None
    """The Kubernetes Secret with `username` and `password`, for a private repository."""


@dataclass(frozen=True, slots=True)
class SubmitSettings:
    """Settings of `sweep submit`."""

    ttl_seconds: int = 604_800
    """Time until the cluster deletes a finished Job; results must be collected before."""


class MessageService(StrEnum):
    """Where the controller sends messages about batches and results."""

    SLACK = "slack"
    MSTEAMS = "msteams"
    GOOGLECHAT = "googlechat"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class Notify:
    """The recipient of messages; its credential is a Secret of the cluster."""

    service: MessageService
    channel: str


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """What `sweep bootstrap` writes to `clusters/monitoring/`."""

    enabled: bool = False
    labels: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Labels of the PrometheusRule, by which a Prometheus selects it."""
    notify: Notify | None = None
    commit_status: bool = False
    """Whether the controller reports on each commit to the git server."""


LOG_LINK_NAMES = ("batch", "namespace", "pod", "sweep", "trial")
"""Names in braces that a link to logs may contain."""


@dataclass(frozen=True, slots=True)
class LogsSettings:
    """Where a log system shows the output of trials."""

    link: str | None = None
    """Address with `LOG_LINK_NAMES` in braces; None: there is no log system."""

    def url(self, **values: str) -> str | None:
        """Return the link with values for all names, escaped; None without a link."""
        if self.link is None:
            return None
        text = self.link
        for name in LOG_LINK_NAMES:
            text = text.replace(f"{{{name}}}", quote(values.get(name, ""), safe=""))
        return text


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Limits for every sweep, in addition to its own budget."""

    max_trials: int | None = None
    max_gpu_hours: float | None = None


@dataclass(frozen=True, slots=True)
class TeamBudget:
    """What the sweeps of a team may use together in a month."""

    name: str
    """Name of the team."""
    sweeps: tuple[str, ...] = ("*",)
    """Patterns of sweep names, `*` for any letters. A sweep counts towards every budget that matches it."""
    gpu_hours: float | None = None
    money: float | None = None
    """In the currency of the repository."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for specs that contain no others."""

    image: str = LOCAL_IMAGE
    """`local`, a name among `images`, or a reference with digest."""
    pool: str | None = None
    retries: int = 0
    timeout_seconds: int = 3600


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a repository; every field has a default, so an empty file will do."""

    namespace: str = "sweeps"
    defaults: Defaults = Defaults()
    branch: str = "main"
    remote: str = "origin"
    repository: str | None = None
    """Address from which the cluster fetches the repository; None: the first bootstrap's."""
    controller: Controller = Controller.NONE
    generate: GenerateMode = GenerateMode.IN_PULL_REQUEST
    next: NextRoundMode = NextRoundMode.REVIEW
    results: ResultsSettings = field(default_factory=ResultsSettings)
    collector: CollectorSettings = CollectorSettings()
    argocd: ArgoCdSettings = ArgoCdSettings()
    limits: SweepLimits = SweepLimits()
    submit: SubmitSettings = SubmitSettings()
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    logs: LogsSettings = LogsSettings()
    currency: str = ""
    """Currency of prices; empty: unknown."""
    budgets: Mapping[str, TeamBudget] = field(default_factory=_empty_mapping)
    code: CodeSource | None = None
    images: Mapping[str, Image] = field(default_factory=_empty_mapping)
    datasets: Mapping[str, Dataset] = field(default_factory=_empty_mapping)
    secrets: Mapping[str, SecretReference] = field(default_factory=_empty_mapping)
    egress: Mapping[str, Egress] = field(default_factory=_empty_mapping)
    dns: DnsSettings | None = None
    """Servers of DNS; None: those that most clusters have."""
    pools: Mapping[str, Pool] = field(default_factory=_empty_mapping)
    labels: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Labels on every object and pod, in addition to the generator's."""
    image_pull_secret: str | None = None
    priority_class: str | None = None
    allowed_variables: tuple[str, ...] = ()
    """Environment variables that specs may set although they can change which program starts."""
    signers: tuple[str, ...] = ()
    """Lines of git's allowed signers file: who may change results and archive manually."""
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    """Warnings about the file."""

    @property
    def dataset_claims(self) -> frozenset[str]:
        """The claims that contain datasets."""
        return frozenset(dataset.claim for dataset in self.datasets.values())

    @property
    def trial_accounts(self) -> tuple[str, ...]:
        """The service accounts of trials: the one without rights, and those that pools name."""
        accounts = {pool.pod.service_account for pool in self.pools.values()} - {None, TRIAL_ACCOUNT}
        return (TRIAL_ACCOUNT, *sorted(filter(None, accounts)))

    @property
    def mountable_secrets(self) -> frozenset[str]:
        """The Secrets that pods in the namespace of trials may mount."""
        secrets = {secret.secret for secret in self.secrets.values()}
        if self.code is not None and self.code.secret:
            secrets.add(self.code.secret)
        if self.results.bucket is not None:
            secrets.update(self.results.bucket.secrets)
        return frozenset(secrets)

    def pool(self, name: str | None) -> Pool | None:
        """Return a pool by its name; None without a name, or if there is none of this name."""
        return None if name is None else self.pools.get(name)

    def image_of(self, name: str | None) -> str:
        """Return the reference of a named image, by default of the default image; other text is returned unchanged."""
        name = name or self.defaults.image
        return self.images[name].reference if name in self.images else name
