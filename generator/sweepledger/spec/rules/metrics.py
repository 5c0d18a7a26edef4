"""The metrics of a spec: names, source, format and reduction, and several metrics at once."""

from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.metric_lines import pattern_error
from sweepledger.spec.draft import Draft
from sweepledger.stopping import TYPES
from sweepledger.structs.methods import METHODS, methods_with
from sweepledger.structs.metric import (
    DEFAULT_FORMATS,
    FILE_FORMATS,
    STREAM_FORMATS,
    MetricFormat,
    MetricSource,
    Reduce,
)


def metric_goal(draft: Draft) -> Iterator[Problem]:
    """A metric says its goal: an accuracy that is minimized by default would rank the worst trial first."""
    for place in _metric_paths(draft):
        name = draft.get(*place, "name", kind=str)
        if name is not None and "goal" not in draft.names(*place):
            message = f"has no goal, so {safe_repr(name)} is minimized"
            hint = "write `goal: maximize`, or `goal: minimize` to confirm it"
            yield draft.warning(place, message, code="goal-default", hint=hint, at_key=place == ("metric",))


def _metric_paths(draft: Draft) -> tuple[DocumentPath, ...]:
    return ("metric",), *(place for place, _ in draft.items("other_metrics"))


CODE = "metric-format"


def source_format(draft: Draft) -> Iterator[Problem]:
    """Format, path, patterns and capture fit the source, as the launcher requires."""
    place, source, found = ("metric",), _metric_source(draft), metric_format(draft)
    if source != MetricSource.RESULT and found in FILE_FORMATS:
        message = (
            f"must be one of jsonl, log, regex, text if the source is {source}, got {safe_repr(str(found))}"
        )
        hint = "jsonl reads one JSON object per line"
        yield draft.problem((*place, "format"), message, code=CODE, hint=hint)
    keys = draft.names(*place)
    if "path" in keys and source != MetricSource.RESULT:
        message, hint = f"must not be given if the source is {source}, got path", "source: result"
        yield draft.problem((*place, "path"), message, code=CODE, hint=hint, at_key=True)
    if found is MetricFormat.TENSORBOARD and "path" not in keys and source == MetricSource.RESULT:
        message, hint = "needs path, got format: tensorboard", "path: runs"
        yield draft.problem((*place, "format"), message, code=CODE, hint=hint)
    if found is MetricFormat.REGEX and "patterns" not in keys:
        message, hint = "needs patterns, got format: regex", r"patterns: ['loss=(?P<value>\S+)']"
        yield draft.problem((*place, "format"), message, code=CODE, hint=hint)
    if "patterns" in keys and found is not None and found is not MetricFormat.REGEX:
        message, hint = f"must not be given with the format {found}, got patterns", "format: regex"
        yield draft.problem((*place, "patterns"), message, code=CODE, hint=hint, at_key=True)
    if draft.get(*place, "capture", kind=bool) and (
        (source, found) != (MetricSource.RESULT, MetricFormat.JSONL) or "path" in keys
    ):
        message = "needs source: result and format: jsonl without path, got capture: true"
        hint = "captured metrics are lines of JSON in $SWEEP_RESULT"
        yield draft.problem((*place, "capture"), message, code=CODE, hint=hint)
    for at, _ in draft.items(*place, "patterns"):
        if (text := draft.get(*at, kind=str)) is not None and (why := pattern_error(text)):
            hint = r"loss=(?P<value>\S+) reads the objective"
            yield draft.problem(at, f"{why}, got {safe_repr(text)}", code=CODE, hint=hint)


def several_reports(draft: Draft) -> Iterator[Problem]:
    """`curve`, and `reduce` by `min` and `max`, need a format that can report a number several times."""
    found = metric_format(draft)
    if found is None or found in STREAM_FORMATS:
        return
    why, hint = f"the format {found}, which reports one number", "format: jsonl or text"
    if (reduce := draft.get("metric", "reduce", kind=str)) in {Reduce.MIN, Reduce.MAX}:
        message = f"must be last with {why}, got {safe_repr(reduce)}"
        yield draft.problem(("metric", "reduce"), message, code=CODE, hint=hint)
    if "curve" in draft.names("metric"):
        message = f"must not be given with {why}, got curve"
        yield draft.problem(("metric", "curve"), message, code=CODE, hint=hint, at_key=True)


def _metric_source(draft: Draft) -> str:
    return draft.get("metric", "source", kind=str) or MetricSource.RESULT


def metric_format(draft: Draft) -> MetricFormat | None:
    """Return the format in effect; None if the written one is invalid, which the structure check reports."""
    written, source = draft.get("metric", "format", kind=str), _metric_source(draft)
    if written is None:
        return DEFAULT_FORMATS[MetricSource(source)] if source in set(MetricSource) else None
    return MetricFormat(written) if written in set(MetricFormat) else None


MULTI_METRIC_METHODS = methods_with(lambda method: method.has_several_metrics)


def several_metrics(draft: Draft) -> Iterator[Problem]:
    """Several metrics have different names, a method for several, and no target."""
    if "other_metrics" not in draft.names():
        return
    method = draft.get("method", kind=str)
    if method not in MULTI_METRIC_METHODS:
        message = f"must not be given with method: {method}, got other_metrics"
        *others, last = MULTI_METRIC_METHODS
        hint = f"only {', '.join(others)} and {last} search for a Pareto front; other methods have one metric"
        yield draft.problem(("other_metrics",), message, code="metrics", hint=hint, at_key=True)
    if "target" in draft.names("metric"):
        message = "must not be given with several metrics, got target"
        hint = "a Pareto front has no single best value"
        yield draft.problem(("metric", "target"), message, code="metrics", hint=hint, at_key=True)
    seen = set[str]()
    for place in _metric_paths(draft):
        name = draft.get(*place, "name", kind=str)
        if name is not None and name in seen:
            message = f"must differ from the other metrics, got {safe_repr(name)} again"
            yield draft.problem((*place, "name"), message, code="metrics")
        seen.add(name or "")


def target_and_impute(draft: Draft) -> Iterator[Problem]:
    """`target` and `impute` need a method that uses results."""
    method, stop = draft.get("method", kind=str), draft.get("early_terminate", "type", kind=str)
    if method in METHODS or method is None:
        return
    is_target_used = (stop in TYPES and TYPES[stop].needs_target) or "rounds" in draft.names()
    for key in ("target", "impute"):
        if key in draft.names("metric") and not (key == "target" and is_target_used):
            message = f"must not be given with method: {method}, got {key}"
            hint = "it belongs to adaptive methods"
            if key == "target":
                hint += ", to sweeps with rounds, and to early_terminate: {type: target}"
            yield draft.problem(("metric", key), message, code="method-key", hint=hint, at_key=True)
