"""The `data` of JSON envelopes, one function per type of value."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweepledger.commands.check import CheckReport
    from sweepledger.commands.generation.next_batch import Generated
    from sweepledger.commands.plan import Planned


def generated_data(generated_sweeps: "Iterable[Generated]") -> dict[str, Any]:
    """Return what `sweep generate` wrote or would write."""
    return {
        "sweeps": [
            {
                "name": generated.sweep.name,
                "trials": generated.trials,
                "known": generated.known,
                "new": generated.trials - generated.known,
                "batch": generated.batch.name if generated.batch else None,
                "written": bool(generated.batch) and not generated.is_written,
                "removed": [stored.folder for stored in generated.stale],
            }
            for generated in generated_sweeps
        ]
    }


def plan_data(planned: "Planned") -> dict[str, Any]:
    """Return the review that `sweep plan` shows."""
    from sweepledger.plan import review_as_data

    return {
        "base": planned.base,
        "month": planned.month,
        "currency": planned.currency or None,
        "sweeps": [review_as_data(review) for review in planned.reviews],
        "unchanged": list(planned.unchanged),
    }


def check_data(report: "CheckReport") -> dict[str, object]:
    """Return the report of `sweep check`."""
    from sweepledger.plan import pool_usage_as_data

    return {
        "specs": report.specs,
        "built": list(report.builds.built),
        "unchanged": list(report.builds.unchanged),
        "untracked": list(report.untracked),
        "pools": {name: pool_usage_as_data(usage) for name, usage in report.rooms},
    }
