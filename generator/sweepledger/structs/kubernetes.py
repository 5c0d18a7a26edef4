"""Kubernetes vocabulary: labels, variables, kinds by shape, helper pods, supported versions.

Render, policy and the engine share these definitions.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from sweepledger.model.keys import EMPTY, like

Manifest = Mapping[str, Any]
"""One Kubernetes document as data."""

DOMAIN = "sweepledger.dev"
"""Of the labels and annotations that sweepledger writes."""
SWEEP_LABEL = f"{DOMAIN}/sweep"
BATCH_LABEL = f"{DOMAIN}/batch"
TRIAL_LABEL = f"{DOMAIN}/trial"
INDEX_LABEL = f"{DOMAIN}/index"
"""On objects and pods of a single trial: its row in the table."""
EGRESS_LABEL = f"{DOMAIN}/egress-"
"""Followed by the name of an egress: the platform's NetworkPolicy of that egress selects the pod."""

COMPONENT_LABEL = "app.kubernetes.io/component"
GENERATOR_LABELS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("app.kubernetes.io/name", "app.kubernetes.io/managed-by"), "sweepledger")
)
"""Labels of every object that sweepledger writes."""

OWNER_ANNOTATION = f"{DOMAIN}/repository"
"""On objects of a platform: the address of the repository that they belong to."""

GIT_READ_SECRET = "sweep-git-read"  # noqa: S105 - a Secret's name, not its content
GIT_WRITE_SECRET = "sweep-git-write"  # noqa: S105 - likewise
"""With the collector's credential."""
GIT_SIGNING_SECRET = "sweep-git-signing"  # noqa: S105 - likewise

BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED = 42, 43, 44
"""Exit codes of the launcher after which a retry is useless."""
STORAGE_FAILED, TIMED_OUT = 74, 124
"""Others that mean something of their own."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
POD_SET_ANNOTATIONS = "kueue.x-k8s.io/podset-"
"""Prefix of all annotations by which a pod template asks Kueue for a place."""
GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
"""NVIDIA's feature discovery puts this label on nodes."""

COLLECTOR_ACCOUNT = "sweep-collector"
"""The service account of the collector, and the name of its CronJob, its Lease and its component."""
SYNC_ACCOUNT = "sweep-sync"
"""The service account of the job that writes results to stores, and the name of its CronJob and its component."""
APPLIER_ACCOUNT = "sweep-applier"
"""A controller applies a batch with its rights."""
TRIAL_ACCOUNT = "sweep-trial"
"""The service account of trials: no rights, no token."""
WRITE_TEST_TITLE = "a trial may write results"
"""What `sweep cluster doctor` calls the check of a temporary pod that writes as a trial does."""
TRIAL_USER = 65532
"""User and group of trials; above 10,000, so that no user of a node has it."""
COMPLETION_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Kubernetes sets it in every container of an Indexed Job, unless the container sets it."""
INDEX_VARIABLE = "SWEEP_INDEX"
"""Variable with the row of a pod that has no completion index."""
PARENT_VARIABLE, PARENT_PATH = "SWEEP_PARENT", "/sweep/parent"
"""Variable and mount path of the parent trial's checkpoints, read-only."""
PARENT_ID_VARIABLE = "SWEEP_PARENT_ID"
"""Variable with the id of the parent trial, for the record."""
CHECKPOINTS_FOLDER = "checkpoints"
"""Folder of checkpoints in a trial's own folder."""
CODE_CONTAINER = "code"
"""The init container that fetches the code."""
STORE_CONTAINER = "store"
"""The sidecar that moves files between a pod and a bucket: no trial's code runs in it."""
STORE_SEALS_KEY = "key"
"""Key of the Secret of seals."""
PARENT_FOLDER_VARIABLE = "SWEEP_PARENT_FOLDER"
"""Variable with batch and index of the parent trial, for the sidecar."""
RANK_VARIABLE = "SWEEP_RANK"
"""Variable with the number of a pod within a distributed trial."""
CODE_VARIABLE, CODE_PATH = "SWEEP_CODE", "/code"
"""Variable and place of the locked code, of which the launcher makes a copy for each trial."""
SCRATCH_PATH = "/sweep/scratch"
"""Where pods start: a folder that they may write to."""
DATA_VARIABLE, DATA_PATH = "SWEEP_DATA", "/sweep/data"
"""Variable and mount path of a trial's dataset; several are in folders of their names there."""

RECORD_FINALIZER = f"{DOMAIN}/record"
"""Keeps a pod whose record only its status has, until the collector has recorded it."""

