"""Where trials leave their records, and how these are committed."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sweepledger.model import keys, text_forms
from sweepledger.structs.kubernetes import ARTIFACTS_VOLUME, CHECKPOINTS_VOLUME, RESULTS_VOLUME
from sweepledger.structs.quantities import Days, Minutes
from sweepledger.structs.settings.stores import DEFAULT_STORE, ResultsStore


class ResultsMode(StrEnum):
    """How the collector's commits reach the branch."""

    PUSH = "push"
    BRANCH = "branch"


MAX_API_TRIALS = 5_000
"""Trials of a batch whose pods the API server has to keep until the results are recorded."""


class PullRequestResults(StrEnum):
    """Which results a pull request may bring."""

    SIGNED = "signed"
    MARKED = "marked"
    REFUSE = "refuse"


SyncStore = Annotated[str, Meta(extra_json_schema={"enum": ["mlflow", "optuna"]})]


class Nfs(Struct, frozen=True):
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
    keys.TextForm(_export, "nfs", "nfs.example.org:/export/sweeps"),
    Meta(
        description="NFS export of the volume, as mount(8) writes it: with it, `sweep cluster bootstrap` writes the "
        "volume and the claim."
    ),
]


class SyncTarget(Struct, frozen=True):
    """A server that `sweep sync` writes recorded results to."""

    to: Annotated[str, Meta(examples=["https://mlflow.example.org"])]
    """Address of MLflow's tracking server, or of Optuna's database, without credentials."""
    egress: Annotated[str, keys.EntryOf("egress"), Meta(examples=["mlflow"])]
    """Name of the egress that leads to the server."""
    secret: Annotated[text_forms.Name | None, Meta(examples=["mlflow-account"])] = None
    """Kubernetes Secret in the collector's namespace, whose keys become environment variables for the server's
    client."""


class Cloud(StrEnum):
    """Whose protocol a bucket speaks, as the scheme of its address."""

    AZURE = "az"
    GOOGLE = "gs"
    S3 = "s3"


class CloudFacts(NamedTuple):
    """What differs between clouds."""

    endpoint: str
    """The environment variable in which its clients look for another endpoint."""
    in_the_clear: str
    """The environment variable that lets its clients connect to that endpoint without TLS."""
    labels: Mapping[str, str] = keys.EMPTY
    """Labels by which the cloud adds an identity to a pod."""
    annotations: Mapping[str, str] = keys.EMPTY
    """Annotations by which the cloud adds none to the containers that run a trial's code."""


_TRIAL_CONTAINERS = ("code", "pytorch", "tensorflow", "trial")
_CLOUDS = {
    Cloud.AZURE: CloudFacts(
        *("AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP", {"azure.workload.identity/use": "true"}),
        {"azure.workload.identity/skip-containers": ";".join(_TRIAL_CONTAINERS)},
    ),
    Cloud.GOOGLE: CloudFacts("GOOGLE_BASE_URL", "GOOGLE_ALLOW_HTTP"),
    Cloud.S3: CloudFacts(
        *("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"),
        annotations={"eks.amazonaws.com/skip-containers": ",".join(_TRIAL_CONTAINERS)},
    ),
}

