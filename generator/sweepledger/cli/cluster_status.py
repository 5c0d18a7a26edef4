"""The responses of commands that read a cluster: `collect`, `status`, and `why`.

Imported inside functions, because it imports Rich.
"""

from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli import envelopes
from sweepledger.cli.response import Response
from sweepledger.cli.text import results, rounds, values
from sweepledger.cli.text.style import batch_line, untrusted_text
from sweepledger.formats.record_json import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweepledger.commands.collect import Collection
    from sweepledger.commands.collection.cluster_evidence import PendingRecords
    from sweepledger.commands.reports.why import BatchExplanation, WaitExplanation
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
            {"batch": stalled.batch, "message": stalled.text, "hint": stalled.hint(controller)}
            for stalled in collection.stalled
        ],
        "requested": [envelopes.pushed_round_data(pushed) for pushed in collection.rounds],
        "remarks": list(collection.remarks),
    }
    lines = (
        *(untrusted_text(rounds.pushed_round_text(pushed)) for pushed in collection.rounds),
        *(batch_line(pending.batch, "waiting", _pending_text(pending)) for pending in collection.pending),
        *(
            batch_line(stalled.batch, "stalled", stalled.text, stalled.hint(controller))
            for stalled in collection.stalled
        ),
        *(untrusted_text(f"note: {remark}") for remark in collection.remarks),
    )
    commits = results.collected_text(collection.collected)
    return Response(data, (*commits, *lines), collection.problems, failures=collection.failures)


def explanation_response(explanation: "WaitExplanation") -> Response:
    """Return why trials do not run: for each batch, the causes and what to do."""
    lines = [line for batch in explanation.batches for line in _explanation_lines(batch, explanation.trial)]
    if not lines:
        lines = [Text(f"{explanation.sweep}: the spec requests no trials that are not recorded")]
    if explanation.updated is not None:
        updated = format_time(explanation.updated)
        lines.append(untrusted_text(f"{explanation.branch} as this clone last heard of it, at {updated}"))
    return Response(explanation.as_data(), tuple(lines))


MOST_IDS = 3
"""Trials that a line names."""


def _explanation_lines(explained: "BatchExplanation", trial: str | None) -> "Iterator[Text]":
    yield untrusted_text(f"{explained.batch or 'not in a batch'}:")
    for group in explained.causes:
        ids = [explained.ids[index] for index in group.indexes[:MOST_IDS] if index < len(explained.ids)]
        listed = ", ".join(ids) + (", …" if len(group.indexes) > MOST_IDS else "")
        named = f" ({listed})" if listed and trial is None and len(explained.causes) > 1 else ""
        whose = trial or (values.count_text(len(group.indexes), "trial") if group.indexes else "spec")
        remedy = f"\n    hint: {group.cause.remedy}" if group.cause.remedy else ""
        yield untrusted_text(f"  {whose}: {group.cause.kind}: {group.cause.text}{named}{remedy}")
    if explained.logs:
        yield untrusted_text(f"  output: {explained.logs}")


def _pending_text(pending: "PendingRecords") -> str:
    missing = [
        *([f"the records of {pending.trials} succeeded trial(s)"] if pending.trials else ()),
        *([f"the end of {pending.pods} pod(s)"] if pending.pods else ()),
    ]
    return (
        f"its Job has ended; waiting for {' and '.join(missing)}, until {format_time(pending.until)} at most"
    )
