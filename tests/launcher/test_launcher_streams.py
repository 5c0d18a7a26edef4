"""The forms in which a trial may report line by line: `name=value`, JSON Lines, and `key,value` logs."""

import itertools
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launcher.folders import TrialFolder, launch, metric, report_of, shell

SEVEN = """\
train time,2.9695417881011963
train loss,0.38534954896907214
train acc,0.8684761597938144
test time,0.34630489349365234
test loss,0.3725375
test acc,0.8757
total time,75.12576508522034
"""
NINE = f"epoch,24\nlr,0.0\n{SEVEN}"


def printed(text: str, **changes: Any) -> Any:
    stream = launch.Stream(metric(source="stdout", **changes))
    stream.feed(text.encode())
    return launch.read_report(stream, launch.Files("/nowhere"), metric(source="stdout", **changes))


# ------------------------------------------------------------------------------------------------- name=value


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("loss=1 accuracy=2", {"loss": 1.0, "accuracy": 2.0}),
        (
            "2026-11-22T05:19:51Z INFO     Epoch[5] Validation-accuracy=0.924463",
            {"Validation-accuracy": 0.924463},
        ),
        ("Score=-7.53e-05 Score=1E0", {"Score": 1.0}),
        ("loss = 1 | accuracy\t=\t+2", {"loss": 1.0, "accuracy": 2.0}),
        ("{loss=1}", {"loss": 1.0}),
        ("accuracy=93%", {"accuracy": 93.0}),
        ("the loss=0.5.", {"loss": 0.5}),
        ("\u2003loss=1", {"loss": 1.0}),
        ("val/loss=1", {"val/loss": 1.0}),
        ("time=3.5s loss=1", {"loss": 1.0}),
        ("a=b=1", {"b": 1.0}),
        ("--lr=0.1 -x=1 a|b=2 1a=3", {}),
        ("loss=-1.5e-3 b=+2E+2 c=5. d=1e999", {"loss": -0.0015, "b": 200.0, "c": 5.0, "d": math.inf}),
        *(
            (f"loss={text}", {})
            for text in ("", "=1", "1,5", "1:30", "0x1f", "1_000", "true", "e5", ".", "1e")
        ),
        *(
            (text, {})
            for text in ("loss=--1", "=1", "1loss=1", "l\u00f6ss=1", "loss=\u0663", f"{'a' * 64}=1")
        ),
        ("\u0131nf=1 loss=\u0131nf loss=\u0660", {}),
    ],
)
def test_numbers_are_found_wherever_they_stand_in_a_line(line: str, values: dict[str, float]) -> None:
    found = launch.text_members(line)

    assert {name: number for name, number in found.items() if type(number) is float} == values


@settings(max_examples=30, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.text("abc =,:0.", max_size=6))
def test_any_number_is_found_exactly_and_any_text_is_survived(number: float, noise: str) -> None:
    assert launch.text_members(f"x: loss={number!r}, y")["loss"] == number
    launch.text_members(noise + "=" + noise)


def test_a_stream_of_lines_is_a_curve_counted_or_by_its_steps() -> None:
    counted = printed("loss=3\nacc=1\nloss=2\nloss=nan\nloss=1\n")
    stepped = printed("step=10 loss=3\nstep=20 loss=2 acc=1\n")

    assert (counted.metrics, counted.curves["loss"]) == (
        {"loss": 1.0, "acc": 1.0},
        [[1, 3.0], [2, 2.0], [3, None], [4, 1.0]],
    )
    assert (stepped.metrics, stepped.curves["loss"]) == ({"loss": 2.0, "acc": 1.0}, [[10, 3.0], [20, 2.0]])


def test_one_number_is_a_curve_if_it_has_a_step() -> None:
    assert printed("loss=3\n").curves == {}
    assert printed("step=7\nloss=3\n").metrics == {"step": 7.0, "loss": 3.0}
    assert printed('{"step": 3, "loss": 0.9}', format="jsonl").curves == {"loss": [[3, 0.9]]}


@pytest.mark.parametrize(("reduce", "value"), [("last", 2.0), ("min", -1.5), ("max", 9.0)])
def test_of_a_stream_the_spec_says_which_number_counts(reduce: str, value: float) -> None:
    numbers = ["4", "9", "NaN", "-1.5", "2"]
    text = "".join(f"loss={number}, other={place}\n" for place, number in enumerate(numbers))

    assert printed(text, reduce=reduce).metrics == {"loss": value, "other": 4.0}