Identity = Annotated[
    Mapping[text_forms.LabelKey, str],
    Meta(max_length=10, examples=[{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/sweep"}]),
]


class BucketSettings(Struct, frozen=True):
    """The bucket of `store: bucket`, and how its clients are let in."""

    url: Annotated[str, text_forms.BUCKET_URL]
    """Address of the bucket, with a prefix of its own for this repository."""
    egress: Annotated[str, keys.EntryOf("egress"), Meta(examples=["bucket"])]
    """Name of the egress that leads to the bucket."""
    endpoint: Annotated[str | None, text_forms.ENDPOINT] = None
    """Address of a server that speaks the protocol of S3 or Azure. Default: that of the cloud."""
    region: Annotated[str | None, text_forms.REGION] = None
    """Region of a bucket of S3."""
    account: Annotated[str | None, text_forms.STORAGE_ACCOUNT] = None
    """Storage account of a container of Azure."""
    secret: Annotated[text_forms.Name | None, Meta(examples=["sweep-bucket"])] = None
    """Kubernetes Secret in the namespaces of trials and collector, with a key for each variable of a credential.
    Default: the platform gives an identity."""
    seals: Annotated[text_forms.Name | None, Meta(examples=["sweep-seals"])] = None
    """Kubernetes Secret in both namespaces, with the key by which sidecars seal what they write. Default: no seals."""
    identity: Identity = keys.EMPTY
    """Annotations of the trials' service account, by which a cloud gives it an identity."""
    collector_identity: Identity = keys.EMPTY
    """The same of the collector's service account."""
    expiry_identity: Identity = keys.EMPTY
    """The same of the service account that deletes what results.keep lets go."""

    @property
    def cloud(self) -> Cloud:
        """Whose protocol it speaks."""
        return Cloud(self.url.partition(":")[0])

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of its clients that are no secret, by the names that they know."""
        facts, endpoint = _CLOUDS[self.cloud], self.endpoint
        values = {
            facts.endpoint: endpoint,
            facts.in_the_clear: "true" if endpoint is not None and endpoint.startswith("http:") else None,
            "AWS_REGION": self.region,
            "AZURE_STORAGE_ACCOUNT_NAME": self.account,
        }
        return {name: value for name, value in sorted(values.items()) if value is not None}

    @property
    def pod_labels(self) -> Mapping[str, str]:
        """Labels of the pods of its clients; none with a Secret."""
        return {} if self.secret is not None else _CLOUDS[self.cloud].labels

    @property
    def pod_annotations(self) -> Mapping[str, str]:
        """Annotations of the pods of trials; none with a Secret."""
        return {} if self.secret is not None else _CLOUDS[self.cloud].annotations

    @property
    def secrets(self) -> tuple[str, ...]:
        """The Kubernetes Secrets that only its sidecars and the collector mount."""
        return tuple(name for name in (self.secret, self.seals) if name is not None)


class ResultsSettings(Struct, frozen=True):
    """Where trials write their records, and how these are committed."""

    claim: Annotated[text_forms.Name, Meta(examples=["sweep-results"])] = "sweep-results"
    """PersistentVolumeClaim of the results volume, shared by all trials."""
    checkpoints: Annotated[text_forms.Name | None, Meta(examples=["sweep-checkpoints"])] = None
    """Another PersistentVolumeClaim for checkpoints. Default: the results volume."""
    artifacts: Annotated[text_forms.Name | None, Meta(examples=["sweep-artifacts"])] = None
    """Another PersistentVolumeClaim for artifacts. Default: the results volume."""
    mode: Annotated[ResultsMode, Meta(examples=["branch"])] = ResultsMode.PUSH
    """How the collector's commits reach the branch."""
    every_minutes: Annotated[Minutes, Meta(examples=["10m"])] = 5
    """Interval of the collector: whole minutes that divide an hour, at most 30m."""
    progress_minutes: Annotated[Minutes | None, Meta(examples=["15m"])] = None
    """How often partial results of running batches are published on a branch progress/SWEEP: whole minutes that divide
    an hour, at most 30m. Default: never."""
    keep_days: Annotated[Days | None, Meta(examples=["30d"])] = None
    """Days for which a batch's folders stay on the volumes after it was recorded, at most 3650d. Default: never
    deleted."""
    from_pull_request: Annotated[PullRequestResults, Meta(examples=["marked"])] = PullRequestResults.SIGNED
    """Which results a pull request may bring: of commits that a listed key signed, also those of new batches that are
    marked as made on a laptop, or none."""
    nfs: Export | None = None
    sync: Annotated[Mapping[SyncStore, SyncTarget], Meta(max_length=2), keys.EntryName("mlflow")] = keys.EMPTY
    """Servers that get the recorded results, by their kind. A CronJob beside the collector writes what they lack."""
    store: Annotated[ResultsStore, Meta(examples=["api"])] = DEFAULT_STORE
    """Through what records travel from trials to the collector."""
    bucket: BucketSettings | None = None

    @property
    def volumes(self) -> tuple[str, ...]:
        """The volumes that trials write to; without claims, one that ends with the pod."""
        return tuple(self.claims) or (RESULTS_VOLUME,)

    @property
    def claims(self) -> Mapping[str, str]:
        """The claims that trials write to, by volume; none if the store has no volume."""
        if not self.store.facts.has_claims:
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
