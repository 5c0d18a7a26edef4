"""Running trials are shown as they will be recorded: the package reads lines by the launcher's own functions."""

import pytest

from sweepledger.reader.metric_lines import objective_points
from sweepledger.structs.metric import Goal, Metric, MetricFormat, MetricSource
from tools import launcher_parts


def test_the_functions_are_those_of_the_launcher() -> None:
    written = launcher_parts.MODULE.read_text(encoding="utf-8")

    assert written == launcher_parts.text(), "run `python -m tools.launcher_parts`"


@pytest.mark.parametrize(
    ("form", "output", "points"),
    [
        (MetricFormat.TEXT, "step=3 accuracy=0.5\naccuracy = nan;\naccuracy=1,234.5\n", ((3, 0.5),)),
        (MetricFormat.JSONL, '{"accuracy": 0.5, "step": 3}\n[1]\n{"accuracy": true}\n', ((3, 0.5),)),
        (MetricFormat.LOG, "accuracy,0.5\nepoch,2\nno comma\naccuracy,0.75\n", ((1, 0.5), (2, 0.75))),
        (MetricFormat.CSV, "step,accuracy\n3,0.5\n4,\n", ((3, 0.5),)),
        (MetricFormat.REGEX, "epoch 3: accuracy 0.5%\repoch 4: accuracy 0.75\n", ((4, 0.75),)),
        (MetricFormat.JSON, "accuracy=0.5\n", ((1, 0.5),)),
        (MetricFormat.TEXT, "\x1b[1maccuracy=0.5\x1b[0m\naccuracy=0.7", ((1, 0.5),)),
    ],
    ids=["text", "jsonl", "log", "csv", "regex", "lines-beside-a-file", "a-line-that-is-not-complete"],
)
def test_complete_lines_give_finite_points(
    form: MetricFormat, output: str, points: tuple[tuple[int, float], ...]
) -> None:
    patterns = (r"epoch (?P<step>[0-9]+): accuracy (?P<value>\S+)",) if form is MetricFormat.REGEX else ()
    metric = Metric("accuracy", Goal.MAXIMIZE, MetricSource.STDOUT, form, patterns=patterns)

    assert objective_points(metric, output.encode()) == points


def test_the_compared_metric_is_read() -> None:
    metric = Metric("score", Goal.MAXIMIZE, MetricSource.STDOUT, curve="accuracy")

    assert objective_points(metric, b"step=2 accuracy=0.5 score=1\n") == ((2, 0.5),)
