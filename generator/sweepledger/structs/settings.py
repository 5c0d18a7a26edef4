"""The settings of a repository, which the platform team decides for all sweeps."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

from sweepledger.problems import Problem
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import (
    ARTIFACTS_VOLUME,
    CHECKPOINTS_VOLUME,
    OLDEST_VERSION,
    RESULTS_VOLUME,
    TRIAL_ACCOUNT,
)
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import AND, LOCAL_IMAGE, Data, data_name
from sweepledger.structs.values import listing_digest

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
    """The author, with `sweep cluster next` and one pull request per round."""
    WORKFLOW = "workflow"
    """A workflow on the branch, with `sweep cluster next --push`."""
    COLLECTOR = "collector"
    """The commit that records a round also adds the next."""


class Controller(StrEnum):
    """What applies the active overlays."""

    NONE = "none"
    """`sweep cluster local`, or the user."""
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
    CLAIM = "claim"
    """In the termination messages of their pods; files are on a volume that one node can mount."""
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
    """Tag that `sweep cluster pin` resolved; for information, because the digest decides."""

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
    claim: str | None
    """The PersistentVolumeClaim that contains it; None: it is in the bucket."""
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
    bucket: str = ""
    """Folder of the bucket of results from which the sidecar of each pod copies it; empty: it is on a claim."""
    size: str | None = None
    """The most bytes of the copy in a pod, as a Kubernetes quantity; None: it is on a claim."""

    @property
    def copied_from(self) -> str:
        """What the sidecar of a bucket copies; empty if it is on a claim."""
        return self.bucket


@dataclass(frozen=True, slots=True)
class SeveralDatasets:
    """Datasets that one sweep reads, each in the folder of its name: all on claims, or all in the bucket."""

    parts: tuple[Dataset, ...]
    """Sorted by name."""

    @property
    def name(self) -> str:
        """The names of the datasets, joined."""
        return data_name(part.name for part in self.parts)

    @property
    def identity(self) -> str:
        """`sha256:` over the lines `<identity>  <name>`; `version:` instead if one of them has no digest."""
        combined = listing_digest({part.name: part.identity for part in self.parts})
        if all(part.identity.startswith("sha256:") for part in self.parts):
            return combined
        return combined.replace("sha256:", "version:")

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that contain them, each once: a node may refuse a pod that names one twice."""
        return tuple(dict.fromkeys(part.claim for part in self.parts if part.claim is not None))

    @property
    def copied_from(self) -> str:
        """What the sidecar of a bucket copies; empty if they are on claims."""
        return " ".join(f"{part.name}={part.bucket}" for part in self.parts if part.bucket)

    @property
    def size(self) -> str | None:
        """The most bytes of all copies in a pod; None: they are on claims."""
        sizes = [quantities.whole_quantity(part.size) for part in self.parts if part.size is not None]
        return quantities.format_bytes(sum(sizes)) if sizes else None

    @property
    def examples(self) -> None:
        """Unknown: which of them are training examples is the program's to know."""
        return


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
    hosts: tuple[str, ...] = ()
    """Names of hosts, where `*` matches any characters but dots; only Cilium enforces them."""


@dataclass(frozen=True, slots=True)
class AddedContainer:
    """A container that a cluster adds to pods, such as the proxy of a mesh."""

    name: str
    image: str
    """Repository of its image, without tag and digest."""
    volumes: tuple[str, ...] = ()
    """Names of the volumes that come with it; it mounts no other ones."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """The proxy through which pods reach hosts outside; it knows hosts by their names."""

    address: str
    egress: str
    """Name of the egress that leads to it: the pods that have it get its variables."""
    exceptions: tuple[str, ...] = ()
    """Names and networks that are reached without it, in addition to the cluster's own names."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which programs know a proxy: some read only small letters, some only capitals."""
        direct = ",".join(["localhost", "127.0.0.1", ".svc", ".cluster.local", *self.exceptions])
        values = {"HTTP_PROXY": self.address, "HTTPS_PROXY": self.address, "NO_PROXY": direct}
        return {**values, **{name.lower(): value for name, value in values.items()}}


AUTHORITIES_VOLUME = "authorities"
"""The volume with certificates of private authorities, and the folder below `/sweep/` where it is mounted."""


@dataclass(frozen=True, slots=True)
class AuthoritiesSettings:
    """Certificates of private authorities, for clients of TLS in pods."""

    config_map: str
    """ConfigMap in the namespaces of trials and collector."""
    key: str = "ca.crt"
    """Its key with all certificates to trust, those of public authorities included."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which OpenSSL, Python's clients, curl, git and AWS's clients know them."""
        names = ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
        return dict.fromkeys(names, f"/sweep/{AUTHORITIES_VOLUME}/{self.key}")


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


