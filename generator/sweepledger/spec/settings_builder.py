"""The Settings of a document without problems."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from sweepledger.reader import Document
from sweepledger.spec import units
from sweepledger.spec.draft import RawMapping
from sweepledger.structs.kubernetes import parse_version
from sweepledger.structs.node_pool import (
    GPU_RESOURCE,
    GpuShares,
    GpuSharing,
    NodeCapacity,
    PodSettings,
    Pool,
    Provisioning,
    ServiceToken,
    Toleration,
    Topology,
)
from sweepledger.structs.settings import (
    AddedContainer,
    ArgoCdSettings,
    AuthoritiesSettings,
    BucketSettings,
    ClusterSettings,
    CodeSource,
    CollectorSettings,
    Controller,
    Dataset,
    Defaults,
    DnsSettings,
    Egress,
    GenerateMode,
    Image,
    LogsSettings,
    MessageService,
    MonitoringSettings,
    NextRoundMode,
    Nfs,
    Notify,
    ProxySettings,
    PullRequestResults,
    ResultsMode,
    ResultsSettings,
    ResultsStore,
    SecretReference,
    Settings,
    SubmitSettings,
    SweepLimits,
    SyncTarget,
    TeamBudget,
)


def build_pool(name: str, data: Mapping[str, Any]) -> Pool:
    """Build a pool without problems."""
    price, most = data.get("price"), data.get("max_nodes")
    node = data["node"]
    made = Pool(
        name,
        NodeCapacity(units.cores(node["cpu"]), units.memory(node["memory"]), int(node.get("gpu", 0))),
        queue=data.get("queue"),
        min_parallelism=int(data["min_parallelism"]) if "min_parallelism" in data else None,
        flavor=data.get("flavor"),
        cohort=data.get("cohort"),
        topology=_topology(data["topology"]) if "topology" in data else None,
        provisioning=_provisioning(data["provisioning"]) if "provisioning" in data else None,
        selector=MappingProxyType(dict(data.get("selector", {}))),
        tolerations=tuple(Toleration(**toleration) for toleration in data.get("tolerations", ())),
        gpu_resource=data.get("gpu_resource", GPU_RESOURCE),
        gpu_shares=_gpu_shares(data.get("gpu_shares")),
        gpu_type=data.get("gpu_type"),
        max_nodes=None if most is None else int(most),
        price=None if price is None else float(price),
        spot=data.get("spot", False),
        pod=_pod_settings(data.get("pod", {})),
    )
    return made if "startup" not in data else replace(made, startup_seconds=units.seconds(data["startup"]))


def _gpu_shares(data: Mapping[str, Any] | None) -> GpuShares | None:
    return None if data is None else GpuShares(GpuSharing(data["by"]), int(data["count"]))


def _topology(data: Mapping[str, Any]) -> Topology:
    return Topology(tuple(data["levels"]), data.get("require"), data.get("prefer"))


def _provisioning(data: Mapping[str, Any]) -> Provisioning:
    return Provisioning(
        data["class"],
        MappingProxyType(dict(data.get("parameters", {}))),
        MappingProxyType(dict(data.get("selector", {}))),
        int(data["retries"]) if "retries" in data else None,
    )


def _pod_settings(data: Mapping[str, Any]) -> PodSettings:
    return PodSettings(
        runtime_class=data.get("runtime_class"),
        scheduler=data.get("scheduler"),
        priority_class=data.get("priority_class"),
        service_account=data.get("service_account"),
        labels=MappingProxyType(dict(data.get("labels", {}))),
        annotations=MappingProxyType(dict(data.get("annotations", {}))),
        resources=MappingProxyType({name: int(amount) for name, amount in data.get("resources", {}).items()}),
        claims=MappingProxyType(dict(data.get("claims", {}))),
        spread=MappingProxyType({key: int(skew) for key, skew in data.get("spread", {}).items()}),
        tokens=MappingProxyType({name: _token(token) for name, token in data.get("tokens", {}).items()}),
        grace_seconds=units.seconds(data["grace"]) if "grace" in data else None,
    )


def _token(data: Mapping[str, Any]) -> ServiceToken:
    made = ServiceToken(data["audience"])
    return made if "expires" not in data else replace(made, expires_seconds=units.seconds(data["expires"]))


T = TypeVar("T")

VERSION_PREFIX = "version:"
"""Prefix of the identity of a dataset without a digest."""


def build_settings(document: Document) -> Settings:
    """Build the settings of a document without problems."""
    data, default = document.data or {}, Settings()
    return Settings(
        namespace=data.get("namespace", default.namespace),
        defaults=_defaults(data.get("defaults", {})),
        branch=data.get("branch", default.branch),
        repository=data.get("repository"),
        controller=Controller(data.get("controller", default.controller)),
        generate=GenerateMode(data.get("generate", default.generate)),
        next=NextRoundMode(data.get("next", default.next)),
        results=_results(data.get("results", {})),
        collector=_collector(data.get("collector", {})),
        argocd=ArgoCdSettings(**data.get("argocd", {})),
        kubernetes=parse_version(data["kubernetes"]) if "kubernetes" in data else default.kubernetes,
        clusters=_named(data, "clusters", _cluster),
        limits=_limits(data.get("limits", {})),
        submit=_submit(data.get("submit", {})),
        monitoring=_monitoring(data.get("monitoring", {})),
        logs=LogsSettings(**data.get("logs", {})),
        currency=data.get("currency", default.currency),
        budgets=_named(data, "budgets", _allowance),
        code=CodeSource(**data["code"]) if "code" in data else None,
        images=_named(data, "images", _image),
        datasets=_named(data, "datasets", _dataset),
        secrets=_named(data, "secrets", _secret),
        egress=_named(data, "egress", _egress),
        dns=None if "dns" not in data else _dns(data["dns"]),
        sidecars=_named(data, "sidecars", _sidecar),
        mirrors=MappingProxyType(dict(data.get("mirrors", {}))),
        proxy=None if "proxy" not in data else _proxy(data["proxy"]),
        authorities=AuthoritiesSettings(**data["authorities"]) if "authorities" in data else None,
        pools=_named(data, "pools", build_pool),
        labels=MappingProxyType(dict(data.get("labels", {}))),
        image_pull_secret=data.get("image_pull_secret"),
        priority_class=data.get("priority_class"),
        allowed_variables=tuple(data.get("allowed_variables", ())),
        signers=tuple(data.get("signers", ())),
    )


def _named(data: RawMapping, key: str, make: Callable[[str, RawMapping], T]) -> Mapping[str, T]:
    return MappingProxyType({name: make(name, written) for name, written in data.get(key, {}).items()})


def _defaults(data: RawMapping) -> Defaults:
    default = Defaults()
    return Defaults(
        image=data.get("image", default.image),
        pool=data.get("pool"),
        retries=int(data.get("retries", default.retries)),
        timeout_seconds=units.seconds(data["timeout"]) if "timeout" in data else default.timeout_seconds,
    )


def _results(data: RawMapping) -> ResultsSettings:
    default = ResultsSettings()
    return ResultsSettings(
        claim=data.get("claim", default.claim),
        checkpoints=data.get("checkpoints"),
        artifacts=data.get("artifacts"),
        mode=ResultsMode(data.get("mode", default.mode)),
        every_minutes=units.minutes(data["every"]) if "every" in data else default.every_minutes,
        progress_minutes=units.minutes(data["progress"]) if "progress" in data else None,
        keep_days=units.days(data["keep"]) if "keep" in data else None,
        from_pull_request=PullRequestResults(data.get("from_pull_request", default.from_pull_request)),
        nfs=_nfs(data),
        store=ResultsStore(data.get("store", default.store)),
        bucket=_bucket(data["bucket"]) if "bucket" in data else None,
        sync=MappingProxyType({name: SyncTarget(**target) for name, target in data.get("sync", {}).items()}),
    )


def _bucket(data: RawMapping) -> BucketSettings:
    identities = {
        key: MappingProxyType(dict(data.get(key, {})))
        for key in ("identity", "collector_identity", "expiry_identity")
    }
    return BucketSettings(**{**data, **identities})


def _collector(data: RawMapping) -> CollectorSettings:
    default = CollectorSettings()
    return CollectorSettings(
        pool=data.get("pool"),
        priority_class=data.get("priority_class"),
        memory=units.memory(data["memory"]) if "memory" in data else default.memory,
        disk=units.memory(data["disk"]) if "disk" in data else default.disk,
        watches=data.get("watch", default.watches),
    )


def _nfs(data: RawMapping) -> Nfs | None:
    return Nfs(**data["nfs"]) if "nfs" in data else None


def _limits(data: RawMapping) -> SweepLimits:
    most, hours = data.get("max_trials"), data.get("max_gpu_hours")
    limits = SweepLimits(None if most is None else int(most), None if hours is None else float(hours))
    return replace(limits, failures=int(data["failures"])) if "failures" in data else limits


def _submit(data: RawMapping) -> SubmitSettings:
    return SubmitSettings(units.seconds(data["ttl"])) if "ttl" in data else SubmitSettings()


def _monitoring(data: RawMapping) -> MonitoringSettings:
    notify = data.get("notify")
    return MonitoringSettings(
        enabled=data.get("enabled", False),
        labels=MappingProxyType(dict(data.get("labels", {}))),
        notify=None if notify is None else Notify(MessageService(notify["service"]), notify["channel"]),
        commit_status=data.get("commit_status", False),
    )


def _image(name: str, data: RawMapping) -> Image:
    return Image(name, data["repository"], data.get("digest", ""), data.get("tag"))


def _dataset(name: str, data: RawMapping) -> Dataset:
    return Dataset(
        name,
        claim=data.get("claim"),
        identity=data["digest"] if "digest" in data else f"{VERSION_PREFIX}{data['version']}",
        path=data.get("path", "").removesuffix("/"),
        prepare=tuple(data.get("prepare", ())),
        nfs=_nfs(data),
        examples=int(data["examples"]) if "examples" in data else None,
        bucket=data.get("bucket", "").removesuffix("/"),
        size=units.memory(data["size"]) if "size" in data else None,
    )


def _allowance(name: str, data: RawMapping) -> TeamBudget:
    hours, money = data.get("gpu_hours"), data.get("money")
    return TeamBudget(
        name,
        tuple(data.get("sweeps", TeamBudget(name).sweeps)),
        None if hours is None else float(hours),
        None if money is None else float(money),
    )


def _secret(name: str, data: RawMapping) -> SecretReference:
    return SecretReference(name, data["secret"], data["key"], data["variable"])


def _dns(data: RawMapping) -> DnsSettings:
    return DnsSettings(
        data.get("namespace"),
        MappingProxyType(dict(data.get("labels", {}))),
        tuple(data.get("cidrs", ())),
        int(data.get("port", 53)),
    )


def _cluster(name: str, data: RawMapping) -> ClusterSettings:
    return ClusterSettings(
        name,
        weight=int(data.get("weight", 1)),
        is_lost=data.get("lost", False),
        pools=tuple(data["pools"]) if "pools" in data else None,
        argocd=ArgoCdSettings(**data.get("argocd", {})),
        egress=_named(data, "egress", _egress),
        dns=None if "dns" not in data else _dns(data["dns"]),
        nfs=_nfs(data),
    )


def _proxy(data: RawMapping) -> ProxySettings:
    return ProxySettings(data["address"], data["egress"], tuple(data.get("except", ())))


def _sidecar(name: str, data: RawMapping) -> AddedContainer:
    return AddedContainer(name, data["image"], tuple(data.get("volumes", ())))


def _egress(name: str, data: RawMapping) -> Egress:
    ports = tuple(int(port) for port in data["ports"])
    return Egress(name, tuple(data.get("cidrs", ())), ports, tuple(data.get("hosts", ())))
