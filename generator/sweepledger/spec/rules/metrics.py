"""The metrics of a spec: names, source, format and reduction, and several metrics at once."""

from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.metric_patterns import pattern_error
from sweepledger.spec.draft import Draft
from sweepledger.structs.metric import (
    DEFAULT_FORMATS,
    FILE_FORMATS,
    METRIC_NAME,
    REPORTING_KEYS,
    STREAM_FORMATS,
    MetricFormat,
    MetricSource,
    Reduce,
)
from sweepledger.structs.search_block import ADAPTIVE_METHODS, MULTI_OBJECTIVE_METHODS


def metric_name(draft: Draft) -> Iterator[Problem]:
    """A metric's name is valid as a CSV column and in lines `name=value`."""
    places: list[DocumentPath] = [("metric",), *(place for place, _ in draft.items("metrics"))]
    for place in places:
        name = draft.get(*place, "name", kind=str)
        if name is not None and not METRIC_NAME.fullmatch(name):
            message = (
                "must begin with a letter and have at most 63 letters, digits and any of _ . / @ -, "
                f"got {safe_repr(name)}"
            )
            yield draft.problem((*place, "name"), message, code="metric-name")


def metric_goal(draft: Draft) -> Iterator[Problem]:
    """A metric says its goal: an accuracy that is minimized by default would rank the worst trial first."""
    names = draft.names()
    for place in [("metric",)] * ("metric" in names) + [place for place, _ in draft.items("metrics")]:
        name = draft.get(*place, "name", kind=str)
        if name is not None and "goal" not in draft.names(*place):
            message = f"has no goal, so {safe_repr(name)} is minimized"
            hint = "write `goal: maximize`, or `goal: minimize` to confirm it"
            yield draft.warning(place, message, code="goal-default", hint=hint, at_key=place == ("metric",))


CODE = "metric-format"


def source_format(draft: Draft) -> Iterator[Problem]:
    """Format, path, patterns and capture fit the source, as the launcher requires."""
    place, source, found = reporting_path(draft), _metric_source(draft), metric_format(draft)
    if source == MetricSource.STDOUT and found in FILE_FORMATS:
        message = (
            f"must be one of jsonl, log, regex, text if the source is stdout, got {safe_repr(str(found))}"
        )
        hint = "jsonl reads one JSON object per line"
        yield draft.problem((*place, "format"), message, code=CODE, hint=hint)
    keys = draft.names(*place)
    if "path" in keys and source == MetricSource.STDOUT:
        message, hint = "must not be given if the source is stdout, got path", "source: result"
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


def reduction(draft: Draft) -> Iterator[Problem]:
    """`min` and `max` need a format that can report a number several times."""
    place = reporting_path(draft)
    reduce = draft.get(*place, "reduce", kind=str)
    if (
        reduce in {Reduce.MIN, Reduce.MAX}
        and (found := metric_format(draft)) is not None
        and found not in STREAM_FORMATS
    ):
        message = f"must be last if the format is {found}, which reports one number, got {safe_repr(reduce)}"
        hint = "format: jsonl or text"
        yield draft.problem((*place, "reduce"), message, code=CODE, hint=hint)


def curve(draft: Draft) -> Iterator[Problem]:
    """A curve needs a format that can report a number several times, by step."""
    place, found = reporting_path(draft), metric_format(draft)
    if "curve" in draft.names(*place) and found is not None and found not in STREAM_FORMATS:
        message = f"must not be given with the format {found}, which reports one number, got curve"
        yield draft.problem((*place, "curve"), message, code=CODE, hint="format: jsonl or text", at_key=True)


def reporting_path(draft: Draft) -> DocumentPath:
    """Return the path of the metric that sets how all are reported."""
    return ("metrics", 0) if "metrics" in draft.names() else ("metric",)


def _metric_source(draft: Draft) -> str:
    return draft.get(*reporting_path(draft), "source", kind=str) or MetricSource.RESULT


def metric_format(draft: Draft) -> MetricFormat | None:
    """Return the format in effect; None if the written one is invalid, which the structure check reports."""
    written, source = draft.get(*reporting_path(draft), "format", kind=str), _metric_source(draft)
    if written is None:
        return DEFAULT_FORMATS[MetricSource(source)] if source in set(MetricSource) else None
    return MetricFormat(written) if written in set(MetricFormat) else None


MULTI_METRIC_METHODS = frozenset(map(str, MULTI_OBJECTIVE_METHODS))


def several_metrics(draft: Draft) -> Iterator[Problem]:
    """A spec has one metric, or several with a method for several."""
    names = draft.names()
    if names and not {"metric", "metrics"} & {*names}:
        yield draft.problem(("metric",), "must be given", code="missing-key", at_key=True)
    if "metrics" not in names:
        return
    method = draft.get("method", kind=str)
    if "metric" in names:
        message, hint = (
            "must not be given with metric, got both",
            "delete metric; the first of metrics is the objective",
        )
        yield draft.problem(("metrics",), message, code="metrics", hint=hint, at_key=True)
    elif method not in MULTI_METRIC_METHODS:
        message = f"must not be given with method: {method}, got metrics"
        *others, last = sorted(MULTI_METRIC_METHODS)
        owners = f"{', '.join(others)} and {last}"
        hint = f"only {owners} search for a Pareto front; write metric for other methods"
        yield draft.problem(("metrics",), message, code="metrics", hint=hint, at_key=True)
    yield from _keys_of_several(draft)


def _keys_of_several(draft: Draft) -> Iterator[Problem]:
    seen = set[str]()
    for number, (place, _) in enumerate(draft.items("metrics")):
        for key in draft.names(*place):
            if key == "target" or (number and key in REPORTING_KEYS):
                message = (
                    f"must not be given {'with several metrics' if key == 'target' else 'here'}, got {key}"
                )
                hint = (
                    "a Pareto front has no single best value"
                    if key == "target"
                    else "the first metric sets it for all"
                )
                yield draft.problem((*place, key), message, code="metrics", hint=hint, at_key=True)
        name = draft.get(*place, "name", kind=str)
        if name is not None and name in seen:
            message = f"must differ from the other metrics, got {safe_repr(name)} again"
            yield draft.problem((*place, "name"), message, code="metrics")
        seen.add(name or "")


def target_and_impute(draft: Draft) -> Iterator[Problem]:
    """`target` and `impute` need a method that uses results."""
    method, stop = draft.get("method", kind=str), draft.get("early_terminate", "type", kind=str)
    if method in ADAPTIVE_METHODS or method is None:
        return
    is_target_used = stop == "target" or "rounds" in draft.names()
    for key in ("target", "impute"):
        if key in draft.names("metric") and not (key == "target" and is_target_used):
            message = f"must not be given with method: {method}, got {key}"
            hint = "it belongs to adaptive methods"
            if key == "target":
                hint += ", to sweeps with rounds, and to early_terminate: {type: target}"
            yield draft.problem(("metric", key), message, code="method-key", hint=hint, at_key=True)