_TRIAL_CONTAINERS = ("code", "pytorch", "tensorflow", "trial")
_IDENTITY_LABELS: Mapping[Cloud, Mapping[str, str]] = MappingProxyType(
    {Cloud.AZURE: {"azure.workload.identity/use": "true"}}
)
"""Labels by which a cloud adds an identity to a pod."""
_IDENTITY_ANNOTATIONS: Mapping[Cloud, Mapping[str, str]] = MappingProxyType(
    {
        Cloud.AZURE: {"azure.workload.identity/skip-containers": ";".join(_TRIAL_CONTAINERS)},
        Cloud.S3: {"eks.amazonaws.com/skip-containers": ",".join(_TRIAL_CONTAINERS)},
    }
)
"""Annotations by which it adds none to the containers that run a trial's code."""


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
    expiry_identity: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Annotations of the service account that deletes what `results.keep` lets go."""

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
    def endpoint_variables(self) -> frozenset[str]:
        """The variables that name another endpoint to its clients."""
        return frozenset(name for name, value in self.variables.items() if value == self.endpoint)

    @property
    def pod_labels(self) -> Mapping[str, str]:
        """Labels of the pods of its clients; none with a Secret."""
        return {} if self.secret is not None else _IDENTITY_LABELS.get(self.cloud, {})

    @property
    def pod_annotations(self) -> Mapping[str, str]:
        """Annotations of the pods of trials; none with a Secret."""
        return {} if self.secret is not None else _IDENTITY_ANNOTATIONS.get(self.cloud, {})

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
        """The claims that trials write to, by volume; none if the store has no volume."""
        if self.store not in {ResultsStore.VOLUME, ResultsStore.CLAIM}:
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
class ClusterSettings:
    """One of several clusters of a repository: what differs there from the settings of all."""

    name: str
    weight: int = 1
    """Its share of the sweeps that name no cluster; 0: none."""
    is_lost: bool = False
    """Whether it was given up: nothing runs there any more, and nothing of it is recorded."""
    pools: tuple[str, ...] | None = None
    """Names of the pools that it has; None: all."""
    argocd: ArgoCdSettings = ArgoCdSettings()
    egress: Mapping[str, Egress] = field(default_factory=_empty_mapping)
    """Destinations with other addresses there."""
    dns: DnsSettings | None = None
    """None: as elsewhere."""
    nfs: Nfs | None = None
    """NFS export of the results; None: as elsewhere."""

    def has_pool(self, name: str | None) -> bool:
        """Return whether trials of a pool can run there; None: of no pool."""
        return name is None or self.pools is None or name in self.pools


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
    """What `sweep cluster bootstrap` writes to `clusters/monitoring/`."""

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
    failures: int = 3
    """Number of failed trials without one that is ok after which a batch pauses on a laptop; 0: never."""


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
    repository: str | None = None
    """Address from which the cluster fetches the repository; None: the first bootstrap's."""
    controller: Controller = Controller.NONE
    generate: GenerateMode = GenerateMode.IN_PULL_REQUEST
    next: NextRoundMode = NextRoundMode.REVIEW
    results: ResultsSettings = field(default_factory=ResultsSettings)
    collector: CollectorSettings = CollectorSettings()
    argocd: ArgoCdSettings = ArgoCdSettings()
    kubernetes: tuple[int, int] = OLDEST_VERSION
    """The oldest version of Kubernetes among the clusters."""
    clusters: Mapping[str, ClusterSettings] = field(default_factory=_empty_mapping)
    """Clusters by name; empty: there is one, which has no name."""
    cluster: str | None = None
    """The cluster that these settings are of; None: the only one, or all of several."""
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
    proxy: ProxySettings | None = None
    authorities: AuthoritiesSettings | None = None
    sidecars: Mapping[str, AddedContainer] = field(default_factory=_empty_mapping)
    """Containers that the cluster adds to pods of trials, by name."""
    mirrors: Mapping[str, str] = field(default_factory=_empty_mapping)
    """Registries, or the beginnings of repositories, by what the cluster puts in place of each."""
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
        return frozenset(dataset.claim for dataset in self.datasets.values() if dataset.claim is not None)

    @property
    def dataset_folders(self) -> tuple[str, ...]:
        """The folders of the bucket that contain datasets, sorted."""
        return tuple(sorted({dataset.bucket for dataset in self.datasets.values() if dataset.bucket}))

    def may_copy(self, folders: str) -> bool:
        """Return whether a sidecar may copy these folders: of a dataset, or of several."""
        return folders in self.dataset_folders or {*folders.split(" ")} <= {*self.named_dataset_folders}

    @property
    def named_dataset_folders(self) -> tuple[str, ...]:
        """These folders after the names of their datasets, as `SeveralDatasets` names them, sorted."""
        return tuple(sorted(f"{one.name}={one.bucket}" for one in self.datasets.values() if one.bucket))

    @property
    def trial_accounts(self) -> tuple[str, ...]:
        """The service accounts of trials: the one without rights, and those that pools name."""
        accounts = {pool.pod.service_account for pool in self.pools.values()} - {None, TRIAL_ACCOUNT}
        return (TRIAL_ACCOUNT, *sorted(filter(None, accounts)))

    @property
    def named_objects(self) -> frozenset[tuple[str, str]]:
        """Kind and name of the objects that pods name and no batch brings along."""
        accounts = {("ServiceAccount", name) for name in self.trial_accounts}
        trusted = {("ConfigMap", self.authorities.config_map)} if self.authorities is not None else set()
        return frozenset(accounts | trusted)

    @property
    def mountable_secrets(self) -> frozenset[str]:
        """The Secrets that pods in the namespace of trials may mount."""
        secrets = {secret.secret for secret in self.secrets.values()}
        if self.code is not None and self.code.secret:
            secrets.add(self.code.secret)
        if self.results.bucket is not None:
            secrets.update(self.results.bucket.secrets)
        return frozenset(secrets)

    def client_variables(self, egress: Container[str]) -> dict[str, str]:
        """Return the variables of a pod with these egress names by which its clients reach hosts and trust them."""
        proxied = self.proxy is not None and self.proxy.egress in egress
        return {
            **(self.proxy.variables if proxied and self.proxy is not None else {}),
            **({} if self.authorities is None else self.authorities.variables),
        }

    @property
    def in_clusters(self) -> "tuple[Settings, ...]":
        """The settings of each cluster that was not given up; without names of clusters, these."""
        if not self.clusters:
            return (self,)
        return tuple(self.in_cluster(name) for name in self.live_clusters)

    @property
    def live_clusters(self) -> tuple[str, ...]:
        """The names of the clusters that were not given up, sorted."""
        return tuple(sorted(name for name, cluster in self.clusters.items() if not cluster.is_lost))

    @property
    def lost_clusters(self) -> tuple[str, ...]:
        """The names of the clusters that were given up, sorted."""
        return tuple(sorted(name for name, cluster in self.clusters.items() if cluster.is_lost))

    def in_cluster(self, name: str) -> "Settings":
        """Return the settings of one of the clusters. Raises KeyError."""
        cluster = self.clusters[name]
        # One cluster writes to the stores of other tools: two would write each trial twice.
        sync = self.results.sync if name == self.live_clusters[0] else _empty_mapping()
        return replace(
            self,
            cluster=name,
            argocd=cluster.argocd,
            egress=MappingProxyType({**self.egress, **cluster.egress}),
            dns=cluster.dns or self.dns,
            results=replace(self.results, nfs=cluster.nfs or self.results.nfs, sync=sync),
            pools=MappingProxyType({key: pool for key, pool in self.pools.items() if cluster.has_pool(key)}),
        )

    def pool(self, name: str | None) -> Pool | None:
        """Return a pool by its name; None without a name, or if there is none of this name."""
        return None if name is None else self.pools.get(name)

    def dataset(self, data: Data | None) -> Dataset | SeveralDatasets | None:
        """Return the dataset, or the several, of a program's data; None without. Raises KeyError."""
        if data is None:
            return None
        known = self.dataset_named(data.name)
        if known is None:
            raise KeyError(data.name)
        return known

    def dataset_named(self, name: str | None) -> Dataset | SeveralDatasets | None:
        """Return the dataset, or the several, of a name as `data_name` makes it; None if one is not here."""
        names = [] if name is None else name.split(AND)
        parts = tuple(self.datasets[part] for part in names if part in self.datasets)
        if not parts or len(parts) < len(names):
            return None
        return parts[0] if len(parts) == 1 else SeveralDatasets(parts)

    def with_mirrors(self, repositories: Iterable[str]) -> frozenset[str]:
        """Return repositories, and what the cluster may put in their place."""
        named = frozenset(repositories)
        return named | {
            mirror + name.removeprefix(place)
            for name in named
            for place, mirror in self.mirrors.items()
            if f"{name}/".startswith(f"{place}/")
        }

    def image_of(self, name: str | None) -> str:
        """Return the reference of a named image, by default of the default image; other text is returned unchanged."""
        name = name or self.defaults.image
        return self.images[name].reference if name in self.images else name
