"""What runs the trials: clusters, their controller and its platform."""

import re
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from sweepledger.model import text_forms
from sweepledger.model.keys import EMPTY, MANY, NAME, UNWRITTEN, EntryName, EntryOf, Key, TextForm, some
from sweepledger.structs.kubernetes import OLDEST_VERSION, Version
from sweepledger.structs.pod_fields import PodPriority
from sweepledger.structs.quantities import Memory, Seconds, seconds_between
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings.network import DnsSettings, Egress
from sweepledger.structs.settings.results import Export


class Controller(StrEnum):
    """What applies the active overlays."""

    NONE = "none"
    """`sweep cluster local`, or the user."""
    ARGOCD = "argocd"
    FLUX = "flux"
    """Each active batch has exactly one Kustomization file in `clusters/flux/active/`."""
    SUBMIT = "submit"
    """`sweep submit`, for clusters that forbid GitOps because they generate names."""


class CollectorSettings(Struct, frozen=True):
    """Where the collector runs in the cluster, and what it may use."""

    pool: Annotated[str | None, EntryOf("pools")] = None
    """Pool whose nodes or queue the collector uses. Default: any node."""
    priority_class: Annotated[PodPriority | None, Meta(examples=["platform-services"])] = None
    """PriorityClass of the collector's pod."""
    memory: Annotated[Memory, Meta(examples=["512Mi"])] = "256Mi"
    """Memory of the collector, with its unit: Ki, Mi, Gi, Ti, or k, M, G, T."""
    disk: Annotated[Memory, Meta(examples=["2Gi"])] = "1Gi"
    """Disk space of the collector, with its unit: Ki, Mi, Gi, Ti, or k, M, G, T."""
    watches: Annotated[bool, Key("watch"), Meta(examples=[True])] = False
    """Whether the collector collects whenever a batch ends, as long as one is active."""


LOCAL_CLUSTER = "https://kubernetes.default.svc"
"""Argo CD's name for the cluster that it runs in."""


class ArgoCdSettings(Struct, frozen=True):
    """Where Argo CD runs, and the cluster in which it creates Jobs."""

    namespace: Annotated[text_forms.Name, Meta(examples=["gitops"])] = "argocd"
    """Namespace of Argo CD."""
    cluster: Annotated[str, text_forms.REGISTERED_CLUSTER, Meta(max_length=253)] = LOCAL_CLUSTER
    """Name of a cluster that is registered with Argo CD, or address of its API server. Default: Argo CD's own."""
    groups: Annotated[tuple[Annotated[str, text_forms.GROUP], ...], Meta(max_length=50)] = ()
    """Groups of the single sign-on whose members see the Applications in Argo CD and may sync those of batches."""
    signature_keys: Annotated[tuple[Annotated[str, text_forms.SIGNATURE_KEY], ...], Meta(max_length=50)] = ()
    """Ids of GnuPG keys: Argo CD applies a commit only if one of them has signed it."""
    poll_seconds: Annotated[int, seconds_between("10s", "1d"), Meta(examples=["1m"])] = 180
    """Time after which Argo CD looks for new batches if no webhook announces them, 10s to 1d."""

    @property
    def destination(self) -> dict[str, str]:
        """The destination of its Applications, without their namespace."""
        return {"server" if self.cluster.startswith("https:") else "name": self.cluster}

    @property
    def is_remote(self) -> bool:
        """Whether trials run in another cluster than Argo CD."""
        return self.cluster != LOCAL_CLUSTER


class ClusterSettings(Struct, frozen=True):
    """One of several clusters of a repository: what differs there from the settings of all."""

    name: Annotated[str, NAME]
    weight: Annotated[int, Meta(ge=0, le=100, examples=[3])] = 1
    """Its share of the sweeps that name no cluster; 0: none."""
    is_lost: Annotated[bool, Key("lost"), Meta(examples=[True])] = False
    """Whether it was given up: nothing runs there any more, and nothing of it is recorded."""
    pools: Annotated[tuple[Annotated[str, EntryOf("pools")], ...], some(1000)] | None = None
    """Pools that it has. Default: all."""
    argocd: ArgoCdSettings = ArgoCdSettings()
    egress: Annotated[Mapping[str, Egress], MANY, EntryName("api-server")] = EMPTY
    """Egress with other addresses in this cluster, by name."""
    dns: DnsSettings | None = None
    nfs: Export | None = None

    def has_pool(self, name: str | None) -> bool:
        """Return whether trials of a pool can run there; None: of no pool."""
        return name is None or self.pools is None or name in self.pools


class SubmitSettings(Struct, frozen=True):
    """Settings for clusters without a GitOps controller."""

    ttl_seconds: Annotated[Seconds, Meta(examples=["7d"])] = 604_800
    """Time after which the cluster deletes a finished Job: a whole number and s, m, h or d. Results must be collected
    before."""


class MessageService(StrEnum):
    """Where the controller sends messages about batches and results."""

    SLACK = "slack"
    MSTEAMS = "msteams"
    GOOGLECHAT = "googlechat"
    WEBHOOK = "webhook"


class Notify(Struct, frozen=True):
    """Where the controller sends messages about batches and results; the credential is a Secret."""

    service: Annotated[MessageService, Meta(examples=["slack"])]
    """Kind of the service."""
    channel: Annotated[str, text_forms.CHANNEL]
    """Name of the channel or recipient."""


