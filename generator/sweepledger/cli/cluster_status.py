"""The responses of commands that read a cluster: `collect`, `status`, and `why`.

Imported inside functions, because it imports Rich.
"""

from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli.response import Response
from sweepledger.cli.text import values
from sweepledger.cli.text.style import untrusted_text
from sweepledger.formats.record_json import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweepledger.commands.reports.why import BatchExplanation, WaitExplanation


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
