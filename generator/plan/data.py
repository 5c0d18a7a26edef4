"""A review as JSON shows it: every key always there, lists of trials cut at a thousand."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, assert_never

from generator.plan.bins import Binned
from generator.plan.budgets import Balance
from generator.plan.coverage import Counted, Covered
from generator.plan.difference import Difference, Unreadable
from generator.plan.evenness import Discrepancy
from generator.plan.forecast_data import forecast_as_data
from generator.plan.outdated import Outdated
from generator.plan.review import BlockReview, Cost, Review
from generator.plan.room import Room
from generator.structs.trial import Trial

MOST_TRIALS = 1000
"""Listed of those added and those removed; the counts are of all."""


def as_data(review: Review) -> dict[str, Any]:
    """Give all that a review found."""
    sweep = review.sweep
    return {
        "name": sweep.name,
        "path": sweep.path,
        "description": sweep.description,
        "trials": len(review.trials),
        "assignments": review.coverage.assignments,
        "replicates": sweep.replicates,
        "new": review.standing.new,
        "running": review.standing.running,
        "recorded": review.standing.recorded,
        "unlocked": review.unlocked,
        "outdated": [_outdated(one) for one in review.outdated],
        "cost": {
            "all": _cost(review.whole_cost),
            "new": _cost(review.new_cost),
            "timeout_seconds": sweep.run.timeout_seconds,
            "attempts": sweep.run.retries + 1,
            "parallelism": sweep.run.parallelism,
        },
        "batch": review.batch,
        "search": None if review.ahead is None else asdict(review.ahead),
        "forecast": forecast_as_data(review.forecast),
        "budgets": [balance_as_data(one) for one in review.balances],
        "notes": [{"kind": one.kind, "text": one.text} for one in review.notes],
        "pool": room_as_data(review.room),
        "budget": {"max_trials": sweep.budget.max_trials, "max_gpu_hours": sweep.budget.max_gpu_hours},
        "blocks": [_block(block) for block in review.blocks],
        "parameters": [_covered(one) for one in review.coverage.parameters],
        "constants": dict(review.coverage.constants),
        "first": _trials(review.first),
        "last": _trials(review.last),
        "difference": _difference(review.difference),
    }


def _cost(found: Cost) -> dict[str, Any]:
    return {
        "trials": found.trials,
        "hours": found.hours,
        "trial_hours": found.hours,
        "gpu_hours": found.gpu_hours,
        "wall_hours": found.wall_hours,
    }


def balance_as_data(found: Balance) -> dict[str, Any]:
    """Give a balance as JSON shows it."""
    return {
        "team": found.team,
        "unit": str(found.unit),
        "limit": found.limit,
        "used": found.used,
        "promised": found.promised,
        "asked": found.asked,
        "left": found.left,
        "exceeded": found.is_exceeded,
    }


def room_as_data(found: Room | None) -> dict[str, Any] | None:
    """Give a room as JSON shows it."""
    if found is None:
        return None
    asked = found.run.resources
    return {
        "name": found.pool.name,
        "trials": found.trials,
        "at_once": found.at_once,
        "nodes": found.nodes,
        "max_nodes": found.pool.max_nodes,
        "price": found.price,
        "resources": {"cpu": asked.cpu, "memory": asked.memory, "gpu": asked.gpu},
    }


def _outdated(one: Outdated) -> dict[str, str]:
    return {"part": one.part, "name": one.name, "locked": one.locked, "current": one.current}


def _block(block: BlockReview) -> dict[str, Any]:
    return {
        "method": block.method,
        "candidates": block.candidates,
        "rejected": block.rejected,
        "duplicates": block.duplicates,
        "kept": block.kept,
        "acceptance": block.acceptance,
        "constraints": [
            {"text": one.text, "rejected": one.rejected, "unasked": one.unasked} for one in block.constraints
        ],
        "discrepancy": None if block.discrepancy is None else _discrepancy(block.discrepancy),
    }


def _discrepancy(found: Discrepancy) -> dict[str, Any]:
    return {
        "points": found.points,
        "dimensions": found.dimensions,
        "value": found.value,
        "random": found.random,
    }


def _covered(one: Covered) -> dict[str, Any]:
    return {
        "name": one.name,
        "assignments": one.present,
        "derived": one.is_derived,
        "conditional": one.is_conditional,
        "zipped_with": list(one.zipped_with),
        **_values(one.values),
    }


def _values(values: Counted | Binned) -> dict[str, Any]:
    match values:
        case Counted():
            counts = [{"value": value, "count": count} for value, count in values.values]
            return {"counts": counts, "histogram": None}
        case Binned():
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


def _difference(found: Difference | Unreadable) -> dict[str, Any]:
    match found:
        case Difference():
            return {
                "former": found.former,
                "problems": [],
                "added": len(found.added),
                "removed": len(found.removed),
                "unchanged": found.unchanged,
                "added_trials": _trials(found.added[:MOST_TRIALS]),
                "removed_trials": _trials(found.removed[:MOST_TRIALS]),
            }
        case Unreadable():
            return {
                "former": found.former,
                "problems": [problem.as_data() for problem in found.problems],
                "added": None,
                "removed": None,
                "unchanged": None,
                "added_trials": [],
                "removed_trials": [],
            }
        case _:
            assert_never(found)


def _trials(found: Iterable[Trial]) -> list[dict[str, Any]]:
    return [
        {"trial": trial.id, "params": dict(trial.assignment), "replicate": trial.replicate} for trial in found
    ]
