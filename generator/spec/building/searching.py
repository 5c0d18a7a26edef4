"""A search by rounds, what it measures, and what ends its trials before their time."""

from collections.abc import Mapping
from typing import Any

from generator.structs.adaptive import (
    USUAL_ETA,
    EarlyStop,
    HyperbandStop,
    Impute,
    Method,
    PatienceStop,
    PercentileStop,
    Resource,
    Rounds,
    Search,
    TargetStop,
)
from generator.structs.reporting import MetricFormat, MetricSource, Reduce
from generator.structs.space import SearchSpace
from generator.structs.sweep import Goal, Metric

MEDIAN = 50.0
Written = Mapping[str, Any]


def metrics(data: Written) -> tuple[Metric, ...]:
    """Build what is measured: of several, the first says how all are reported."""
    written: list[Written] = data.get("metrics") or [data["metric"]]
    reported = {key: value for key, value in written[0].items() if key in {"source", "format", "reduce"}}
    return tuple(_metric({**one, **reported}) for one in written)


def _metric(section: Written) -> Metric:
    return Metric(
        section["name"],
        Goal(section.get("goal", Goal.MINIMIZE)),
        MetricSource(section.get("source", MetricSource.RESULT)),
        MetricFormat(section["format"]) if "format" in section else None,
        Reduce(section.get("reduce", Reduce.LAST)),
        float(section["target"]) if "target" in section else None,
        Impute(section.get("impute", Impute.WORST)),
    )


def search(data: Written, space: SearchSpace, seed: int) -> Search:
    """Build a search of a space; where it stands and its cap are the caller's to add."""
    rounds, resource = data["rounds"], data.get("resource")
    return Search(
        Method(data["method"]),
        space,
        seed,
        Rounds(int(rounds["size"]), _whole(rounds, "max"), _whole(rounds, "patience")),
        tuple(data.get("start", ())),
        None if resource is None else _resource(resource),
    )


def _resource(written: Written) -> Resource:
    return Resource(
        written["parameter"], int(written["min"]), int(written["max"]), int(written.get("eta", 3))
    )


def early_stop(written: Written | None) -> EarlyStop | None:
    """Build the rule that ends trials; None where none does."""
    match written:
        case None:
            return None
        case {"type": "hyperband"}:
            first, last, count = (_whole(written, key) for key in ("min_iter", "max_iter", "s"))
            eta = float(written.get("eta", USUAL_ETA))
            return HyperbandStop(first, last, count, eta, strict=written.get("strict", False))
    first, last = _whole(written, "min_iter") or 1, _whole(written, "max_iter")
    match written:
        case {"type": "median" | "percentile"}:
            share, least = float(written.get("percentile", MEDIAN)), int(written.get("min_trials", 3))
            return PercentileStop(share, first, last, least)
        case {"type": "patience", "patience": patience}:
            return PatienceStop(int(patience), float(written.get("min_delta", 0)), first, last)
        case {"type": "target"}:
            return TargetStop(first)
        case _:
            raise AssertionError(f"the rules let through {written!r}")


def _whole(written: Written, key: str) -> int | None:
    return int(written[key]) if key in written else None
