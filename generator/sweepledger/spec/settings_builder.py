"""The repository's settings."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from generator.reader import Document
from generator.spec import units
from generator.spec.building.pools import pool
from generator.structs.settings import (
    Allowance,
    CodeSource,
    Controller,
    Dataset,
    Defaults,
    Egress,
    Generate,
    Image,
    Limits,
    Next,
    Nfs,
    Results,
    ResultsMode,
    Secret,
    Settings,
    Submit,
)

T = TypeVar("T")
Written = Mapping[str, Any]

VERSIONED = "version:"
"""What begins the identity of data that have no digest."""


def settings(document: Document) -> Settings:
    """Build the settings of a document without problems."""
    data, default = document.data or {}, Settings()
    return Settings(
        namespace=data.get("namespace", default.namespace),
        defaults=_defaults(data.get("defaults", {})),
        branch=data.get("branch", default.branch),
        remote=data.get("remote", default.remote),
        controller=Controller(data.get("controller", default.controller)),
        generate=Generate(data.get("generate", default.generate)),
        next=Next(data.get("next", default.next)),
        results=_results(data.get("results", {})),
        limits=_limits(data.get("limits", {})),
        submit=_submit(data.get("submit", {})),
        currency=data.get("currency", default.currency),
        budgets=_named(data, "budgets", _allowance),
        code=CodeSource(**data["code"]) if "code" in data else None,
        images=_named(data, "images", _image),
        datasets=_named(data, "datasets", _dataset),
        secrets=_named(data, "secrets", _secret),
        egress=_named(data, "egress", _egress),
        pools=_named(data, "pools", pool),
        labels=MappingProxyType(dict(data.get("labels", {}))),
        image_pull_secret=data.get("image_pull_secret"),
        priority_class=data.get("priority_class"),
        signers=tuple(data.get("signers", ())),
    )


def _named(data: Written, key: str, make: Callable[[str, Written], T]) -> Mapping[str, T]:
    return MappingProxyType({name: make(name, written) for name, written in data.get(key, {}).items()})


def _defaults(data: Written) -> Defaults:
    default = Defaults()
    return Defaults(
        image=data.get("image", default.image),
        pool=data.get("pool"),
        retries=int(data.get("retries", default.retries)),
        timeout_seconds=units.seconds(data["timeout"]) if "timeout" in data else default.timeout_seconds,
    )


def _results(data: Written) -> Results:
    default = Results()
    return Results(
        claim=data.get("claim", default.claim),
        checkpoints=data.get("checkpoints"),
        artifacts=data.get("artifacts"),
        mode=ResultsMode(data.get("mode", default.mode)),
        every_minutes=units.minutes(data["every"]) if "every" in data else default.every_minutes,
        progress_minutes=units.minutes(data["progress"]) if "progress" in data else None,
        keep_days=units.days(data["keep"]) if "keep" in data else None,
        nfs=_nfs(data),
    )


def _nfs(data: Written) -> Nfs | None:
    return Nfs(**data["nfs"]) if "nfs" in data else None


def _limits(data: Written) -> Limits:
    most, hours = data.get("max_trials"), data.get("max_gpu_hours")
    return Limits(None if most is None else int(most), None if hours is None else float(hours))


def _submit(data: Written) -> Submit:
    return Submit(units.seconds(data["ttl"])) if "ttl" in data else Submit()


def _image(name: str, data: Written) -> Image:
    return Image(name, data["repository"], data.get("digest", ""), data.get("tag"))


def _dataset(name: str, data: Written) -> Dataset:
    return Dataset(
        name,
        claim=data["claim"],
        identity=data["digest"] if "digest" in data else f"{VERSIONED}{data['version']}",
        path=data.get("path", "").removesuffix("/"),
        prepare=tuple(data.get("prepare", ())),
        nfs=_nfs(data),
        examples=int(data["examples"]) if "examples" in data else None,
    )


def _allowance(name: str, data: Written) -> Allowance:
    hours, money = data.get("gpu_hours"), data.get("money")
    return Allowance(
        name,
        tuple(data.get("sweeps", Allowance(name).sweeps)),
        None if hours is None else float(hours),
        None if money is None else float(money),
    )


def _secret(name: str, data: Written) -> Secret:
    return Secret(name, data["secret"], data["key"], data["variable"])


def _egress(name: str, data: Written) -> Egress:
    return Egress(name, tuple(data["cidrs"]), tuple(int(port) for port in data["ports"]))