def test_a_stream_without_any_finite_number_has_none_whatever_counts() -> None:
    assert math.isnan(printed("loss=nan\nloss=nan\n", reduce="max").metrics["loss"])
    assert printed("loss=1\nloss=inf\n", reduce="max").metrics == {"loss": 1.0}
    assert printed("loss=1\nloss=inf\n").metrics == {"loss": math.inf}


# ------------------------------------------------------------------------------------------------- JSON Lines


def test_json_lines_are_a_curve_in_a_file_and_on_stdout(tmp_path: Path) -> None:
    text = (
        '{"step": 3, "loss": 0.9, "lr": 0.1}\n'
        '{"step": 5, "loss": NaN}\r\n\n'
        '{"step": 4, "loss": 0.8, "note": "x"}\n'
        '{"step": 6, "lr": 0.2}\n'
        '{"step": 7, "loss": 0.25}'
    )
    expected = [[3, 0.9], [5, None], [4, 0.8], [7, 0.25]]

    for report in (report_of(text, tmp_path, format="jsonl"), printed(f"hello\n{{x\n{text}", format="jsonl")):
        assert report.metrics == {"loss": 0.25, "lr": 0.2}
        assert report.details == {"note": "x", "steps_restarted": 1}
        assert (report.curves["loss"], report.reason) == (expected, None)


@pytest.mark.parametrize("step", ["-1", "1.5", '"3"', "true", "9007199254740993"])
def test_a_step_that_is_no_whole_number_is_no_place(step: str) -> None:
    report = printed(f'{{"step": {step}, "loss": 1}}\n{{"loss": 2}}', format="jsonl")

    assert report.curves == {"loss": [[1, 1.0], [2, 2.0]]}


def test_of_a_step_that_comes_again_the_last_number_counts() -> None:
    text = "".join(
        f'{{"step": {step}, "loss": {loss}}}\n' for step, loss in [(1, 5), (2, 4), (2, 4.5), (3, 1)]
    )

    assert printed(text, format="jsonl").curves["loss"] == [[1, 5.0], [2, 4.5], [3, 1.0]]


