"""A review as JSON: every key always present, lists of trials cut at a thousand."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, assert_never

from sweepledger.plan.budgets import Balance
from sweepledger.plan.changes import CodeChange, Difference, UnreadableSpec
from sweepledger.plan.coverage import Histogram, ParameterCoverage, ValueCounts
from sweepledger.plan.review import DesignReview, Review
from sweepledger.plan.upper_bounds import PoolUsage
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import as_data

MAX_TRIALS = 1000
"""Limit for the lists of added and of removed trials; the counts include all."""

MAX_FILES = 1000
"""Limit for the list of changed files."""


def review_as_data(review: Review) -> dict[str, Any]:
    """Return a review as JSON data."""
    sweep, infrastructure = review.sweep, review.sweep.run.infrastructure
    return {
        "name": sweep.name,
        "path": sweep.path,
        "description": sweep.description,
        "trials": len(review.trials),
        "configurations": review.coverage.configurations,
        "replicates": sweep.replicates,
        **asdict(review.counts),
        "unlocked": review.unlocked,
        "outdated": [asdict(part) for part in review.outdated],
        "code": [_code_change(change) for change in review.code],
        "cost": {
            "all": asdict(review.whole_cost),
            "new": asdict(review.new_cost),
            "timeout_seconds": sweep.run.timeout_seconds,
            "attempts": sweep.run.attempts,
            "max_disruptions": sweep.run.max_disruptions,
            "parallelism": sweep.run.parallelism,
            **({} if infrastructure is None else {"infrastructure": as_data(infrastructure)}),
        },
        **({} if sweep.run.pack is None else {"pack": asdict(sweep.run.pack)}),
        "batch": review.batch,
        "cluster": review.cluster,
        "search": None if review.further_rounds is None else asdict(review.further_rounds),
        "forecast": None if review.forecast is None else asdict(review.forecast),
        "budgets": [balance_as_data(balance) for balance in review.balances],
        "notes": list(map(asdict, review.notes)),
        "pool": pool_usage_as_data(review.pool_usage),
        "disk": None if review.disk is None else asdict(review.disk),
        "budget": asdict(sweep.budget),
        "design": _design(review.design),
        "parameters": [_parameter(parameter) for parameter in review.coverage.parameters],
        "constants": dict(review.coverage.constants),
        "first": _trials(review.first),
        "last": _trials(review.last),
        "difference": _difference(review.difference),
    }


def balance_as_data(balance: Balance) -> dict[str, Any]:
    """Return a balance as JSON data."""
    return {**asdict(balance), "remaining": balance.remaining, "exceeded": balance.is_exceeded}


def pool_usage_as_data(usage: PoolUsage | None) -> dict[str, Any] | None:
    """Return the use of a pool as JSON data."""
    if usage is None:
        return None
    resources = usage.run.resources
    return {
        "name": usage.pool.name,
        "trials": usage.trials,
        "at_once": usage.at_once,
        "nodes": usage.nodes,
        "max_nodes": usage.pool.max_nodes,
        "price": usage.price,
        "resources": {"cpu": resources.cpu, "memory": resources.memory, "gpu": resources.gpu},
    }


def _code_change(change: CodeChange) -> dict[str, Any]:
    files = change.files if change.files is None else [asdict(file) for file in change.files[:MAX_FILES]]
    return {"since": change.since, "count": len(change.files or ()), "files": files}


def _design(design: DesignReview) -> dict[str, Any]:
    discrepancy = design.discrepancy
    random = None if discrepancy is None else {**asdict(discrepancy), "random": discrepancy.random}
    return {**asdict(design), "acceptance": design.acceptance, "discrepancy": random}


def _parameter(parameter: ParameterCoverage) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "configurations": parameter.present,
        "derived": parameter.is_derived,
        "conditional": parameter.is_conditional,
        "zipped_with": list(parameter.zipped_with),
        **_values(parameter.values),
    }


def _values(values: ValueCounts | Histogram) -> dict[str, Any]:
    match values:
        case ValueCounts():
            counts = [{"value": value, "count": count} for value, count in values.values]
            return {"counts": counts, "histogram": None}
        case Histogram():
            histogram = {
                "scale": str(values.scale),
                "low": values.low,
                "high": values.high,
                "min": values.smallest,
                "max": values.largest,
                "counts": list(values.counts),
            }
            return {"counts": None, "histogram": histogram}
        case _:
            assert_never(values)


def _difference(difference: Difference | UnreadableSpec) -> dict[str, Any]:
    readable = difference if isinstance(difference, Difference) else None
    unreadable = difference if isinstance(difference, UnreadableSpec) else None
    return {
        "previous": difference.former,
        "problems": [problem.as_data() for problem in unreadable.problems] if unreadable else [],
        "added": len(readable.added) if readable else None,
        "removed": len(readable.removed) if readable else None,
        "unchanged": readable.unchanged if readable else None,
        "added_trials": _trials(readable.added[:MAX_TRIALS]) if readable else [],
        "removed_trials": _trials(readable.removed[:MAX_TRIALS]) if readable else [],
    }


def _trials(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    return [
        {"trial": trial.id, "configuration": dict(trial.assignment), "replicate": trial.replicate}
        for trial in trials
    ]