RESULTS_VOLUME = "results"
CHECKPOINTS_VOLUME = "checkpoints"
ARTIFACTS_VOLUME = "artifacts"
DATA_VOLUME = "data"
"""With a dataset, or with the copies that a sidecar makes of all."""


def data_volume(number: int) -> str:
    """Return the volume of one of the claims with several datasets."""
    return f"{DATA_VOLUME}-{number}"


def trial_folder(batch: str, index: int | str) -> dict[str, str]:
    """Return the mount fields of a trial's own folder on a volume that it writes to."""
    return {"subPath": f"{batch}/{index}"}


def trial_folder_by_variable(batch: str, variable: str) -> dict[str, str]:
    """Return the same for a template of many trials, whose pods know their index by a variable."""
    return {"subPathExpr": f"{batch}/$({variable})"}


def parent_mount(volume: str, folder: str) -> dict[str, str | bool]:
    """Return the read-only mount of the checkpoints in another trial's folder of a volume."""
    subpath = f"{folder}/{CHECKPOINTS_FOLDER}"
    return {"name": volume, "mountPath": PARENT_PATH, "readOnly": True, "subPath": subpath}


class Kind(Struct, frozen=True, eq=False):
    """A Kubernetes kind with its names in manifests, access rules and the API."""

    group: str
    version: str
    kind: str
    plural: str
    policy: tuple[str, ...] = ()
    """Path of the fields `suspend` and `activeDeadlineSeconds`; empty if the kind runs nothing."""
    has_ttl: bool = False
    """Whether `ttlSecondsAfterFinished` exists at that path."""
    templates: tuple[str, ...] = ()
    """Path of its pod templates; `*` stands for each entry of a list, or each role."""
    owner: str = ""
    """The kind that creates its Jobs or pods, if it does not create them itself."""
    shared: "Kind | None" = None
    """The kind of an object that the trials of a batch share, in addition to ConfigMaps."""
    has_retries: bool = True
    """Whether it can start a failed trial again."""
    recreates_pods: bool = False
    """Whether an attempt waits until the pods of the one before are deleted."""
    waits: str | None = None
    """The role whose pods wait for processes of another pod, and get no variables."""
    unsupported: Mapping[str, str] = EMPTY
    """Why it cannot have a store of results, by the store; `pods` means each that reads pods."""

    @property
    def api_version(self) -> str:
        """Value of `apiVersion` in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Name for kubectl."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
JOB = Kind("batch", "v1", "Job", "jobs", ("spec",), True, ("spec", "template"))
JOBS_OF_A_SET = ("spec", "replicatedJobs", "*", "template", "spec", "template")
JOB_SET = Kind(
    *("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", ("spec",), True, JOBS_OF_A_SET),
    recreates_pods=True,
)
TRAINING_RUNTIME = Kind(
    *("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes"),
    templates=("spec", "template", *JOBS_OF_A_SET),
)


def training_job(kind: str, specs: str, version: str = "v1", **more: Any) -> Kind:
    """Return a kind of Kubeflow's training operators."""
    names, templates = ("kubeflow.org", version, kind, f"{kind.lower()}s"), ("spec", specs, "*", "template")
    return Kind(*names, ("spec", "runPolicy"), True, templates, has_retries=False, **more)


RESULTS_PATH = "/sweep/results"
"""Where pods mount the results volume."""

OLDEST_VERSION = (1, 30)
"""Rendered manifests need no newer version."""
NEWEST_VERSION = (1, 37)
"""Rendered manifests use nothing that this version has removed."""

CLAIMS_VERSION = (1, 34)
"""From this version on, claims of devices (DRA) need no feature gate."""


_VERSION = like(
    r"1\.(?:3[0-9]|[4-9][0-9])",
    "must be a version of Kubernetes from 1.30 on, such as 1.34",
    note='for example "1.34"',
)


def parse_version(text: str) -> tuple[int, int]:
    """Return the version in a text such as `1.30`. Raises ValueError."""
    major, minor = _VERSION.read(text).split(".")
    return int(major), int(minor)


def parse_server_version(text: str) -> tuple[int, int] | None:
    """Return major and minor of what a server or a node says of itself, such as `v1.30.2` or `v1.30+`."""
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0].rstrip("+")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def format_version(version: tuple[int, int]) -> str:
    """Return a version such as `1.30`."""
    return ".".join(map(str, version))


Version = Annotated[tuple[int, int], replace(_VERSION, read=parse_version, write=format_version)]
"""A minor version of Kubernetes."""
