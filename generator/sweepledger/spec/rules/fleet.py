"""Several clusters of one repository, and the one that a spec names."""

from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.names import entry_name
from sweepledger.spec.rules.workload import chosen_pool
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.names import PLATFORM_SUFFIX
from sweepledger.structs.placement import eligible_clusters
from sweepledger.structs.settings import API_SERVER_EGRESS, GIT_EGRESS, Controller, ResultsMode

CODE = "fleet"
RESERVED = frozenset({"argocd", "extra", "flux", "monitoring", "optional", "platform", "remote"})
"""Folders of `clusters/`, in which each cluster has one of its own name."""


def cluster_names(draft: Draft) -> Iterator[Problem]:
    """A cluster's name is that of no folder of `clusters/`, and at least one cluster was not given up."""
    for name in draft.names("clusters"):
        if name in RESERVED:
            message = (
                f"must be another name: clusters/{name}/ is a folder of the platform, got {safe_repr(name)}"
            )
            yield draft.problem(("clusters", name), message, code="cluster-name", at_key=True)
        other = name.removesuffix(PLATFORM_SUFFIX)
        if other != name and other in draft.names("clusters"):
            message = (
                f"must be another name: Argo CD calls the platform of {other!r} so, got {safe_repr(name)}"
            )
            yield draft.problem(("clusters", name), message, code="cluster-name", at_key=True)
    if "clusters" in draft.names() and not _live(draft):
        message = "must have a cluster that was not given up, got none"
        yield draft.problem(("clusters",), message, code=CODE, at_key=True)


def _live(draft: Draft) -> tuple[str, ...]:
    names = draft.names("clusters")
    return tuple(name for name in names if not draft.get("clusters", name, "lost", kind=bool))


def cluster_egress(draft: Draft) -> Iterator[Problem]:
    """The egress of a cluster is among that of the settings."""
    egress = (*draft.names("egress"), API_SERVER_EGRESS, GIT_EGRESS)
    for cluster in draft.names("clusters"):
        for name in draft.names("clusters", cluster, "egress"):
            if name not in egress:
                message = f"must be one of the settings' egress, got {safe_repr(name)}"
                near = did_you_mean(name, egress)
                hint = f"{near}, or name its usual addresses by egress: the cluster's replace them"
                place = ("clusters", cluster, "egress", name)
                yield draft.problem(place, message, code=CODE, hint=hint, at_key=True)


def pools_somewhere(draft: Draft) -> Iterator[Problem]:
    """Each pool is in a cluster, and the collector's in all of them."""
    having = {
        cluster: draft.get("clusters", cluster, "pools", kind=list) or list(draft.names("pools"))
        for cluster in _live(draft)
    }
    if not having:
        return
    for name in draft.names("pools"):
        if not any(name in pools for pools in having.values()):
            message = f"must be a pool of at least one cluster, got {safe_repr(name)}"
            yield draft.problem(("pools", name), message, code=CODE, at_key=True)
    own = draft.get("collector", "pool", kind=str)
    missing = sorted(cluster for cluster, pools in having.items() if own not in pools)
    if own in draft.names("pools") and missing:
        message = (
            f"must be a pool of every cluster, got {safe_repr(own)}, which is not in {', '.join(missing)}"
        )
        yield draft.problem(("collector", "pool"), message, code=CODE)


def fleet_settings(draft: Draft) -> Iterator[Problem]:
    """What several collectors would contend for, or a person does by hand, is not combined with `clusters`."""
    if "clusters" not in draft.names():
        return
    controller = draft.get("controller", kind=str) or Controller.NONE
    if controller not in {Controller.ARGOCD, Controller.FLUX}:
        message = f"must be argocd or flux if there are clusters, got {safe_repr(str(controller))}"
        yield draft.problem(("controller",), message, code=CODE, at_key="controller" not in draft.names())
    if "argocd" in draft.names():
        message = "must be set for each cluster if there are clusters"
        yield draft.problem(("argocd",), message, code=CODE, hint="move it below clusters.NAME", at_key=True)
    if draft.get("results", "mode", kind=str) == ResultsMode.BRANCH:
        message = (
            "must be push if there are clusters: their collectors would contend for one branch, got 'branch'"
        )
        yield draft.problem(("results", "mode"), message, code=CODE)
    if "progress" in draft.names("results"):
        message = "must not be given if there are clusters: their collectors would contend for one branch"
        yield draft.problem(("results", "progress"), message, code=CODE, at_key=True)


RUN_CLUSTER: DocumentPath = ("run", "cluster")


def run_cluster(draft: Draft) -> Iterator[Problem]:
    """`run.cluster` names a cluster that has the pool and was not given up; without it, one can be chosen."""
    settings, name, pool = draft.settings, draft.get(*RUN_CLUSTER, kind=str), chosen_pool(draft)
    having = eligible_clusters(settings.fleet, pool.name if pool else None)
    listed = ", ".join(cluster.name for cluster in having)
    if name is None:
        # It is no error: a sweep that has run goes on where it ran.
        if having and not any(cluster.weight for cluster in having):
            message = f"should be one of the clusters that could run it, which have weight 0: {listed}"
            hint = "with weight 0, a cluster runs only sweeps that name it or ran there"
            yield draft.warning(RUN_CLUSTER, message, code="not-in-settings", hint=hint, at_key=True)
    elif name not in settings.fleet.clusters:
        yield from entry_name(draft, RUN_CLUSTER, "clusters")
    elif settings.fleet.clusters[name].is_lost:
        message = f"must be a cluster that was not given up, got {safe_repr(name)}"
        yield draft.problem(RUN_CLUSTER, message, code="not-in-settings", hint="remove it, or name another")
    elif pool is not None and not settings.fleet.clusters[name].has_pool(pool.name):
        message = f"must be a cluster with pool {pool.name!r}, got {safe_repr(name)}"
        hint = f"these have it: {listed}" if listed else "no cluster has it"
        yield draft.problem(RUN_CLUSTER, message, code="not-in-settings", hint=hint)
