"""How trials report their metric: its source, format and reduction fit together."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.structs.reporting import STREAMS, USUAL_FORMATS, MetricFormat, MetricSource, Reduce

CODE = "metric-format"


def is_read_there(draft: Draft) -> Iterator[Problem]:
    """One JSON object is a file: standard output has lines, and others may print there, too."""
    place, source, found = reported(draft), _source(draft), format_of(draft)
    if (source, found) == (MetricSource.STDOUT, MetricFormat.JSON):
        message = f"must be one of jsonl, log, text where the source is stdout, got {shown(str(found))}"
        hint = "jsonl takes a JSON object that stands in one line"
        yield draft.problem((*place, "format"), message, code=CODE, hint=hint)


def has_several(draft: Draft) -> Iterator[Problem]:
    """Only where a number may come again can the smallest or largest be meant."""
    place = reported(draft)
    reduce = draft.get(*place, "reduce", kind=str)
    if (
        reduce in {Reduce.MIN, Reduce.MAX}
        and (found := format_of(draft)) is not None
        and found not in STREAMS
    ):
        message = f"must be last where the format is {found}, which has one number, got {shown(reduce)}"
        hint = "format: jsonl or text"
        yield draft.problem((*place, "reduce"), message, code=CODE, hint=hint)


def reported(draft: Draft) -> Path:
    """Say where it stands how metrics are reported: of several, the first says it for all."""
    return ("metrics", 0) if "metrics" in draft.names() else ("metric",)


def _source(draft: Draft) -> str:
    return draft.get(*reported(draft), "source", kind=str) or MetricSource.RESULT


def format_of(draft: Draft) -> MetricFormat | None:
    """Give the format that applies; None where what is written is none, which the structure says."""
    written, source = draft.get(*reported(draft), "format", kind=str), _source(draft)
    if written is None:
        return USUAL_FORMATS[MetricSource(source)] if source in set(MetricSource) else None
    return MetricFormat(written) if written in set(MetricFormat) else None
