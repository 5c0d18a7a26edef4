"""The settings of a repository, which the platform team decides for all sweeps."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated
from urllib.parse import quote, urlsplit

from msgspec import Meta

from sweepledger.model import forms, keys
from sweepledger.problems import Problem
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import (
    ARTIFACTS_VOLUME,
    CHECKPOINTS_VOLUME,
    OLDEST_VERSION,
    RESULTS_VOLUME,
    TRIAL_ACCOUNT,
    Version,
)
from sweepledger.structs.names import CLUSTER_NAME
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import AND, LOCAL_IMAGE, Data, data_name
from sweepledger.structs.quantities import Days, Memory, Minutes, Seconds
from sweepledger.structs.values import listing_digest

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


SyncStore = Annotated[str, Meta(extra_json_schema={"enum": ["mlflow", "optuna"]})]
MANY = Meta(max_length=1000)
"""The largest number of entries."""


@dataclass(frozen=True, slots=True)
class Image:
    """A container image that specs name."""

    name: Annotated[str, keys.NAME]
    repository: str
    digest: str
    """Empty only for `sweep cluster pin`, which adds it."""
    tag: str | None = None
    """For information, because the digest decides."""

    @property
    def reference(self) -> str:
        """The image reference in a pod."""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{f':{self.tag}' if self.tag else ''}{digest}"


def _image(text: str) -> Image:
    """Return the image of a reference, still without a name. Raises ValueError."""
    match = forms.IMAGE.fullmatch(text)
    if match is not None and len(text) <= forms.LONGEST_IMAGE:
        return Image("", match["repository"], match["digest"] or "", match["tag"])
    reference, _, digest = text.partition("@")
    if digest and not forms.DIGEST.fullmatch(digest):
        raise ValueError("must end in @sha256: and 64 lower-case hex digits")
    if re.fullmatch(forms.IMAGE_REPOSITORY, reference.rpartition(":")[0], re.ASCII):
        raise ValueError("must have a tag such as 1.4 after its repository, or none")
    raise ValueError("must begin with a repository such as registry.example.org/team/train")


NamedImage = Annotated[
    Image,
    keys.TextForm(_image, "image-reference", "for example registry.example.org/team/train:1.4@sha256:…"),
    Meta(examples=[f"registry.example.org/team/train:1.4@{forms.DIGEST_EXAMPLE}"]),
]


@dataclass(frozen=True, slots=True)
class Nfs:
    """An NFS export for a static PersistentVolume."""

    server: str
    path: str


def _export(text: str) -> Nfs:
    """Return the export that a text names as mount(8) does. Raises ValueError."""
    server = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9a-fA-F:]{2,39}\]"
    match = re.fullmatch(rf"({server}):(/|(?:/[A-Za-z0-9_.-]{{1,255}})+)", text, re.ASCII)
    if match is None or ".." in match[2].split("/"):
        raise ValueError("must be a server and an absolute path without .., with a colon between them")
    return Nfs(match[1].strip("[]"), match[2])


Export = Annotated[
    Nfs,
    keys.TextForm(_export, "nfs", "for example nfs.example.org:/export/sweeps"),
    Meta(
        description=(
            "NFS export of the volume, as mount(8) writes it: with it, `sweep cluster bootstrap` writes the volume "
            "and the claim."
        ),
        examples=["nfs.example.org:/export/sweeps"],
    ),
]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data that specs name."""

    name: Annotated[str, keys.NAME]
    claim: Annotated[forms.Name | None, keys.Absent(None), Meta(examples=["mnist"])]
    """PersistentVolumeClaim with the data."""
    identity: Annotated[str, keys.OneOf((("digest", forms.DataDigest), ("version", forms.DataVersion)))]
    """Content of the folder: `sha256:` over its sorted `<sha256> <name>` lines, or `version:` and a word."""
    path: Annotated[forms.VolumeFolder, Meta(examples=["mnist/v1"])] = ""
    """Folder inside the volume. Default: the whole volume."""
    prepare: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=256, examples=[["python", "-m", "trainer", "prepare", "mnist"]]),
    ] = ()
    """A command that fills the folder $SWEEP_DATA on a machine without the volume."""
    nfs: Export | None = None
    examples: Annotated[int | None, Meta(ge=1, examples=[60000])] = None
    """Number of training examples: `sweep plan` warns of larger batch sizes."""
    bucket: Annotated[forms.BucketFolder, Meta(examples=["data/mnist"])] = ""
    """Instead of a claim, with results.store bucket: the folder of the bucket, relative to its address, from which the
    sidecar of each pod copies the data before the program starts."""
    size: Annotated[Memory | None, Meta(examples=["2Gi"])] = None
    """The most that a copy from the bucket needs: pods request it as local disk."""

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

    name: Annotated[str, keys.NAME]
    secret: Annotated[forms.Name, Meta(examples=["hugging-face"])]
    """Kubernetes Secret in the trials' namespace."""
    key: Annotated[str, Meta(examples=["token"])]
    """Its key."""
    variable: Annotated[str, Meta(examples=["HF_TOKEN"])]
    """Environment variable in which the trial's command receives the value."""


