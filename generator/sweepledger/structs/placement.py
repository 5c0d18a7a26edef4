"""The cluster of a batch, if a repository has several."""

from hashlib import sha256

from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings import ClusterSettings, FleetSettings


def eligible_clusters(fleet: FleetSettings, pool: str | None) -> tuple[ClusterSettings, ...]:
    """Return the clusters that could run trials of a pool: they were not given up, and have it."""
    live = (fleet.clusters[name] for name in fleet.live_clusters)
    return tuple(cluster for cluster in live if cluster.has_pool(pool))


def choose_cluster(fleet: FleetSettings, sweep: str, run: RunConfig, *, last: str | None) -> str | None:
    """Return the cluster of a sweep's next batch: that of its spec, else the `last` one, else by the sweep's name.

    None if the settings name no clusters, or if none of them can run it.
    """
    eligible = {cluster.name: cluster for cluster in eligible_clusters(fleet, run.pool)}
    if run.cluster is not None:
        return run.cluster if run.cluster in eligible else None
    if last in eligible:
        return last
    # Rendezvous hashing: if a cluster comes or goes, only the sweeps move that it wins or had won.
    # Each has as many draws as its weight, so that it wins in proportion, without floating point.
    draws = [
        (sha256(f"{name} {number} {sweep}".encode()).digest(), name)
        for name, cluster in eligible.items()
        for number in range(cluster.weight)
    ]
    return max(draws)[1] if draws else None
