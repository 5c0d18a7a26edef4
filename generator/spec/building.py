"""From checked data to values. Whatever is wrong with the data was said before."""

from types import MappingProxyType
from typing import Any

from generator.reader import Document
from generator.spec import units
from generator.structs.domain import Choice, Constant, Domain
from generator.structs.settings import Dataset, Settings
from generator.structs.space import Parameter, SearchSpace
from generator.structs.sweep import Goal, Grid, Metric, MetricSource, Resources, Run, Shape, Sweep
from generator.structs.values import Value, bytes_digest


def sweep(document: Document) -> Sweep:
    """Build the sweep of a document without problems."""
    data = document.data
    metric = data["metric"]
    return Sweep(
        name=data["name"],
        description=data.get("description", ""),
        metric=Metric(
            metric["name"],
            Goal(metric.get("goal", Goal.MINIMIZE)),
            MetricSource(metric.get("source", MetricSource.RESULT)),
        ),
        blocks=(
            Grid(
                SearchSpace(
                    tuple(Parameter(name, _domain(domain)) for name, domain in data["parameters"].items())
                )
            ),
        ),
        command=tuple(data["command"]),
        run=_run(data.get("run", {})),
        path=document.file,
        # Of the text, so that a checkout with CRLF line ends gives the same digest.
        digest=bytes_digest(document.text.encode()),
    )


def _domain(data: dict[str, Any]) -> Domain:
    if "value" in data:
        return Constant(_value(data["value"]))
    return Choice(tuple(_value(value) for value in data["values"]))


def _value(data: Any) -> Value:
    value: Value = tuple(data) if isinstance(data, list) else data
    return value


def _run(data: dict[str, Any]) -> Run:
    default, resources = Run(), data.get("resources", {})
    return Run(
        image=data.get("image"),
        interpreter=data.get("interpreter", default.interpreter),
        code_path=data.get("code", {}).get("path", default.code_path).removesuffix("/"),
        data=data.get("data"),
        resources=Resources(
            cpu=units.cores(resources.get("cpu", default.resources.cpu)),
            memory=units.memory(resources.get("memory", default.resources.memory)),
            gpu=int(resources.get("gpu", default.resources.gpu)),
        ),
        parallelism=int(data.get("parallelism", default.parallelism)),
        retries=int(data.get("retries", default.retries)),
        timeout_seconds=units.seconds(data["timeout"]) if "timeout" in data else default.timeout_seconds,
        seed_base=int(data.get("seed_base", default.seed_base)),
        shape=Shape(data["shape"]) if "shape" in data else None,
    )


def settings(document: Document) -> Settings:
    """Build the settings of a document without problems."""
    data, default = document.data or {}, Settings()
    return Settings(
        namespace=data.get("namespace", default.namespace),
        image=data.get("image", default.image),
        results_claim=data.get("results", {}).get("claim", default.results_claim),
        branch=data.get("branch", default.branch),
        remote=data.get("remote", default.remote),
        datasets=MappingProxyType(
            {
                name: Dataset(name, dataset["claim"], dataset["digest"], tuple(dataset.get("prepare", ())))
                for name, dataset in data.get("datasets", {}).items()
            }
        ),
    )