@dataclass(frozen=True, slots=True)
class Egress:
    """A network destination that specs can request; without one a trial reaches nothing."""

    name: Annotated[str, keys.NAME]
    cidrs: Annotated[
        tuple[str, ...], keys.Absent(()), Meta(min_length=1, max_length=100, examples=[["203.0.113.0/24"]])
    ]
    """Networks."""
    ports: Annotated[tuple[forms.Port, ...], Meta(min_length=1, max_length=100, examples=[[443]])]
    """TCP ports."""
    hosts: Annotated[
        tuple[Annotated[str, Meta(max_length=forms.LONGEST_DOMAIN)], ...],
        Meta(min_length=1, max_length=100, examples=[["pypi.org", "*.example.org"]]),
    ] = ()
    """Names of hosts, where * stands for any characters but dots; only Cilium enforces them."""


@dataclass(frozen=True, slots=True)
class AddedContainer:
    """A container that a cluster adds to pods, such as the proxy of a mesh."""

    name: Annotated[str, keys.NAME]
    image: Annotated[forms.ImagePrefix, Meta(examples=["docker.io/istio/proxyv2"])]
    """Repository of its image, without tag and digest."""
    volumes: Annotated[
        tuple[forms.VolumeName, ...],
        Meta(min_length=1, max_length=50, examples=[["istio-envoy", "istio-token"]]),
    ] = ()
    """Volumes that come with it, by name; it mounts no other ones."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """The proxy through which pods reach hosts outside; it knows hosts by their names."""

    address: Annotated[
        str,
        Meta(
            pattern=r"^https?://[A-Za-z0-9.:\[\]-]+$",
            max_length=253,
            examples=["http://proxy.example.org:3128"],
        ),
    ]
    """Its address."""
    egress: Annotated[str, Meta(examples=["proxy"])]
    """Name of the egress that leads to it; pods that have it use the proxy."""
    exceptions: Annotated[
        tuple[Annotated[str, Meta(pattern="^[A-Za-z0-9.:/*-]{1,253}$")], ...],
        keys.Key("except"),
        Meta(min_length=1, max_length=100, examples=[[".example.org", "10.0.0.0/8"]]),
    ] = ()
    """Names, endings of names that begin with a dot, and networks that are reached without it, in addition to those of
    the cluster's Services."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which programs know a proxy: some read only small letters, some only capitals."""
        direct = ",".join(["localhost", "127.0.0.1", ".svc", ".cluster.local", *self.exceptions])
        values = {"HTTP_PROXY": self.address, "HTTPS_PROXY": self.address, "NO_PROXY": direct}
        return {**values, **{name.lower(): value for name, value in values.items()}}


AUTHORITIES_VOLUME = "authorities"
"""The volume with certificates of private authorities, and the folder below `/sweep/` where it is mounted."""


