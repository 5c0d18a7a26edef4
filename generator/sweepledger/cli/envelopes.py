"""The `data` of JSON envelopes, one function per type of value."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweepledger.commands.reports.results import RankedTrials
    from sweepledger.formats.summary_csv import SummaryRow


def ranked_data(ranked: "RankedTrials") -> dict[str, Any]:
    """Return the listed trials of `sweep results`."""
    return {
        "sweep": ranked.sweep,
        "sorted_by": ranked.by,
        "laptop": list(ranked.laptop),
        "head_program": ranked.head,
        "trials": [trial_data(ranked, row, why) for row, why in zip(ranked.rows, ranked.barred, strict=True)],
    }


def trial_data(ranked: "RankedTrials", row: "SummaryRow", why: str | None) -> dict[str, Any]:
    """Return one ranked trial of `sweep results`."""
    return {
        "trial": row.trial,
        "batch": row.batch,
        "index": row.index,
        "status": str(row.status),
        "reason": row.reason,
        "error": row.error,
        "configuration": dict(row.assignment),
        "metrics": dict(row.metrics),
        "seconds": row.seconds,
        "program": row.program,
        "recorded": (row.batch, row.index) not in ranked.unrecorded,
        "not_ranked": why,
        # Only for sweeps with several metrics.
        **({"front": row.trial in ranked.front and why is None} if ranked.others else {}),
    }
