"""The settings of a repository, which the platform team decides for all sweeps."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from sweepledger.model import keys, text_forms
from sweepledger.model.keys import MANY, some
from sweepledger.problems import Problem
from sweepledger.structs.settings.network import API_SERVER_EGRESS, GIT_EGRESS, Egress, NetworkSettings
from sweepledger.structs.settings.platform import (
    AdmissionSettings,
    CollectorSettings,
    Controller,
    FleetSettings,
    PlatformSettings,
)
from sweepledger.structs.settings.results import BucketSettings, Cloud, ResultsMode, ResultsSettings
from sweepledger.structs.settings.stores import DEFAULT_STORE, ResultsStore
from sweepledger.structs.settings.trials import (
    COLLECTOR_IMAGE,
    Dataset,
    Image,
    SecretReference,
    SeveralDatasets,
    TrialSettings,
)


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


class CodeSource(Struct, frozen=True):
    """The repository from which the init container of a trial with `run.code.mode: clone` gets the locked code."""

    url: Annotated[str, text_forms.CODE_URL]
    """Address of the repository, https and without credentials."""
    image: Annotated[text_forms.Reference, keys.EntryOf("images"), Meta(examples=["git"])]
    """Name of an image with git, among `images`."""
    secret: Annotated[text_forms.Name | None, Meta(examples=["code-read"])] = None
    """Kubernetes Secret with `username` and `password`, for a private repository."""


class GitSettings(Struct, frozen=True):
    """The branch that the cluster follows, and how changes reach it."""

    branch: Annotated[str, text_forms.BRANCH] = "main"
    """Branch that the cluster follows and that results are committed to."""
    repository: Annotated[
        str | None, Meta(max_length=2000, examples=["https://git.example/team/sweeps.git"])
    ] = None
    """Address from which the cluster fetches this repository; the files in clusters/ may name no other."""
    generate: Annotated[GenerateMode, Meta(examples=["on-merge"])] = GenerateMode.IN_PULL_REQUEST
    """When the overlay of a spec is generated: in its pull request, or by a workflow after the merge."""
    next: Annotated[NextRoundMode, Meta(examples=["collector"])] = NextRoundMode.REVIEW
    """What requests the next round of an adaptive search: a user in a pull request, a workflow, or the collector with
    the results."""
    manifests: Annotated[bool, Meta(examples=[False])] = True
    """Whether batches have manifests for a cluster. `false`: only laptops run them, by lock, launch file and table; the
    repository needs no base/."""
    code: CodeSource | None = None
    signers: Annotated[tuple[text_forms.Signer, ...], Meta(max_length=100)] = ()
    """Lines of git's allowed signers file: the keys whose signed commits may change results and archived batches
    manually."""


class SweepLimits(Struct, frozen=True):
    """Limits of every sweep, in addition to the budget of its spec."""

    max_trials: Annotated[int | None, Meta(ge=1, le=100_000, examples=[10000])] = None
    """Trials of one sweep, replicates included."""
    max_gpu_hours: Annotated[float | None, Meta(gt=0, examples=[2000])] = None
    """GPU hours of one sweep: trials * (retries + 1) * timeout * GPUs."""
    failures: Annotated[int, Meta(ge=0, le=100_000, examples=[10])] = 3
    """On a laptop, a batch pauses when this many of its trials have failed and none is ok; 0 switches that off."""


class TeamBudget(Struct, frozen=True):
    """What the sweeps of a team may use together in a month."""

    name: Annotated[str, keys.NAME]
    sweeps: Annotated[tuple[Annotated[str, text_forms.SWEEP_PATTERN], ...], some()] = ("*",)
    """Patterns of sweep names, where `*` matches any characters. Default: every sweep. A sweep counts towards every
    budget that names it."""
    gpu_hours: Annotated[float | None, Meta(gt=0, examples=[100])] = None
    """GPU hours per month."""
    money: Annotated[float | None, Meta(gt=0, examples=[500])] = None
    """Cost per month, in `currency`. Trials in pools without a price cost nothing."""


class TeamSettings(Struct, frozen=True):
    """What sweeps may use."""

    limits: Annotated[SweepLimits, Meta(min_length=1)] = SweepLimits()
    currency: Annotated[str, text_forms.CURRENCY] = ""
    """Currency of prices and budgets, shown after amounts."""
    budgets: Annotated[
        Mapping[
            Annotated[str, text_forms.TEAM_NAME],
            Annotated[TeamBudget, Meta(min_length=1)],
        ],
        MANY,
        keys.EntryName("team-vision"),
    ] = keys.EMPTY
    """What the sweeps of a team may use in a month, by team: `sweep check` refuses a change that exceeds it."""


class Settings(Struct, frozen=True):
    """Settings of a repository, in `sweepledger.yaml`, for all of its sweeps. All keys are optional."""

    trials: Annotated[TrialSettings, keys.GROUP] = TrialSettings()
    network: Annotated[NetworkSettings, keys.GROUP] = NetworkSettings()
    git: Annotated[GitSettings, keys.GROUP] = GitSettings()
    results: ResultsSettings = ResultsSettings()
    platform: Annotated[PlatformSettings, keys.GROUP] = PlatformSettings()
    fleet: Annotated[FleetSettings, keys.GROUP] = FleetSettings()
    admission: Annotated[AdmissionSettings, keys.GROUP] = AdmissionSettings()
    teams: Annotated[TeamSettings, keys.GROUP] = TeamSettings()
    warnings: Annotated[tuple[Problem, ...], keys.UNWRITTEN] = ()

    @property
    def in_clusters(self) -> "tuple[Settings, ...]":
        """The settings of each cluster that was not given up; without names of clusters, these."""
        if not self.fleet.clusters:
            return (self,)
        return tuple(self.in_cluster(name) for name in self.fleet.live_clusters)

    def in_cluster(self, name: str) -> "Settings":
        """Return the settings of one of the clusters. Raises KeyError."""
        cluster = self.fleet.clusters[name]
        # One cluster writes to the stores of other tools: two would write each trial twice.
        sync = self.results.sync if name == self.fleet.live_clusters[0] else keys.EMPTY
        pools = {key: pool for key, pool in self.trials.pools.items() if cluster.has_pool(key)}
        egress = MappingProxyType({**self.network.egress, **cluster.egress})
        return replace(
            self,
            trials=replace(self.trials, pools=MappingProxyType(pools)),
            network=replace(self.network, egress=egress, dns=cluster.dns or self.network.dns),
            results=replace(self.results, nfs=cluster.nfs or self.results.nfs, sync=sync),
            platform=replace(self.platform, argocd=cluster.argocd),
            fleet=replace(self.fleet, cluster=name),
        )