@dataclass(frozen=True, slots=True)
class Authorities:
    """Certificates of private authorities, for clients of TLS in pods."""

    config_map: str
    key: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which OpenSSL, Python's clients, curl, git and AWS's clients know them."""
        names = ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
        return dict.fromkeys(names, f"/sweep/{AUTHORITIES_VOLUME}/{self.key}")


def _authorities(text: str) -> Authorities:
    """Return the ConfigMap and the key that a text names. Raises ValueError."""
    match = re.fullmatch(
        rf"({forms.DNS_LABEL.pattern})/([A-Za-z0-9_-][A-Za-z0-9_.-]{{0,252}})", text, re.ASCII
    )
    if match is None:
        raise ValueError("must be a ConfigMap and its key, with a slash between them")
    return Authorities(match[1], match[2])


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """Where the cluster answers DNS queries. Default: kube-dns or CoreDNS in kube-system, and NodeLocal DNSCache."""

    namespace: Annotated[forms.Name | None, Meta(examples=["openshift-dns"])] = None
    """Namespace of the servers' pods."""
    labels: Annotated[
        Mapping[forms.LabelKey, Annotated[forms.LabelValue, Meta(max_length=63)]],
        Meta(min_length=1, max_length=10, examples=[{"dns.operator.openshift.io/daemonset-dns": "default"}]),
    ] = field(default_factory=keys.empty_mapping)
    """Labels of the servers' pods."""
    cidrs: Annotated[
        tuple[str, ...], Meta(min_length=1, max_length=20, examples=[["169.254.169.254/32"]])
    ] = ()
    """Networks of servers that are not pods."""
    port: Annotated[forms.Port, Meta(examples=[5353])] = 53
    """Port on which the servers listen."""


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """A server that `sweep sync` writes recorded results to."""

    to: Annotated[str, Meta(examples=["https://mlflow.example.org"])]
    """Address of MLflow's tracking server, or of Optuna's database, without credentials."""
    egress: Annotated[str, Meta(examples=["mlflow"])]
    """Name of the egress that leads to the server."""
    secret: Annotated[forms.Name | None, Meta(examples=["mlflow-account"])] = None
    """Kubernetes Secret in the collector's namespace, whose keys become environment variables for the server's
    client."""


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


