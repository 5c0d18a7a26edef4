"""The responses of `collect` and `status` when they read a cluster: pending and stalled batches.

Imported inside functions, because it imports Rich.
"""

from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli import envelopes, response
from sweepledger.cli.response import Response
from sweepledger.cli.text import results, rounds, values
from sweepledger.formats.record_json import format_time

if TYPE_CHECKING:
    from sweepledger.commands.collect import Collection
    from sweepledger.commands.collection.cluster_evidence import PendingRecords
    from sweepledger.commands.reports.status import SweepStatus
    from sweepledger.commands.repository.workspace import Workspace


def collected_response(workspace: "Workspace", collection: "Collection") -> Response:
    """Return the results commits, and the reasons why other batches were not recorded."""
    controller = workspace.settings.controller
    data = {
        "collected": [envelopes.results_commit_data(commit) for commit in collection.collected],
        "waiting": [
            {
                "batch": pending.batch,
                "trials": pending.trials,
                "pods": pending.pods,
                "until": format_time(pending.until),
            }
            for pending in collection.pending
        ],
        "stalled": [
            {"batch": stalled.batch, "says": stalled.text, "hint": stalled.hint(controller)}
            for stalled in collection.stalled
        ],
        "asked": [envelopes.pushed_round_data(pushed) for pushed in collection.rounds],
        "remarks": list(collection.remarks),
    }
    lines = (
        *(_untrusted_text(rounds.pushed_round_text(pushed)) for pushed in collection.rounds),
        *(_batch_line(pending.batch, "waiting", _pending_text(pending)) for pending in collection.pending),
        *(
            _batch_line(stalled.batch, "stalled", stalled.text, stalled.hint(controller))
            for stalled in collection.stalled
        ),
        *(_untrusted_text(f"note: {remark}") for remark in collection.remarks),
    )
    commits = results.collected_text(collection.collected)
    return Response(data, (*commits, *lines), failures=collection.failures)


def cluster_status_response(statuses: "tuple[SweepStatus, ...]", *lines: Text) -> Response:
    """Return the state of sweeps with the counts that only a cluster knows, and remarks on batches."""
    data = [
        {
            **envelopes.sweep_status_data(status),
            **{name.replace(" ", "_"): status.counts[name] for name in values.CLUSTER_COUNTS},
            "remarks": [
                {"batch": remark.batch, "what": remark.what, "says": remark.text, "hint": remark.hint}
                for remark in status.remarks
            ],
        }
        for status in statuses
    ]
    remark_lines = (
        _batch_line(remark.batch, remark.what, remark.text, remark.hint)
        for status in statuses
        for remark in status.remarks
    )
    return envelopes.status_response(data, statuses, *lines, *remark_lines)


def _pending_text(pending: "PendingRecords") -> str:
    missing = [
        *([f"the records of {pending.trials} succeeded trial(s)"] if pending.trials else ()),
        *([f"the end of {pending.pods} pod(s)"] if pending.pods else ()),
    ]
    return (
        f"its Job has ended; waiting for {' and '.join(missing)}, until {format_time(pending.until)} at most"
    )


def _batch_line(batch: str, state: str, details: str, hint: str = "") -> Text:
    hint_line = f"\n  hint: {hint}" if hint else ""
    return _untrusted_text(f"{batch}: {state}: {details}{hint_line}")


def _untrusted_text(text: str) -> Text:
    return Text(response.escape_control_characters(text))
