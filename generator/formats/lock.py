"""The lock file `batch.yaml` of an overlay."""

from typing import Any

from generator.formats import yaml
from generator.structs.batch import Lock
from generator.structs.program import Program
from generator.structs.reporting import MetricFormat, MetricSource, Reduce
from generator.structs.sweep import Goal, Metric, Shape

LOCK_FILE = "batch.yaml"


def write(lock: Lock, *, banner: str) -> str:
    """Write the lock as batch.yaml holds it."""
    return yaml.dump(lock.as_data(), banner=banner)


def read(text: str | bytes) -> Lock:
    """Read a lock. Raises ValueError if it is not one of a version this program knows."""
    data = yaml.load(text)
    try:
        return _lock(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a lock file of version 1: {error!r}") from error


def _lock(data: dict[str, Any]) -> Lock:
    if data["version"] != 1:
        raise ValueError(f"a lock file must have version 1, but got {data['version']!r}")
    return Lock(
        name=data["name"],
        digest=data["digest"],
        sweep=data["sweep"],
        number=data["number"],
        parent=data["parent"],
        spec_path=data["spec"]["path"],
        spec_digest=data["spec"]["digest"],
        shape=Shape(data["shape"]),
        trials=data["trials"],
        metric=_metric(data["metric"]),
        program=Program.from_data(data["program"]),
        seed_base=data["seed_base"],
        retries=data["retries"],
        generator=data["generator"],
        bases=tuple(data["bases"]),
        files=dict(data["files"]),
    )


def _metric(data: dict[str, Any]) -> Metric:
    return Metric(
        data["name"],
        Goal(data["goal"]),
        MetricSource(data["source"]),
        MetricFormat(data["format"]) if "format" in data else None,
        Reduce(data.get("reduce", Reduce.LAST)),
    )
