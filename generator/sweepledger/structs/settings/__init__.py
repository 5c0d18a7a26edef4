"""The settings of a repository, which the platform team decides for all sweeps."""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from sweepledger.model import keys
from sweepledger.problems import Problem
from sweepledger.structs.settings.git import CodeSource, GenerateMode, GitSettings, NextRoundMode
from sweepledger.structs.settings.network import (
    API_SERVER_EGRESS,
    AUTHORITIES_VOLUME,
    GIT_EGRESS,
    PEERS_EGRESS,
    Authorities,
    DnsSettings,
    Egress,
    NetworkSettings,
    ProxySettings,
)
from sweepledger.structs.settings.platform import (
    LOCAL_CLUSTER,
    LOG_LINK_NAMES,
    AddedContainer,
    AdmissionSettings,
    ArgoCdSettings,
    ClusterSettings,
    CollectorSettings,
    Controller,
    FleetSettings,
    LogsSettings,
    MessageService,
    MonitoringSettings,
    Notify,
    PlatformSettings,
    SubmitSettings,
)
from sweepledger.structs.settings.results import (
    MAX_API_TRIALS,
    BucketSettings,
    Cloud,
    Nfs,
    PullRequestResults,
    ResultsMode,
    ResultsSettings,
    ResultsStore,
    SyncTarget,
)
from sweepledger.structs.settings.teams import SweepLimits, TeamBudget, TeamSettings
from sweepledger.structs.settings.trials import (
    COLLECTOR_IMAGE,
    Dataset,
    Defaults,
    Image,
    SecretReference,
    SeveralDatasets,
    TrialSettings,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a repository, in `sweepledger.yaml`, for all of its sweeps. All keys are optional."""

    trials: Annotated[TrialSettings, keys.GROUP] = field(default_factory=TrialSettings)
    network: Annotated[NetworkSettings, keys.GROUP] = field(default_factory=NetworkSettings)
    git: Annotated[GitSettings, keys.GROUP] = field(default_factory=GitSettings)
    results: Annotated[ResultsSettings, Meta(examples=[{"claim": "sweep-results", "every": "10m"}])] = field(
        default_factory=ResultsSettings
    )
    """Where trials write their records, and how these are committed."""
    platform: Annotated[PlatformSettings, keys.GROUP] = field(default_factory=PlatformSettings)
    fleet: Annotated[FleetSettings, keys.GROUP] = field(default_factory=FleetSettings)
    admission: Annotated[AdmissionSettings, keys.GROUP] = field(default_factory=AdmissionSettings)
    teams: Annotated[TeamSettings, keys.GROUP] = field(default_factory=TeamSettings)
    warnings: Annotated[tuple[Problem, ...], keys.UNWRITTEN] = field(default=(), compare=False)
    """Warnings about the file."""

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
        sync = self.results.sync if name == self.fleet.live_clusters[0] else keys.empty_mapping()
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
