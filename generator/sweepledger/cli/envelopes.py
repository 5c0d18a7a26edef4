"""The `data` of JSON envelopes, one function per type of value."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sweepledger.cli.response import EXIT_PROBLEMS, Response
from sweepledger.errors import UnreadableError

if TYPE_CHECKING:
    from rich.text import Text

    from sweepledger.commands.check import CheckReport
    from sweepledger.commands.generation.next_batch import Generated
    from sweepledger.commands.plan import Planned
    from sweepledger.commands.reports.results import RankedTrials
    from sweepledger.commands.reports.status import Origin, SweepStatus
    from sweepledger.commands.rounds.progress import SearchProgress
    from sweepledger.commands.submit import Submitted
    from sweepledger.formats.summary_csv import SummaryRow


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


def status_response(
    data: "list[dict[str, Any]]", statuses: "tuple[SweepStatus, ...]", *lines: "Text"
) -> Response:
    """Return the state of sweeps; files that cannot be read are problems, and set the exit code."""
    from sweepledger.cli.text import results

    problems = tuple(problem for status in statuses for problem in status.problems)
    mistakes = tuple(problem for status in statuses for problem in status.mistakes)
    edits = tuple(edit for status in statuses for edit in status.edits)
    code = UnreadableError.exit_code if problems else EXIT_PROBLEMS if mistakes else 0
    text = (*results.status_text(statuses), *lines)
    return Response({"sweeps": data}, text, (*problems, *mistakes, *edits), code)


def sweep_status_data(status: "SweepStatus") -> dict[str, Any]:
    """Return the state of one sweep."""
    from sweepledger.cli.text import values

    best = (
        None
        if status.best is None
        else {
            "trial": status.best.trial,
            "value": status.best.value,
            "recorded": status.best.is_recorded,
        }
    )
    return {
        "name": status.sweep,
        "batches": status.batches,
        "active": list(status.active),
        "trials": status.trials,
        **{name: status.counts[name] for name in values.STATUS_COUNTS},
        "best": best,
        "laptop": list(status.laptop),
        "doubts": list(status.doubts),
        **({"front": list(status.front)} if status.front else {}),
        **({"search": search_progress_data(status.search)} if status.search else {}),
        **({} if status.origin is None else {"links": origin_data(status.origin)}),
    }


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


def submitted_data(submitted: "Submitted") -> dict[str, Any]:
    """Return what `sweep submit` created."""
    return {
        "batch": submitted.batch,
        "created": list(submitted.created),
        "present": list(submitted.running),
        "recorded": submitted.recorded,
    }


def origin_data(origin: "Origin") -> dict[str, Any]:
    """Return the files of a sweep, and the pull requests that added its batches."""
    return {
        "spec": origin.spec,
        "batches": [{"folder": folder, "pull_request": number} for folder, number in origin.batches],
        "results": origin.results,
    }


def search_progress_data(progress: "SearchProgress") -> dict[str, Any]:
    """Return the progress of a search."""
    return {
        "method": progress.method,
        "round": progress.round,
        "rounds": progress.rounds,
        "recorded": progress.recorded,
        "max_trials": progress.most,
        "state": str(progress.state),
        "reason": progress.reason,
        "message": progress.text,
    }