@pytest.mark.parametrize("count", [200, 201, 4097, 20_000])
def test_a_curve_is_thinned_to_200_points_with_the_first_last_lowest_and_highest(count: int) -> None:
    curve = launch.Curve()
    for step in range(count):
        curve.add({count // 3: -7.0, count // 5: 9.0}.get(step, step / count), step)
        assert len(curve.points) <= 4097

    points = curve.thinned()

    steps = [step for step, _ in points]
    assert len(points) == min(count, 200) or (count > 200 and 190 <= len(points) <= 200)
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (0, count - 1)
    assert {(count // 3, -7.0), (count // 5, 9.0)} <= {(step, value) for step, value in points}
    assert max(right - left for left, right in itertools.pairwise(steps)) <= 2 + 3 * count // 200


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"loss": 1}\nx\n', "line 2: Expecting value"),
        ('{"loss": 1}\n[1]\n', r"line 2: it is no(t a)? JSON object"),
        ('{"loss": 1}\n{"a": 1, "a": 2}\n', "line 2: an object has the same name twice"),
        (b'{"loss": 1}\n{"a": "\xff"}', "line 2: 'utf-8' codec"),
        ('{"loss": 1, "x": "' + "y" * 65536 + '"}', "line 1: it is longer than 64 KiB"),
        ('{"loss": 1}\n' + "[" * 60_000, "line 2: it is nested deeper than 16"),
    ],
)
def test_a_file_with_another_line_is_invalid(content: str | bytes, message: str, tmp_path: Path) -> None:
    report = report_of(content, tmp_path, format="jsonl")

    assert report.reason == "result-invalid"
    assert re.match(rf"\$SWEEP_RESULT is no valid result: {message}", report.message)


# --------------------------------------------------------------------------------------------- key,value logs


@pytest.mark.parametrize(
    "text", [SEVEN, NINE.replace("\n", "\r\n").removesuffix("\r\n")], ids=["lf", "crlf and no final line end"]
)
def test_a_log_is_read_whole(text: str, tmp_path: Path) -> None:
    for report in (
        report_of(text, tmp_path, name="test_acc", format="log"),
        printed(f"epoch  loss\n{text}", name="test_acc", format="log"),
    ):
        assert len(report.metrics) == len(text.splitlines())
        assert (report.metrics["test_acc"], report.metrics["total_time"]) == (0.8757, 75.12576508522034)
        assert (report.details, report.reason, report.curves) == ({}, None, {})


def test_values_of_a_log_that_are_no_numbers_are_reported(tmp_path: Path) -> None:
    text = "test acc,n/a\ntest loss,\ndevice name,V100\nlr,0\n"
    report = report_of(text, tmp_path, name="test_acc", format="log")

    assert report.metrics == {"lr": 0.0}
    assert report.details == {"test_acc": "n/a", "test_loss": "", "device_name": "V100"}
    assert report.reason == "metric-missing"
    assert report.message == "there is no line test_acc,NUMBER in $SWEEP_RESULT, and 'n/a' is no number"


def test_a_log_with_a_line_without_comma_is_invalid(tmp_path: Path) -> None:
    report = report_of("test acc,0.9\nhello\n", tmp_path, name="test_acc", format="log")

    assert report.reason == "result-invalid"
    assert report.message.endswith("line 2: it has no comma between key and value")
    assert report.metrics == {"test_acc": 0.9}


# ---------------------------------------------------------------------------------------------- wrong choices

FORMS = {
    "json": '{\n "loss": 0.5,\n "a": 1\n}\n',
    "jsonl": '{"step": 1, "loss": 0.7}\n{"step": 2, "loss": 0.5}\n',
    "text": "epoch 1: loss=0.5 accuracy=0.9\n",
    "log": "epoch,3\nloss,0.5\n",
}


@pytest.mark.parametrize("meant", FORMS)
@pytest.mark.parametrize("is_in", FORMS)
def test_a_report_of_another_form_names_the_right_word(meant: str, is_in: str, tmp_path: Path) -> None:
    reports = [report_of(FORMS[is_in], tmp_path, format=meant)]
    if "json" not in {meant, is_in}:
        reports.append(printed(f"some words\n{FORMS[is_in]}", format=meant))

    for report in reports:
        if meant == is_in:
            assert (report.reason, report.metrics["loss"]) == (None, 0.5)
        else:
            assert report.reason in {"result-invalid", "metric-missing"}
            assert report.message.endswith(f"; with metric.format: {is_in} it would be found")


def test_a_file_where_lines_were_meant_names_the_word_to_change(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": {"name": "test_accuracy", "source": "stdout"}}

    record = trial_folder.try_once()

    assert (record["reason"], record["exit"]) == ("metric-missing", 1)
    error = (
        "there is no line test_accuracy=NUMBER on stdout; there is a $SWEEP_RESULT, for metric.source: result"
    )
    assert record["details"] == {"error": error}


def test_a_metric_on_stderr_is_named(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell("echo test_accuracy=0.5 >&2; echo done")
    trial_folder.changes = {"metric": {"name": "test_accuracy", "source": "stdout"}}

    error = trial_folder.try_once()["details"]["error"]

    assert error.endswith("on stdout; stderr has it, for metric.source: output")


def test_output_is_both_streams_as_they_come_and_in_one_file(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell("echo test_accuracy=1 >&2; echo test_accuracy=2; echo ends >&2; exit 3")
    trial_folder.changes = {"metric": {"name": "test_accuracy", "source": "output"}}

    record = trial_folder.try_once()

    assert record["metrics"] == {"test_accuracy": 2.0}
    assert record["details"]["error"] == "ends"
    (output,) = trial_folder.results.glob("*.out")
    assert output.read_text() == "test_accuracy=1\ntest_accuracy=2\nends\n"


# ------------------------------------------------------------------- colours, and numbers in another notation

COLOURED = (
    "loss=\x1b[1m0.5\x1b[0m",
    "\x1b[32mloss\x1b[0m=\x1b[1;31m0.5\x1b[m",
    "\x1b[38;2;1;2;3mloss\x1b[39m = \x1b[38:2::1:2:3m0.5\x1b[0m\x1b[K",
    "\x1b[2K\x1b[?25lloss=0.5\x1b[?25h",
    "loss=\x1b]8;;https://a.example/run?loss=9\x1b\\0.5\x1b]8;;\x1b\\",
    "\x1b]8;id=1;https://a.example/\x07loss=0.5\x1b]8;;\x07",
    "\x1b]0;loss=9\x07loss=0.5",
    "loss=\x1b(B\x1b[m0.5\x1b(B\x1b[m",
    "loss=0\x1b[1m.5\x1b[0m",
    "\x1b]133;A\x07loss=\x1b[38;5;196;4m0.5\x1b[24;39m",
    "\x1bP1;loss=9q\x1b\\loss=0.5",
    "\x1b_loss=9\x1b\\\x1b^x\x1b\\loss=0.5\x1b[58:5:1m",
    "\x1b7\x1b[3;1H\x1b[?2026hloss=0.5\x1b[?2026l\x1b8",
)


@pytest.mark.parametrize("text", COLOURED, ids=ascii)
def test_what_a_terminal_shows_in_colours_is_read_without_them(text: str) -> None:
    pattern = {"format": "regex", "patterns": [r"loss\s*=\s*(?P<value>\S+)"]}

    assert printed(f"{text}\nother=1\n").metrics["loss"] == 0.5
    assert printed(f"{text}\nother=1\n", **pattern).metrics["loss"] == 0.5


@pytest.mark.parametrize(("form", "line"), [("jsonl", '{"loss": 0.5}'), ("log", "loss,0.5")])
def test_other_forms_are_read_without_colours_too(form: str, line: str) -> None:
    assert printed(f"\x1b[32m{line}\x1b[0m\n", format=form).metrics == {"loss": 0.5}


NO_DECIMALS = (
    *("1,234.5", "1,234", "12,345,678", "1'234", "1'234'567.5", "1\u2019234", "1\u202f234", "1\u00a0234,5"),
    *("0x10", "0b11", "0o17", "1/3", "1/10", "1d-3", "1.5D+2", "1_000", "1_000.5", "0,5", "12,75", "1.2.3"),
    *("1.234,5", "12.345,67", "1.234.567,8", "-1.234,567"),
    *(
        *("1\u0661", "\u0661", "\u0661.5", "\uff11.5", "5\u00d710", "2^10", "1.2.3e4", "1e3e4", "1.5k"),
        *("2M", "3GiB", "0.5MB"),
    ),
)
PATTERNS = (r"loss: (?P<value>\S+)", r"loss: (?P<value>\d+)", r"loss: (?P<value>[-\d.]+)", r"(?P<value>\d+)")


@pytest.mark.parametrize("number", NO_DECIMALS, ids=ascii)
def test_no_part_of_a_number_in_another_notation_is_a_number(number: str) -> None:
    for after in ("", " end", "\x1b[0m", ")"):
        assert printed(f"loss={number}{after}\nloss = {number}{after}\n").metrics == {}
    for pattern in PATTERNS:
        report = printed(f"loss: {number}\n", format="regex", patterns=[pattern])
        assert (report.metrics, report.reason) == ({}, "metric-missing")


UNREAD: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({}, "loss={}\n"),
    "regex": ({"format": "regex", "patterns": [r"loss: (?P<value>\S+)"]}, "loss: {}\n"),
    "a part": ({"format": "regex", "patterns": [r"loss: (?P<value>[\d.]+)"]}, "loss: {}\n"),
    "log": ({"format": "log"}, "loss,{}\n"),
}


@pytest.mark.parametrize("form", UNREAD)
@pytest.mark.parametrize("number", ["1'234.5", "0x10", "1.5k", "2^10", "1_000"])
def test_an_earlier_number_does_not_count_for_one_that_is_not_read(number: str, form: str) -> None:
    changes, line = UNREAD[form]
    before, unread, after = (line.format(value) for value in ("999.5", number, "0.5"))

    report = printed(before + unread, **changes)
    assert (report.metrics.get("loss"), report.reason) == (None, "metric-missing")
    assert number in report.message
    assert report.message.endswith("which is no plain decimal number") == (form != "log")
    assert printed(before + unread + after, **changes).metrics["loss"] == 0.5
    if form != "log":
        assert printed(before + unread + after, reduce="min", **changes).reason == "metric-missing"
    others = "other=1,234.5\nloss in 3.5s\nloss=None\n"
    assert printed(before + others, **changes).metrics["loss"] == 999.5


def test_a_further_metric_that_is_not_read_is_missing() -> None:
    changes = {"others": ["size"]}

    assert "size" not in printed("loss=1 size=2\nloss=1 size=1,234.5\n", **changes).metrics
    assert printed("loss=1 size=1,234.5\nloss=1 size=2 time=1,5\n", **changes).metrics["size"] == 2


@pytest.mark.parametrize(
    "line",
    ["loss: -0.5", "loss -0.5", "loss:-5e-1", "loss=-0.5", "-0.5", "loss: \u22120.5", "[\u20130.5]"],
    ids=ascii,
)
@pytest.mark.parametrize("pattern", [r"(?P<value>[\d.]+)", r"(?P<value>\d[\d.e-]*)"])
def test_no_pattern_drops_the_sign_of_a_number(line: str, pattern: str) -> None:
    report = printed(f"{line}\n", format="regex", patterns=[pattern])

    assert (report.metrics, report.reason) == ({}, "metric-missing")


@pytest.mark.parametrize(
    "line",
    [
        *("loss: 0.5", "loss 0.5", "epoch 3 - loss: 5e-1 - acc: 1", "loss: 1.234e3", "loss: 0.5 k"),
        *("loss: 3ms", "loss: 5Models"),
    ],
)
def test_a_number_that_a_pattern_could_find_is_named(line: str) -> None:
    assert "which metric.format: regex could find" in printed(f"{line}\n").message


@pytest.mark.parametrize(
    ("line", "pattern", "value"),
    [
        ("loss: 93%", r"loss: (?P<value>\d+)", 93.0),
        ("loss: 12s", r"loss: (?P<value>\d+)", 12.0),
        ("3/10", r"^(?P<value>\d+)/\d+", 3.0),
        ("loss: 0,5", r"loss: (?P<value>\d),\d", 0.0),
        ("1,0.5,2", r"^\d+,(?P<value>[\d.]+)", 0.5),
        ("12:30", r"(?P<value>\d+):", 12.0),
        ("[0.5, 1]", r"\[(?P<value>[\d.]+)", 0.5),
        ("loss='5'", r"'(?P<value>\d+)", 5.0),
        ("loss: 1.234,5.678", r"loss: (?P<value>[\d.]+)", 1.234),
        ("loss: 0.234,5", r"loss: (?P<value>[\d.]+)", 0.234),
        ("loss: 1.25,2", r"loss: (?P<value>[\d.]+)", 1.25),
        ("took 5.", r"took (?P<value>\d+)", 5.0),
        ("loss: 1.5k", r"loss: (?P<value>[\d.]+)k", 1.5),
        ("loss: 1.234e3", r"loss: (?P<value>\S+)", 1234.0),
        ("loss: 1.5E-2 k", r"loss: (?P<value>\S+)", 0.015),
        ("loss: -0.5", r"(?P<value>-?[\d.]+)", -0.5),
        ("loss: -0.5", r"loss: -(?P<value>[\d.]+)", 0.5),
        ("epoch-5", r"(?P<value>\d+)", 5.0),
        ("f(x)-2", r"(?P<value>\d+)", 2.0),
        ("0.25-0.5", r"(?P<value>[\d.]+)$", 0.5),
        ("- 0.5", r"(?P<value>[\d.]+)", 0.5),
    ],
)
def test_what_follows_a_number_makes_no_other_number(line: str, pattern: str, value: float) -> None:
    assert printed(f"{line}\n", format="regex", patterns=[pattern]).metrics == {"loss": value}


# ------------------------------------------------------------------------------------- the curve of another metric

EPOCHS = "step=1 val=0.5\nstep=2 val=0.75 loss=3\nstep=3 val=nan\nloss=2\nloss=4\n"


def test_the_curve_of_another_metric_is_kept_and_the_objective_is_the_result() -> None:
    report, without = printed(EPOCHS, curve="val"), printed(EPOCHS, name="never", curve="val")

    assert (report.metrics["loss"], report.reason) == (4.0, None)
    assert list(report.curves.items()) == [
        ("val", [[1, 0.5], [2, 0.75], [3, None]]),
        ("loss", [[2, 2.0], [3, 4.0]]),
    ]
    assert list(printed(EPOCHS).curves) == ["loss", "val"]
    assert printed(EPOCHS, curve="val", reduce="min").metrics["loss"] == 2.0
    assert (without.reason, list(without.curves)) == ("metric-missing", ["val", "loss"])
    assert printed("loss=1\n", curve="val").reason is None, "a trial need not report it"


def test_rules_compare_the_metric_of_the_curve() -> None:
    seen: list[tuple[int, float]] = []
    stream = launch.Stream(metric(source="stdout", curve="val"), on_value=lambda *point: seen.append(point))

    stream.feed(EPOCHS.encode())

    assert seen[:2] == [(1, 0.5), (2, 0.75)]
    assert len(seen) == 3


# ------------------------------------------------------------------------------------------- several metrics

OTHERS = {"name": "loss", "source": "stdout", "others": ["latency", "size"]}


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        ("loss=1", "there is no latency and no size; its numbers: loss"),
        ("loss=1; echo latency=2; echo size=2,5", "there is no size; its numbers: latency, loss"),
    ],
)
def test_a_trial_without_a_metric_has_no_result(lines: str, missing: str, trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": OTHERS}
    trial_folder.command = shell(f"echo {lines}")

    record = trial_folder.try_once()

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "metric-missing", 1)
    assert record["details"]["error"] == missing


@pytest.mark.parametrize("name", ["loss", "latency"])
def test_a_trial_with_an_infinite_metric_diverged(name: str, trial_folder: TrialFolder) -> None:
    values = {"loss": "1", "latency": "2", "size": "3", name: "-Infinity"}
    trial_folder.changes = {"metric": OTHERS}
    trial_folder.command = shell("; ".join(f"echo {key}={text}" for key, text in values.items()))

    record = trial_folder.try_once()

    assert (record["status"], record["reason"]) == ("diverged", "metric-not-finite")
    assert len(record["metrics"]) == 2


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_all_metrics_of_the_sweep_count(form: str, tmp_path: Path) -> None:
    numbers = {**{f"m{number:03}": number for number in range(150)}, "loss": 1, "latency": 2, "size": 3}
    text = {
        "text": " ".join(f"{name}={value}" for name, value in numbers.items()),
        "json": json.dumps(numbers),
        "csv": ",".join(numbers) + "\n" + ",".join(map(str, numbers.values())),
    }[form]

    report = report_of(text, tmp_path, format=form, others=OTHERS["others"])

    assert report.reason is None
    assert {name: report.metrics[name] for name in ("loss", "latency", "size")} == {
        "loss": 1,
        "latency": 2,
        "size": 3,
    }
    assert len(report.metrics) <= 103


# ---------------------------------------------------------------------------------------- steps that restart


@pytest.mark.parametrize(
    ("steps", "restarts"),
    [
        ((1, 2, 3), 0),
        ((5, 4, 3), 2),
        ((1, 2, 1, 2, 1, 2), 2),
        ((1, None, 2), 0),
        ((10, None, 5), 1),
    ],
)
def test_restarts_are_seen(steps: tuple[int | None, ...], restarts: int, tmp_path: Path) -> None:
    forms = {
        "jsonl": [json.dumps({"loss": 1} | ({} if step is None else {"step": step})) for step in steps],
        "csv": ["step,loss", *(f"{'' if step is None else step},1" for step in steps)],
        "text": ["loss=1" if step is None else f"step={step} loss=1" for step in steps],
    }
    for form, lines in forms.items():
        report = report_of("\n".join(lines), tmp_path, format=form)

        assert (report.reason, report.details) == (None, {"steps_restarted": restarts} if restarts else {})


# -------------------------------------------------------------------------------------------- hostile streams


def test_a_file_of_lines_is_read_up_to_64_mebibytes(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"loss=1\n")
    os.truncate(path, 64 * 1024 * 1024 + 1)

    report = launch.read_report(None, launch.Files(str(path)), metric(format="text"))

    assert report.reason == "result-invalid"
    assert report.message == "$SWEEP_RESULT is no valid result: it is larger than 64 MiB"


def test_endless_names_take_no_memory() -> None:
    stream = launch.Stream(metric(source="stdout", format="jsonl"))
    for number in range(1000):
        stream.feed(f'{{"m{number}": 1, "d{number}": "x"}}\n'.encode())

    assert (len(stream.gathered.metrics), len(stream.gathered.details)) == (100, 100)


def test_what_others_print_is_no_detail_of_a_log() -> None:
    report = printed("Hello, world\nloss,0.5\n", format="log")

    assert (report.metrics, report.details) == ({"loss": 0.5}, {})