class MonitoringSettings(Struct, frozen=True):
    """Alerts, a dashboard and messages, which `sweep cluster bootstrap` then writes to clusters/monitoring/."""

    enabled: Annotated[bool, UNWRITTEN] = True
    """Whether the settings have this key; without it, no such folder is written."""
    labels: Annotated[
        text_forms.Labels, Meta(max_length=50, examples=[{"release": "kube-prometheus-stack"}])
    ] = EMPTY
    """Labels of PrometheusRule and ServiceMonitor, by which the Prometheus Operator selects them."""
    notify: Notify | None = None
    runbooks: Annotated[str | None, text_forms.RUNBOOKS, Meta(max_length=2000)] = None
    """Address of your copy of "Monitor sweeps"; each alert then links to the part about it."""
    commit_status: Annotated[bool, Meta(examples=[True])] = False
    """Report to the git server whether the cluster has applied each commit."""


LOG_LINK_NAMES = ("batch", "namespace", "pod", "sweep", "trial")
"""Names in braces that a link to logs may contain."""

MAX_LINK = 2000


def _log_link(text: str) -> str:
    """Return a web address without credentials, whose host is fixed, with known names in braces."""
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
    return text


LOG_LINK = TextForm(
    _log_link, "log-link", "https://grafana.example.org/explore?namespace={namespace}&pod={pod}"
)


class PlatformSettings(Struct, frozen=True):
    """The controller, and what `sweep cluster bootstrap` writes beside the batches."""

    controller: Annotated[Controller, Meta(examples=["argocd"])] = Controller.NONE
    """What applies the active overlays: Argo CD, Flux, `submit` (a user runs `sweep submit`, for clusters that forbid
    GitOps), or `none`."""
    collector: CollectorSettings = CollectorSettings()
    argocd: ArgoCdSettings = ArgoCdSettings()
    kubernetes: Annotated[Version, Meta(examples=["1.34"])] = OLDEST_VERSION
    """Oldest version of Kubernetes among the clusters."""
    submit: SubmitSettings = SubmitSettings()
    monitoring: MonitoringSettings = MonitoringSettings(enabled=False)
    logs: Annotated[str | None, LOG_LINK] = None
    """Address at which a log system shows the output of a pod or trial, with {namespace}, {pod}, {sweep}, {batch} and
    {trial} where they belong."""


class FleetSettings(Struct, frozen=True):
    """The clusters of a repository that has several."""

    clusters: Annotated[
        Mapping[Annotated[str, text_forms.CLUSTER_NAME], ClusterSettings],
        Meta(max_length=100),
        EntryName("eu"),
    ] = EMPTY
    """Clusters by name, if the repository has several: each runs some of the sweeps."""
    cluster: Annotated[str | None, UNWRITTEN] = None
    """The cluster that these settings are of; None: the only one, or all of several."""

    @property
    def live_clusters(self) -> tuple[str, ...]:
        """The names of the clusters that were not given up, sorted."""
        return tuple(sorted(name for name, cluster in self.clusters.items() if not cluster.is_lost))

    @property
    def lost_clusters(self) -> tuple[str, ...]:
        """The names of the clusters that were given up, sorted."""
        return tuple(sorted(name for name, cluster in self.clusters.items() if cluster.is_lost))

    def eligible_clusters(self, pool: str | None) -> dict[str, ClusterSettings]:
        """Return the clusters that could run trials of a pool: they were not given up, and have it."""
        return {
            name: self.clusters[name] for name in self.live_clusters if self.clusters[name].has_pool(pool)
        }

    def choose_cluster(self, sweep: str, run: RunConfig, *, last: str | None) -> str | None:
        """Return the cluster of a sweep's next batch: that of its spec, else the `last` one, else by the sweep's name.

        None if the settings name no clusters, or if none of them can run it.
        """
        eligible = self.eligible_clusters(run.pool)
        if run.cluster is not None or last in eligible:
            chosen = run.cluster or last
            return chosen if chosen in eligible else None
        # Rendezvous hashing: if a cluster comes or goes, only the sweeps move that it wins or had won.
        # Each has as many draws as its weight, so that it wins in proportion, without floating point.
        draws = [
            (sha256(f"{name} {number} {sweep}".encode()).digest(), name)
            for name, cluster in eligible.items()
            for number in range(cluster.weight)
        ]
        return max(draws)[1] if draws else None


class AddedContainer(Struct, frozen=True):
    """A container that a cluster adds to pods, such as the proxy of a mesh."""

    name: Annotated[str, NAME]
    image: Annotated[text_forms.ImagePrefix, Meta(examples=["docker.io/istio/proxyv2"])]
    """Repository of its image, without tag and digest."""
    volumes: Annotated[tuple[Annotated[str, text_forms.VOLUME_NAME], ...], some(50)] = ()
    """Volumes that come with it, by name; it mounts no other ones."""


VariableName = Annotated[str, Meta(pattern="^[A-Z_][A-Z0-9_]{0,127}$", examples=["LD_LIBRARY_PATH"])]


class AdmissionSettings(Struct, frozen=True):
    """What pods of trials may have in addition to what batches give them."""

    sidecars: Annotated[
        Mapping[text_forms.Name, AddedContainer], Meta(max_length=20), EntryName("istio-proxy")
    ] = EMPTY
    """Containers that the cluster adds to pods of trials, such as the proxy of a mesh, by name."""
    mirrors: Annotated[
        Mapping[text_forms.ImagePrefix, text_forms.ImagePrefix],
        Meta(max_length=50, examples=[{"registry.example.org": "mirror.example.org/cache"}]),
    ] = EMPTY
    """Registries, or beginnings of repositories, that the cluster replaces in images of pods, each with its
    replacement."""
    allowed_variables: Annotated[tuple[VariableName, ...], Meta(max_length=100)] = ()
    """Environment variables that specs may set although the loader, a shell or Python obeys them before the launcher
    starts."""
    kueue: Annotated[str, text_forms.SERVICE_ACCOUNT] = "kueue-system/kueue-controller-manager"
    """Namespace and name of Kueue's service account, which alone chooses nodes for what a queue held back."""
