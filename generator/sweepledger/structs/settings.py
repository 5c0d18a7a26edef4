"""The repository's settings as a value: what the platform team decided for every sweep."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from generator.problems import Problem
from generator.structs.program import LOCAL_IMAGE

T = TypeVar("T")

GPU = "nvidia.com/gpu"

API_SERVER = "api-server"
"""The egress that says where the cluster's API server is: for the collector, never for trials."""
PEERS = "peers"
"""What lets pods of distributed trials reach each other; no egress may be called so."""


class Generate(StrEnum):
    """When the overlay of a spec is written."""

    IN_PULL_REQUEST = "in-pull-request"
    ON_MERGE = "on-merge"


class Next(StrEnum):
    """Who asks for the next round of a search, once the one before is recorded."""

    REVIEW = "review"
    """A person, by `sweep next` and a pull request a round."""
    WORKFLOW = "workflow"
    """A workflow on the branch, by `sweep next --push`."""
    COLLECTOR = "collector"
    """The commit that records a round asks for the next."""


class Controller(StrEnum):
    """Who applies the active overlays."""

    NONE = "none"
    """`sweep local`, or a person."""
    ARGOCD = "argocd"
    FLUX = "flux"
    """Each active batch has a Kustomization of its own in `clusters/flux/active/`."""
    SUBMIT = "submit"
    """`sweep submit`: the cluster forbids GitOps, since it demands names of its own making."""


class ResultsMode(StrEnum):
    """How the collector's commits reach the branch."""

    PUSH = "push"
    BRANCH = "branch"


@dataclass(frozen=True, slots=True)
class Image:
    """A container image that sweeps ask for by name."""

    name: str
    repository: str
    digest: str
    tag: str | None = None
    """What `sweep pin` resolved; for people, as the digest decides."""

    @property
    def reference(self) -> str:
        """Give the reference that a pod asks for."""
        return f"{self.repository}{f':{self.tag}' if self.tag else ''}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Nfs:
    """An export that a static PersistentVolume stands for."""

    server: str
    path: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data that trials may ask for by name."""

    name: str
    claim: str
    """The PersistentVolumeClaim that holds it."""
    identity: str
    """What is in the folder: `sha256:` over its sorted `<sha256>  <name>` lines, or `version:` and a word."""
    path: str = ""
    """Folder inside the volume; empty: its root."""
    prepare: tuple[str, ...] = ()
    """A command that fills the folder `$SWEEP_DATA` on a machine without the volume."""
    nfs: Nfs | None = None
    """Where the platform's files make the volume themselves."""
    examples: int | None = None
    """How many there are to train on, as far as anybody has said."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that a trial may have and git must not: it stays in the cluster, and reaches it as a file."""

    name: str
    secret: str
    """The Kubernetes Secret."""
    key: str
    variable: str
    """The environment variable in which the launcher gives it to the command."""


@dataclass(frozen=True, slots=True)
class Egress:
    """A place outside that trials may ask to reach; without one a trial reaches nothing."""

    name: str
    cidrs: tuple[str, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that the pods of a pool bear."""

    key: str
    value: str | None = None
    """None: any value."""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Node:
    """What one node of a pool can give to pods."""

    cpu: str
    memory: str
    gpu: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind: chosen by a queue, or by selector and tolerations, never by both."""

    name: str
    node: Node
    queue: str | None = None
    """A LocalQueue of Kueue: it writes nodes and tolerations itself."""
    selector: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tolerations: tuple[Toleration, ...] = ()
    gpu_resource: str = GPU
    """What a GPU of this pool is called, for example `nvidia.com/mig-1g.5gb`."""
    gpu_type: str | None = None
    """Value of the node label `nvidia.com/gpu.product`; asked for by affinity, which Kueue reads, too."""
    max_nodes: int | None = None
    price: float | None = None
    """Of a node and hour, in the currency of the repository."""
    startup_seconds: int = 300
    """From no node to a running container, image pull included."""
    spot: bool = False
    """The nodes may be taken away at any time."""


@dataclass(frozen=True, slots=True)
class Results:
    """Where trials leave their records, and how these come to git."""

    claim: str = "sweep-results"
    checkpoints: str | None = None
    """Another claim for checkpoints; None: the results volume."""
    artifacts: str | None = None
    """Another claim for artifacts; None: the results volume."""
    mode: ResultsMode = ResultsMode.PUSH
    every_minutes: int = 5
    """How often the collector looks."""
    progress_minutes: int | None = None
    """How often what still runs is summarised on a branch of its own; None: never."""
    keep_days: int | None = None
    """How long a batch's folders stay on the volumes once its results are on the branch; None: for ever."""
    nfs: Nfs | None = None
    """Where the platform's files make the volumes themselves: one export, twice, once read-only."""


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Where a trial's init container gets the locked code from, if the image does not hold it."""

    url: str
    image: str
    """Name of an image with git, among `images`."""
    secret: str | None = None
    """The Kubernetes Secret with `username` and `password`, for a private repository."""


@dataclass(frozen=True, slots=True)
class Submit:
    """What a cluster demands that is no place for GitOps."""

    ttl_seconds: int = 604_800
    """It deletes a finished Job after so long; results must be collected before."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What no sweep may exceed, whatever its own budget says."""

    max_trials: int | None = None
    max_gpu_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the sweeps of a team may use up in a month, together."""

    name: str
    """Of the team."""
    sweeps: tuple[str, ...] = ("*",)
    """Patterns of sweep names, `*` for any letters; a sweep counts towards every allowance that names it."""
    gpu_hours: float | None = None
    money: float | None = None
    """In the currency of the repository."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for sweeps that say nothing else."""

    image: str = LOCAL_IMAGE
    """`local`, a name among `images`, or a reference with digest."""
    pool: str | None = None
    retries: int = 0
    timeout_seconds: int = 3600


def _nothing() -> Mapping[str, T]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a repository; every field has a default, so an empty file will do."""

    namespace: str = "sweeps"
    defaults: Defaults = Defaults()
    branch: str = "main"
    remote: str = "origin"
    controller: Controller = Controller.NONE
    generate: Generate = Generate.IN_PULL_REQUEST
    next: Next = Next.REVIEW
    results: Results = Results()
    limits: Limits = Limits()
    submit: Submit = Submit()
    currency: str = ""
    """What prices are in; empty: nobody has said."""
    budgets: Mapping[str, Allowance] = field(default_factory=_nothing)
    code: CodeSource | None = None
    images: Mapping[str, Image] = field(default_factory=_nothing)
    datasets: Mapping[str, Dataset] = field(default_factory=_nothing)
    secrets: Mapping[str, Secret] = field(default_factory=_nothing)
    egress: Mapping[str, Egress] = field(default_factory=_nothing)
    pools: Mapping[str, Pool] = field(default_factory=_nothing)
    labels: Mapping[str, str] = field(default_factory=_nothing)
    """Stand on every object and pod beside ours."""
    image_pull_secret: str | None = None
    priority_class: str | None = None
    signers: tuple[str, ...] = ()
    """Lines of git's allowed signers: who may change results and archive by hand."""
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    """What is worth knowing of the file, and stops nothing."""

    def image_of(self, asked: str | None) -> str:
        """Give the reference that a name stands for; a reference and `local` stand for themselves."""
        wanted = asked or self.defaults.image
        return self.images[wanted].reference if wanted in self.images else wanted