Identity = Annotated[
    Mapping[forms.LabelKey, str],
    Meta(max_length=10, examples=[{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/sweep"}]),
]


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """A bucket for results, and how its clients are let in."""

    url: Annotated[forms.BucketUrl, Meta(examples=["s3://ml-sweeps/vision"])]
    """Address of the bucket, with a prefix of its own for this repository."""
    egress: Annotated[str, Meta(examples=["bucket"])]
    """Name of the egress that leads to the bucket."""
    endpoint: Annotated[forms.Endpoint | None, Meta(examples=["https://objects.example.org:9000"])] = None
    """Address of a server that speaks the protocol of S3 or Azure. Default: that of the cloud."""
    region: Annotated[forms.Region | None, Meta(examples=["eu-central-1"])] = None
    """Region of a bucket of S3."""
    account: Annotated[forms.StorageAccount | None, Meta(examples=["mlsweeps"])] = None
    """Storage account of a container of Azure."""
    secret: Annotated[forms.Name | None, Meta(examples=["sweep-bucket"])] = None
    """Kubernetes Secret in the namespaces of trials and collector, with a key for each variable of a credential.
    Default: the platform gives an identity."""
    seals: Annotated[forms.Name | None, Meta(examples=["sweep-seals"])] = None
    """Kubernetes Secret in both namespaces, with the key by which sidecars seal what they write. Default: no seals."""
    identity: Identity = field(default_factory=keys.empty_mapping)
    """Annotations of the trials' service account, by which a cloud gives it an identity."""
    collector_identity: Identity = field(default_factory=keys.empty_mapping)
    """The same of the collector's service account."""
    expiry_identity: Identity = field(default_factory=keys.empty_mapping)
    """The same of the service account that deletes what results.keep lets go."""

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

    claim: Annotated[forms.Name, Meta(examples=["sweep-results"])] = "sweep-results"
    """PersistentVolumeClaim of the results volume, shared by all trials."""
    checkpoints: Annotated[forms.Name | None, Meta(examples=["sweep-checkpoints"])] = None
    """Another PersistentVolumeClaim for checkpoints. Default: the results volume."""
    artifacts: Annotated[forms.Name | None, Meta(examples=["sweep-artifacts"])] = None
    """Another PersistentVolumeClaim for artifacts. Default: the results volume."""
    mode: Annotated[ResultsMode, Meta(examples=["branch"])] = ResultsMode.PUSH
    """How the collector's commits reach the branch."""
    every_minutes: Annotated[Minutes, Meta(examples=["10m"])] = 5
    """Interval of the collector: whole minutes that divide an hour, at most 30m."""
    progress_minutes: Annotated[Minutes | None, Meta(examples=["15m"])] = None
    """How often partial results of running batches are published on a branch progress/SWEEP: whole minutes that divide
    an hour, at most 30m. Default: never."""
    keep_days: Annotated[Days | None, Meta(examples=["30d"])] = None
    """Days for which a batch's folders stay on the volumes after its results are on the branch, at most 3650d. Default:
    they are never deleted."""
    from_pull_request: Annotated[PullRequestResults, Meta(examples=["marked"])] = PullRequestResults.SIGNED
    """Which results a pull request may bring: of commits that a listed key signed, also those of new batches that are
    marked as made on a laptop, or none."""
    nfs: Export | None = None
    sync: Annotated[Mapping[SyncStore, SyncTarget], Meta(max_length=2)] = field(
        default_factory=keys.empty_mapping
    )
    """Servers that get the recorded results, by their kind. A CronJob beside the collector writes what they lack."""
    store: Annotated[ResultsStore, Meta(examples=["api"])] = ResultsStore.VOLUME
    """Through what records travel from trials to the collector: the API server, which keeps no files, a bucket in
    object storage, the API server with a claim for files that one node can mount, or a volume that every node can
    mount."""
    bucket: BucketSettings | None = None
    """The bucket of `store: bucket`, and how its clients are let in."""

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

    pool: Annotated[str | None, Meta(examples=["cpu-small"])] = None
    """Pool whose nodes or queue the collector uses. Default: any node."""
    priority_class: Annotated[forms.Name | None, Meta(examples=["platform-services"])] = None
    """PriorityClass of the collector's pod."""
    memory: Annotated[Memory, Meta(examples=["512Mi"])] = "256Mi"
    """Memory of the collector, with its unit: Ki, Mi, Gi, Ti, or k, M, G, T."""
    disk: Annotated[Memory, Meta(examples=["2Gi"])] = "1Gi"
    """Disk space of the collector, with its unit: Ki, Mi, Gi, Ti, or k, M, G, T."""
    watches: Annotated[bool, keys.Key("watch"), Meta(examples=[True])] = False
    """Whether a run of the collector goes on until the next one, and collects whenever a batch ends, as long as one is
    active."""


LOCAL_CLUSTER = "https://kubernetes.default.svc"
"""Argo CD's name for the cluster that it runs in."""


@dataclass(frozen=True, slots=True)
class ArgoCdSettings:
    """Where Argo CD runs, and the cluster in which it creates Jobs."""

    namespace: Annotated[forms.Name, Meta(examples=["gitops"])] = "argocd"
    """Namespace of Argo CD."""
    cluster: Annotated[
        str,
        keys.like(
            rf"(?:{forms.DNS_LABEL.pattern}|https://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._/-]*)?)",
            "must be the name of a registered cluster or the https address of an API server",
            code="cluster-name",
        ),
        Meta(max_length=253, examples=["gpu-eu", "https://10.0.0.5:6443"]),
    ] = LOCAL_CLUSTER
    """Name of a cluster that is registered with Argo CD, or address of its API server. Default: Argo CD's own."""

    @property
    def destination(self) -> dict[str, str]:
        """The destination of its Applications, without their namespace."""
        return {"server" if self.cluster.startswith("https:") else "name": self.cluster}

    @property
    def is_remote(self) -> bool:
        """Whether trials run in another cluster than Argo CD."""
        return self.cluster != LOCAL_CLUSTER


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One of several clusters of a repository: what differs there from the settings of all."""

    name: Annotated[str, keys.NAME]
    weight: Annotated[int, Meta(ge=0, le=100, examples=[3])] = 1
    """Its share of the sweeps that name no cluster; 0: none."""
    is_lost: Annotated[bool, keys.Key("lost"), Meta(examples=[True])] = False
    """Whether it was given up: nothing runs there any more, and nothing of it is recorded."""
    pools: Annotated[
        tuple[str, ...] | None, Meta(min_length=1, max_length=1000, examples=[["gpu-heavy"]])
    ] = None
    """Pools that it has. Default: all."""
    argocd: ArgoCdSettings = ArgoCdSettings()
    """Where Argo CD runs, and the cluster in which it creates Jobs."""
    egress: Annotated[Mapping[str, Egress], MANY, keys.EntryName("api-server")] = field(
        default_factory=keys.empty_mapping
    )
    """Egress with other addresses in this cluster, by name."""
    dns: DnsSettings | None = None
    """Where its servers of DNS are, if elsewhere than in the others."""
    nfs: Export | None = None

    def has_pool(self, name: str | None) -> bool:
        """Return whether trials of a pool can run there; None: of no pool."""
        return name is None or self.pools is None or name in self.pools


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Where an init container fetches the locked code, if the image does not contain it."""

    url: Annotated[forms.CodeUrl, Meta(examples=["https://git.example.org/team/sweeps.git"])]
    """Address of the repository, https and without credentials."""
    image: Annotated[forms.Reference, Meta(examples=["git"])]
    """Name of an image with git, among `images`."""
    secret: Annotated[forms.Name | None, Meta(examples=["code-read"])] = None
    """Kubernetes Secret with `username` and `password`, for a private repository."""


@dataclass(frozen=True, slots=True)
class SubmitSettings:
    """Settings of `sweep submit`."""

    ttl_seconds: Annotated[Seconds, Meta(examples=["7d"])] = 604_800
    """Time after which the cluster deletes a finished Job: a whole number and s, m, h or d. Results must be collected
    before."""


class MessageService(StrEnum):
    """Where the controller sends messages about batches and results."""

    SLACK = "slack"
    MSTEAMS = "msteams"
    GOOGLECHAT = "googlechat"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class Notify:
    """The recipient of messages; its credential is a Secret of the cluster."""

    service: Annotated[MessageService, Meta(examples=["slack"])]
    """Kind of the service."""
    channel: Annotated[forms.Channel, Meta(examples=["sweeps"])]
    """Name of the channel or recipient."""


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """What `sweep cluster bootstrap` writes to `clusters/monitoring/`."""

    enabled: Annotated[bool, keys.UNWRITTEN] = True
    """Whether the settings have this key; without it, no such folder is written."""
    labels: Annotated[forms.Labels, Meta(max_length=50, examples=[{"release": "kube-prometheus-stack"}])] = (
        field(default_factory=keys.empty_mapping)
    )
    """Labels of the PrometheusRule, by which the Prometheus Operator selects it."""
    notify: Notify | None = None
    """Where the controller sends messages about batches and results; the credential is a Secret."""
    commit_status: Annotated[bool, Meta(examples=[True])] = False
    """Report to the git server whether the cluster has applied each commit."""


LOG_LINK_NAMES = ("batch", "namespace", "pod", "sweep", "trial")
"""Names in braces that a link to logs may contain."""
MAX_LINK = 2000


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


def _log_link(text: str) -> LogsSettings:
    """Return the link of a web address without credentials, whose host is fixed, with known names in braces."""
    bare, used = re.sub(r"\{[^{}]*\}", "", text), re.findall(r"\{([^{}]*)\}", text)
    if len(text) > MAX_LINK or not text.isascii() or not text.isprintable() or set(' "<>\\^`{}') & set(bare):
        raise ValueError(f"must be an address of at most {MAX_LINK} characters that are valid in one")
    if unknown := sorted({*used} - {*LOG_LINK_NAMES}):
        known = ", ".join(f"{{{name}}}" for name in LOG_LINK_NAMES)
        raise ValueError(f"must use the names {known} only, not {{{unknown[0]}}}")
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in {"https", "http"} or "@" in parts.netloc or "{" in parts.netloc:
        raise ValueError("must begin with http:// or https:// and a fixed host without credentials")
    return LogsSettings(text)


LogLink = Annotated[
    LogsSettings,
    keys.TextForm(
        _log_link,
        "log-link",
        "for example https://grafana.example.org/explore?namespace={namespace}&pod={pod}",
    ),
    Meta(examples=["https://grafana.example.org/explore?namespace={namespace}&pod={pod}"]),
]


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Limits for every sweep, in addition to its own budget."""

    max_trials: Annotated[int | None, Meta(ge=1, le=100_000, examples=[10000])] = None
    """Trials of one sweep, replicates included."""
    max_gpu_hours: Annotated[float | None, Meta(gt=0, examples=[2000])] = None
    """GPU hours of one sweep: trials * (retries + 1) * timeout * GPUs."""
    failures: Annotated[int, Meta(ge=0, le=100_000, examples=[10])] = 3
    """On a laptop, a batch pauses when this many of its trials have failed and none is ok; 0 switches that off."""


@dataclass(frozen=True, slots=True)
class TeamBudget:
    """What the sweeps of a team may use together in a month."""

    name: Annotated[str, keys.NAME]
    sweeps: Annotated[
        tuple[forms.SweepPattern, ...], Meta(min_length=1, max_length=100, examples=[["vision-*", "cifar"]])
    ] = ("*",)
    """Patterns of sweep names, where `*` matches any characters. Default: every sweep. A sweep counts towards every
    budget that names it."""
    gpu_hours: Annotated[float | None, Meta(gt=0, examples=[100])] = None
    """GPU hours per month."""
    money: Annotated[float | None, Meta(gt=0, examples=[500])] = None
    """Cost per month, in `currency`. Trials in pools without a price cost nothing."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for specs that contain no others."""

    image: Annotated[
        str, Meta(examples=["train", f"registry.example.org/team/train:1.4@{forms.DIGEST_EXAMPLE}", "local"])
    ] = LOCAL_IMAGE
    """Container image: a name among `images`, a reference with its digest, or `local`."""
    pool: Annotated[forms.Reference | None, Meta(examples=["cpu-small"])] = None
    """Name among `pools`. Default: any node with free capacity."""
    retries: Annotated[int, Meta(ge=0, le=10, examples=[1])] = 0
    """Number of times a trial is started again after a failure that its hyperparameters did not cause."""
    timeout_seconds: Annotated[Seconds, Meta(examples=["30m"])] = 3600
    """Longest time of one attempt: a whole number and s, m, h or d."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a repository, in `sweepledger.yaml`, for all of its sweeps. All keys are optional."""

    namespace: Annotated[forms.Name, Meta(examples=["sweeps"])] = "sweeps"
    """Kubernetes namespace of the trials, at most 53 characters; the collector's is this one and `-collector`."""
    defaults: Annotated[Defaults, Meta(examples=[{"image": "local", "retries": 1, "timeout": "30m"}])] = (
        Defaults()
    )
    """Defaults for specs that do not set these keys."""
    branch: Annotated[forms.BranchName, Meta(examples=["main"])] = "main"
    """Branch that the cluster follows and that results are committed to."""
    repository: Annotated[
        str | None, Meta(max_length=2000, examples=["https://git.example/team/sweeps.git"])
    ] = None
    """Address from which the cluster fetches this repository; the files in clusters/ may name no other."""
    controller: Annotated[Controller, Meta(examples=["argocd"])] = Controller.NONE
    """What applies the active overlays: Argo CD, Flux, `submit` (a user runs `sweep submit`, for clusters that forbid
    GitOps), or `none`."""
    generate: Annotated[GenerateMode, Meta(examples=["on-merge"])] = GenerateMode.IN_PULL_REQUEST
    """When the overlay of a spec is generated: in its pull request, or by a workflow after the merge."""
    next: Annotated[NextRoundMode, Meta(examples=["collector"])] = NextRoundMode.REVIEW
    """What requests the next round of an adaptive search: a user in a pull request, a workflow, or the collector with
    the results."""
    results: Annotated[ResultsSettings, Meta(examples=[{"claim": "sweep-results", "every": "10m"}])] = field(
        default_factory=ResultsSettings
    )
    """Where trials write their records, and how these are committed."""
    collector: Annotated[CollectorSettings, Meta(examples=[{"memory": "512Mi"}])] = CollectorSettings()
    """Where the collector runs in the cluster, and what it may use."""
    argocd: ArgoCdSettings = ArgoCdSettings()
    """Where Argo CD runs, and the cluster in which it creates Jobs."""
    kubernetes: Annotated[Version, Meta(examples=["1.34"])] = OLDEST_VERSION
    """Oldest version of Kubernetes among the clusters."""
    clusters: Annotated[
        Mapping[Annotated[str, Meta(pattern=f"^{CLUSTER_NAME.pattern}$")], ClusterSettings],
        Meta(
            max_length=100,
            examples=[{"eu": {"argocd": {"cluster": "gpu-eu"}}, "us": {"argocd": {"cluster": "gpu-us"}}}],
        ),
    ] = field(default_factory=keys.empty_mapping)
    """Clusters by name, if the repository has several: each runs some of the sweeps."""
    cluster: Annotated[str | None, keys.UNWRITTEN] = None
    """The cluster that these settings are of; None: the only one, or all of several."""
    limits: Annotated[
        SweepLimits, Meta(min_length=1, examples=[{"max_trials": 10000, "max_gpu_hours": 2000}])
    ] = SweepLimits()
    """Limits of every sweep, in addition to the budget of its spec."""
    submit: SubmitSettings = SubmitSettings()
    """Settings for clusters without a GitOps controller."""
    monitoring: Annotated[
        MonitoringSettings, Meta(examples=[{"labels": {"release": "kube-prometheus-stack"}}])
    ] = MonitoringSettings(enabled=False)
    """Alerts, a dashboard and messages: with this key, also with an empty mapping, `sweep cluster bootstrap` writes
    clusters/monitoring/."""
    logs: LogLink = LogsSettings()
    """Address at which a log system shows the output of a pod or trial, with {namespace}, {pod}, {sweep}, {batch} and
    {trial} where they belong."""
    currency: Annotated[forms.Currency, Meta(examples=["EUR"])] = ""
    """Currency of prices and budgets, shown after amounts."""
    budgets: Annotated[
        Mapping[
            forms.TeamName,
            Annotated[TeamBudget, Meta(min_length=1, examples=[{"sweeps": ["vision-*"], "gpu_hours": 100}])],
        ],
        MANY,
        keys.EntryName("team-vision"),
    ] = field(default_factory=keys.empty_mapping)
    """What the sweeps of a team may use in a month, by team: `sweep check` refuses a change that exceeds it, and `sweep
    cluster budget` shows what remains."""
    code: CodeSource | None = None
    """The repository from which the init container of a trial with `run.code.mode: clone` gets the locked code."""
    images: Annotated[Mapping[forms.Name, NamedImage], MANY, keys.EntryName("train")] = field(
        default_factory=keys.empty_mapping
    )
    """Container images by name, for specs to refer to: references with digests, which `sweep cluster pin NAME` writes.
    The tag is for information; the digest determines what runs."""
    datasets: Annotated[Mapping[forms.Name, Dataset], MANY, keys.EntryName("mnist")] = field(
        default_factory=keys.empty_mapping
    )
    """Datasets by name, for specs to refer to."""
    secrets: Annotated[Mapping[forms.Name, SecretReference], MANY, keys.EntryName("hugging-face")] = field(
        default_factory=keys.empty_mapping
    )
    """Secret values for trials, by name. They are only in the cluster, never in git."""
    egress: Annotated[Mapping[forms.Name, Egress], MANY, keys.EntryName("data-store")] = field(
        default_factory=keys.empty_mapping
    )
    """Networks outside the cluster that trials may reach, by name. A trial whose spec names none reaches nothing."""
    dns: DnsSettings | None = None
    """Where the cluster answers DNS queries. Default: kube-dns or CoreDNS in kube-system, and NodeLocal DNSCache."""
    proxy: ProxySettings | None = None
    """Proxy through which pods reach hosts outside the cluster by their names."""
    authorities: Annotated[
        Authorities | None,
        keys.TextForm(_authorities, "wrong-form", "for example company-ca/ca.crt"),
        Meta(examples=["company-ca/ca.crt"]),
    ] = None
    """Certificates of private authorities that clients in pods trust: a ConfigMap in the namespaces of trials and
    collector, and its key with all certificates to trust, public ones included."""
    sidecars: Annotated[
        Mapping[forms.Name, AddedContainer], Meta(max_length=20), keys.EntryName("istio-proxy")
    ] = field(default_factory=keys.empty_mapping)
    """Containers that the cluster adds to pods of trials, such as the proxy of a mesh, by name."""
    mirrors: Annotated[
        Mapping[forms.ImagePrefix, forms.ImagePrefix],
        Meta(max_length=50, examples=[{"registry.example.org": "mirror.example.org/cache"}]),
    ] = field(default_factory=keys.empty_mapping)
    """Registries, or beginnings of repositories, that the cluster replaces in images of pods, each with its
    replacement."""
    pools: Annotated[Mapping[forms.Name, Pool], MANY, keys.EntryName("cpu-small")] = field(
        default_factory=keys.empty_mapping
    )
    """Node pools by name, for specs to refer to."""
    labels: Annotated[forms.Labels, Meta(max_length=50, examples=[{"example.org/team": "vision"}])] = field(
        default_factory=keys.empty_mapping
    )
    """Additional labels of every object and pod."""
    image_pull_secret: Annotated[forms.Name | None, Meta(examples=["registry-read"])] = None
    """Kubernetes Secret for pulling images."""
    priority_class: Annotated[forms.Name | None, Meta(examples=["batch-low"])] = None
    """PriorityClass of the trials' pods."""
    allowed_variables: Annotated[
        tuple[Annotated[str, Meta(pattern="^[A-Z_][A-Z0-9_]{0,127}$")], ...],
        Meta(max_length=100, examples=[["LD_LIBRARY_PATH"]]),
    ] = ()
    """Environment variables that specs may set although the loader, a shell or Python obeys them before the launcher
    starts."""
    signers: Annotated[
        tuple[forms.Signer, ...],
        Meta(
            max_length=100,
            examples=[
                [
                    "ops@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
                ]
            ],
        ),
    ] = ()
    """Lines of git's allowed signers file: the keys whose signed commits may change results and archived batches
    manually."""
    warnings: Annotated[tuple[Problem, ...], keys.UNWRITTEN] = field(default=(), compare=False)
    """Warnings about the file."""

    @property
    def dataset_claims(self) -> frozenset[str]:
        """The claims that contain datasets."""
        return frozenset(dataset.claim for dataset in self.datasets.values() if dataset.claim is not None)

    @property
    def dataset_folders(self) -> tuple[str, ...]:
        """The folders of the bucket that contain datasets, sorted."""
        return tuple(sorted({dataset.bucket for dataset in self.datasets.values() if dataset.bucket}))

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
        sync = self.results.sync if name == self.live_clusters[0] else keys.empty_mapping()
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
