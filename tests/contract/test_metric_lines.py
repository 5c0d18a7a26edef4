"""Running trials are shown as they will be recorded: the same lines give the same points as in the launcher."""

import math
from dataclasses import replace
from random import Random

import pytest

from sweepledger.formats.metric_lines import objective_points
from sweepledger.structs.metric import Goal, Metric, MetricFormat, MetricSource
from tests.launcher.folders import launch

DIGITS = r"digits (?P<value>[0-9.]+)"
PATTERN = r"epoch (?P<step>[0-9]+): accuracy (?P<value>\S+)"
LINES = {
    MetricFormat.TEXT: (
        "step={n} accuracy={v}",
        "loss=0.5 accuracy = {v};",
        "accuracy={v},7",
        "saccuracy={v}",
    ),
    MetricFormat.JSONL: (
        '{{"accuracy": {v}, "step": {n}}}',
        '{{"accuracy": {v}}}',
        '{{"accuracy": "{v}"}}',
        "[1]",
    ),
    MetricFormat.LOG: ("accuracy,{v}", "epoch,{n}", "final accuracy, {v}", "no comma"),
    MetricFormat.CSV: ("step,accuracy", "{n},{v}", "{n},", "{n},{v},9"),
    MetricFormat.REGEX: (
        "digits {v}",
        "epoch {n}: accuracy {v}",
        "epoch {n}: accuracy {v}%\repoch {n}: accuracy {v}",
        "accuracy {v}",
    ),
}
"""What trials print; the first line is often a header, and others are no values."""
NUMBERS = (
    *(
        *("0.5", "1e-3", "nan", "inf", "7", "-2.25", "x"),
        "1" * 70,
        *("0x1f", "\x1b[1m0.75\x1b[0m", "\x1b]8;;x\x070.5\x1b]8;;\x07", "\x1bP1\x1b\\0.5", "1\u0661"),
        *("5\u00d710", "1.5k", "2MiB", "1.234e3"),
    ),
    *("1,234.5", "1'234", "1\u202f234", "0,5", "1/3", "1d-3", "1_000", "1.2.3", "1.234,5", "1.234,5.678"),
)


def metric(form: MetricFormat) -> Metric:
    patterns = (PATTERN, DIGITS) if form is MetricFormat.REGEX else ()
    return Metric("accuracy", Goal.MAXIMIZE, MetricSource.STDOUT, form, patterns=patterns)


def printed(form: MetricFormat, seed: int) -> bytes:
    rng = Random(seed)  # noqa: S311 - made-up lines, the same on every run
    first, lines = LINES[form][0], [*LINES[form], "", "x" * 70_000, "\ufffd\x00accuracy", "accuracy="]
    chosen = [first, *rng.choices(lines, k=30)]
    text = "\n".join(line.format(n=rng.randrange(9), v=rng.choice(NUMBERS)) for line in chosen)
    return f"{text}\naccuracy=".encode()  # the last line is not complete yet


@pytest.mark.parametrize(
    ("form", "changes"),
    [*((form, {}) for form in LINES)]
    + [(form, {"name": "never", "curve": "accuracy"}) for form in (MetricFormat.TEXT, MetricFormat.JSONL)],
    ids=str,
)
def test_lines_give_the_points_that_the_launcher_finds(form: MetricFormat, changes: dict[str, str]) -> None:
    chosen = replace(metric(form), **changes)  # type: ignore[arg-type]
    seen = 0
    for seed in range(60):
        output = printed(form, seed)
        points = launched_points(chosen, output)

        assert objective_points(chosen, output) == tuple(p for p in points if math.isfinite(p[1])), seed
        seen += len(points)
    assert seen > 60


def launched_points(metric: Metric, output: bytes) -> list[tuple[int, float]]:
    how = {"name": metric.name, "format": str(metric.format), "reduce": "last", "patterns": [PATTERN, DIGITS]}
    stream = launch.Stream(how | ({"curve": metric.curve} if metric.curve else {}))
    stream.feed(output)
    return [(step, value) for (_, step), value in stream.gathered.curve.points]
