"""Folders of a platform, and names of its objects, which follow from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweepledger.structs.settings import FleetSettings, TrialSettings

CLUSTERS = "clusters"
"""Folder of the platform's files, and of one folder for each cluster if the settings name several."""
REMOTE = "remote"
"""Folder of what a person applies in the cluster of the trials, if the controller runs in another."""


def platform_folder(cluster: str | None) -> str:
    """Return the folder of the platform of a cluster; None: the only one."""
    return CLUSTERS if cluster is None else f"{CLUSTERS}/{cluster}"


def patches_folder(cluster: str | None) -> str:
    """Return the folder of the Kustomize component by which a team changes the platform of a cluster."""
    return f"{CLUSTERS}/extra/platform" if cluster is None else f"{CLUSTERS}/extra/{cluster}/platform"


@dataclass(frozen=True, slots=True)
class Names:
    """The names that follow from the settings: two repositories of one cluster differ in their namespace."""

    trials: str
    """Namespace of the trials; the name of everything that lies in no namespace begins with it."""
    cluster: str | None = None
    """One of several clusters of the repository."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the team, which never replace ours."""

    @classmethod
    def of(cls, trials: TrialSettings, fleet: FleetSettings) -> "Names":
        """Return the names in one cluster."""
        return cls(trials.namespace, fleet.cluster, trials.labels)

    @property
    def project(self) -> str:
        """Name of what a controller has for batches: it may serve several clusters."""
        return self.trials if self.cluster is None else f"{self.trials}-{self.cluster}"

    @property
    def collector(self) -> str:
        """Namespace of the collector, which holds the credential for git."""
        return f"{self.trials}-collector"
