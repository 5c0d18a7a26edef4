"""The responses of commands that read a cluster: `collect`, `status`, and `why`.

Imported inside functions, because it imports Rich.
"""

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli import envelopes, response
from sweepledger.cli.response import Response
from sweepledger.cli.text import values
from sweepledger.formats.record_json import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweepledger.commands.reports.status import SweepStatus
    from sweepledger.commands.reports.why import BatchExplanation, WaitExplanation
    from sweepledger.engine.cluster.collector_state import CollectorState


def cluster_status_response(
    statuses: "tuple[SweepStatus, ...]", collector: "CollectorState | None", *lines: Text
) -> Response:
    """Return the state of sweeps with the counts that only a cluster knows, and remarks on batches and collector."""
    data = [
        {
            **envelopes.sweep_status_data(status),
            **{name.replace(" ", "_"): status.counts[name] for name in values.CLUSTER_COUNTS},
            "remarks": [
                {"batch": remark.batch, "kind": remark.what, "message": remark.text, "hint": remark.hint}
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
    shown = envelopes.status_response(data, statuses, *lines, *remark_lines, *_collector_lines(collector))
    if collector is None:
        return shown
    return replace(shown, data={**shown.data, "collector": collector.as_data(time.time())})


def _collector_lines(collector: "CollectorState | None") -> "Iterator[Text]":
    """Yield when the collector last succeeded, and what keeps it from succeeding."""
    if collector is None:
        return
    trouble = collector.trouble(time.time())
    if trouble is not None:
        yield _untrusted_text(f"{trouble.text}\n  hint: {trouble.remedy}")
    elif collector.last_success is not None:
        yield Text(f"the collector last succeeded at {format_time(collector.last_success)}")


def explanation_response(explanation: "WaitExplanation") -> Response:
    """Return why trials do not run: for each batch, the causes and what to do."""
    lines = [line for batch in explanation.batches for line in _explanation_lines(batch, explanation.trial)]
    if not lines:
        lines = [Text(f"{explanation.sweep}: the spec requests no trials that are not recorded")]
    if explanation.updated is not None:
        updated = format_time(explanation.updated)
        lines.append(_untrusted_text(f"{explanation.branch} as this clone last heard of it, at {updated}"))
    return Response(explanation.as_data(), tuple(lines))


MOST_IDS = 3
"""Trials that a line names."""


def _explanation_lines(explained: "BatchExplanation", trial: str | None) -> "Iterator[Text]":
    yield _untrusted_text(f"{explained.batch or 'not in a batch'}:")
    for group in explained.causes:
        ids = [explained.ids[index] for index in group.indexes[:MOST_IDS] if index < len(explained.ids)]
        listed = ", ".join(ids) + (", …" if len(group.indexes) > MOST_IDS else "")
        named = f" ({listed})" if listed and trial is None and len(explained.causes) > 1 else ""
        whose = trial or (values.count_text(len(group.indexes), "trial") if group.indexes else "spec")
        remedy = f"\n    hint: {group.cause.remedy}" if group.cause.remedy else ""
        yield _untrusted_text(f"  {whose}: {group.cause.kind}: {group.cause.text}{named}{remedy}")
    if explained.logs:
        yield _untrusted_text(f"  output: {explained.logs}")


def _batch_line(batch: str, state: str, details: str, hint: str = "") -> Text:
    hint_line = f"\n  hint: {hint}" if hint else ""
    return _untrusted_text(f"{batch}: {state}: {details}{hint_line}")


def _untrusted_text(text: str) -> Text:
    return Text(response.escape_control_characters(text))
