"""Source, format and reduction of a metric, and which combinations are valid."""

from typing import Any

import pytest

from sweepledger.formats import batch_json, documents
from sweepledger.structs.metric import Metric, MetricFormat, MetricSource, Reduce
from tests.builders import a_lock
from tests.written_specs import bad, good

AS_WRITTEN = (
    *({"format": "log"}, {"format": "csv", "path": "m.csv"}, {"format": "tensorboard", "path": "runs"}),
    *({"format": "jsonl", "curve": "val"}, {"format": "jsonl", "capture": True}),
    {"source": "result", "format": "text", "reduce": "max"},
)


@pytest.mark.parametrize(
    ("document", "output"),
    [
        ({}, {"source": "result"}),
        ({"format": "json"}, {"source": "result"}),
        ({"format": "jsonl", "reduce": "last"}, {"source": "result", "format": "jsonl"}),
        ({"source": "stdout", "format": "text"}, {"source": "stdout"}),
        ({"source": "stdout", "reduce": "min"}, {"source": "stdout", "reduce": "min"}),
        (
            {"source": "stdout", "format": "regex", "patterns": ["l=(?P<value>.)"], "reduce": "min"},
            {"source": "stdout", "format": "regex", "reduce": "min", "patterns": ["l=(?P<value>.)"]},
        ),
        *((document, {"source": "result", **document}) for document in AS_WRITTEN),
    ],
)
def test_what_is_not_usual_is_said_to_the_launcher(document: dict[str, Any], output: dict[str, Any]) -> None:
    assert good(metric={"name": "loss", **document}).metric.reported == output


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"source": "stdout", "format": "json"}, "metric.format"),
        ({"source": "stdout", "format": "csv"}, "metric.format"),
        ({"source": "stdout", "format": "tensorboard"}, "metric.format"),
        ({"source": "stdout", "path": "m.log"}, "metric.path"),
        ({"format": "tensorboard"}, "metric.format"),
        ({"format": "regex"}, "metric.format"),
        ({"format": "jsonl", "patterns": ["(?P<value>.)"]}, "metric.patterns"),
        ({"format": "regex", "patterns": ["("]}, "metric.patterns[0]"),
        ({"format": "regex", "patterns": ["loss=(.)"]}, "metric.patterns[0]"),
        ({"format": "text", "capture": True}, "metric.capture"),
        ({"format": "jsonl", "path": "m.jsonl", "capture": True}, "metric.capture"),
        ({"reduce": "min"}, "metric.reduce"),
        ({"curve": "val"}, "metric.curve"),
        ({"format": "log", "curve": "val"}, "metric.curve"),
        ({"format": "log", "reduce": "max"}, "metric.reduce"),
        ({"source": "stdout", "format": "log", "reduce": "max"}, "metric.reduce"),
    ],
)
def test_what_does_not_fit_together_is_refused(document: dict[str, Any], place: str) -> None:
    assert bad(metric={"name": "loss", "goal": "minimize", **document}) == [(place, "metric-format")]


def test_a_lock_keeps_how_the_metric_was_reported() -> None:
    held = a_lock()
    for metric in (
        held.metric,
        Metric("loss", held.metric.goal, MetricSource.STDOUT, MetricFormat.JSONL, Reduce.MIN),
        Metric("loss", held.metric.goal, format=MetricFormat.CSV, path="m.csv"),
        Metric("loss", held.metric.goal, format=MetricFormat.REGEX, patterns=("(?P<value>.)",)),
        Metric("loss", held.metric.goal, format=MetricFormat.JSONL, capture=True),
    ):
        text = documents.write(a_lock(metric=metric))

        assert batch_json.read(text).metric == metric
