"""README.md of a sweep's results: a whole one, and what hostile text makes of it."""

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from markdown_it import MarkdownIt

from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.readme import README_FILE
from sweepledger.results.summary import summarise
from sweepledger.results.tree import report_files
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.program import Code
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value
from tests.builders import a_grid, a_program, a_record


def written(*batches: BatchRecords, description: str = "Does the rate matter?") -> str:
    return report_files(summarise(batches, description=description, in_spec=lambda *_: True))[README_FILE]


def table_of(text: str, heading: str) -> list[list[str]]:
    lines = text.split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]


def test_a_readme_has_its_parts_in_order() -> None:
    batch = a_grid({"rate": [0.1, 0.4], "optimizer": ["sgd"]}, lambda v: 0.9 if v["rate"] == 0.1 else None)
    batch = replace(batch, records=(replace(batch.records[0], metrics={"test_accuracy": 0.9, "loss": 0.25}),))

    text = written(batch)

    parts = ["mnist-grid", "Best trial", "Top 1", "Failures", "Provenance"]
    assert re.findall(r"^##? (.*)$", text, re.MULTILINE) == parts
    assert (
        "\n> Does the rate matter?\n\nThe best `test_accuracy` is **0.9**: the only ranked trial of 2.\n"
        in text
    )
    assert "\n2 trials: 1 ok, 0 diverged, 0 failed, 1 missing; 3.2 s of computing time.\n" in text
    assert table_of(text, "Best trial")[3:] == [
        ["`rate`", "0.1"], ["`optimizer`", "`sgd`"], ["`loss` (measured)", "0.25"],
    ]  # fmt: skip
    assert table_of(text, "Top 1")[2] == ["1", "`t00000000000`", "0.9", "0.1", "`sgd`", "3.2"]
    assert table_of(text, "Provenance")[2] == [
        *("`mnist-grid-b1-3f9a1c2e`", "2", "1", "`local`", "`trainer@c0dec0dec0de`"),
        *("`mnist@sha256:da7ada7ada7a`", "`0.1.0`"),
    ]
    assert "sweep show t00000000000 --reproduce --run\n" in text
    assert "\nCommand: `python -m trainer mnist '${args}'`\n" in text


def test_the_answer_names_the_varied_parameters_and_their_best_values() -> None:
    batch = a_grid({"a": [1, 2], "b": ["x", "y"], "c": [3]}, lambda v: 0.9 if v["b"] == "y" else 0.8)
    losses = a_grid({"a": [1, 2]}, lambda v: float(str(v["a"])), metric=Metric("loss", Goal.MINIMIZE))

    assert (
        "The best `test_accuracy` is **0.9** with `a` 1 and `b` `y`: the highest of all 4 trials"
        " (2 trials have this value; the one with the smallest id is shown).\n"
    ) in written(batch)
    assert "The best `loss` is **1** with `a` 1: the lowest of all 2 trials." in written(losses)


def test_trials_that_are_not_ranked_are_counted_by_reason() -> None:
    old = a_grid({"a": [1, 2, 3]}, lambda _: 0.9)
    new = a_grid(
        {"a": [4, 5, 6, 7]},
        lambda v: None if v["a"] == 7 else float(str(v["a"])),
        number=2,
        name="mnist-grid-b2-00000000",
        program=a_program(code=Code("src/train", "beef" * 10)),
    )
    summary = summarise([old, new], description="", in_spec=lambda values, _: values["a"] != 6)

    text = report_files(summary)[README_FILE]

    assert "is **5** with `a` 5: the highest of 2 ranked trials (7 in total).\n" in text
    assert "\nNot ranked: 1 trial without a result, 3 trials ran an earlier program, 1 trial not in" in text


def test_no_winner_is_stated() -> None:
    text = written(a_grid({"a": [1, 2]}, lambda _: None))

    assert (
        "There is no best trial: no trial of the ranked program ended ok"
        r" with a finite test\_accuracy (0 of 2)."
    ) in text
    assert not [part for part in ("Best trial", "Top", "Main effects") if f"## {part}" in text]
    assert table_of(text, "Failures")[2] == ["missing", "no record", "2", "`t00000000000`, `t00000000001`"]


def failing(*errors: str) -> BatchRecords:
    """Return a batch whose trials failed with these messages."""
    batch = a_grid({"a": list(range(len(errors)))}, lambda _: 0.5)
    records = (
        replace(record, status=Status.FAILED, reason="exit-1", metrics={}, details={"error": error})
        for record, error in zip(batch.records, errors, strict=True)
    )
    return replace(batch, records=tuple(records))


def test_failures_show_their_most_frequent_message() -> None:
    text = written(failing("frames\nValueError: b", "ValueError: a", "ValueError: a", ""))

    head, _, row = table_of(text, "Failures")
    assert head == ["status", "reason", "most frequent message", "trials", "ids"]
    assert row[2:4] == ["`ValueError: a`, one of 2", "4"]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("a | b\x1b[2J", r"<code>a \| b\\u001b\[2J</code>"),
        ("`<b>`", r"<code>\`\<b\>\`</code>"),
        ("e" * 300, "`" + "e" * 199 + "…`"),
        ("\u202e reversed", r"`\u202e reversed`"),
    ],
    ids=["control characters", "markup", "long", "direction"],
)
def test_a_message_is_one_short_line_of_text(error: str, shown: str) -> None:
    *_, row = table_of(written(failing(error)), "Failures")

    assert row[2] == shown


def test_main_effects_have_a_table_a_parameter() -> None:
    text = written(a_grid({"a": [2, 1], "b": ["x", "y"]}, lambda v: float(str(v["a"])) / 8))

    assert (
        "### `a`\n\nImportance: not available. The means are 0.125 apart.\n\n"
        "| `a` | mean | median | trials |\n|---:|---:|---:|---:|\n"
        "| 1 | 0.125 | 0.125 | 2 |\n| 2 | 0.25 | 0.25 | 2 |\n\n"
        "### `b`\n\nImportance: not available. The mean is the same with each value: "
        "the parameter changes nothing, or the program does not use it.\n"
    ) in text


def test_a_difference_that_is_not_significant_is_not_shown_as_an_effect() -> None:
    noise = [0.51, 0.48, 0.5, 0.52, 0.49, 0.5, 0.51, 0.47, 0.52, 0.5, 0.48, 0.49]
    grid: dict[str, list[Value]] = {"a": [1, 2], "b": [1, 2, 3, 4, 5, 6]}
    text = written(a_grid(grid, lambda v: noise[int(str(v["a"])) * 6 + int(str(v["b"])) - 7]))

    rows = [line for line in text.splitlines() if line.startswith("| `a` |") and "significant" in line]
    assert len(rows) == 1
    assert rows[0].endswith("| | | | |")
    assert "### `a`" not in text
    assert "No more than chance: `b`, `a`. Their means are not listed.\n" in text
    assert "## Main effects" not in text


def test_a_parameter_with_many_values_has_the_figure_for_it() -> None:
    text = written(
        a_grid(
            {"a": [f"value {number}" for number in range(17)], "b": [0, 1]},
            lambda v: float(str(v["a"]).split()[1]) + float(str(v["b"])),
        )
    )

    assert "It has 17 values: see the figure above." in text
    assert "| `a` | mean |" not in text


def test_of_several_programs_the_report_names_the_ranked_one_and_no_failure_of_another() -> None:
    tried = a_grid({"a": [1, 2, 3]}, lambda _: 0.5, program=a_program(command=("python", "tried.py")))
    failed = tuple(
        replace(one, status=Status.FAILED, reason="exit-1", details={"error": "a first try"})
        for one in tried.records
    )
    mended = a_grid(
        {"a": [1, 2]},
        lambda v: float(str(v["a"])),
        name="mnist-grid-b2-00000000",
        number=2,
        program=a_program(command=("python", "mended.py")),
    )

    text = written(replace(tried, records=failed), mended)

    assert "This report ranks the newest that is recorded, code `trainer@c0dec0dec0de`, also after" in text
    assert "a first try" not in text
    assert (
        "None: every trial of the ranked program ended ok.\n\nOf earlier programs, 3 trials without a result.\n"
    ) in text


def test_failures_are_grouped_by_reason_and_cut() -> None:
    batch = a_grid({"a": list(range(12))}, lambda _: 0.5)
    changes: dict[int, dict[str, Any]] = {
        **{index: {"status": Status.FAILED, "reason": "exit-1"} for index in range(6)},
        6: {"status": Status.FAILED, "reason": "timeout"},
        7: {"status": Status.DIVERGED, "reason": "metric-not-finite"},
    }
    records = [replace(each, **changes.get(each.index, {})) for each in batch.records if each.index != 8]

    rows = table_of(written(replace(batch, records=tuple(records))), "Failures")

    assert [row[:3] for row in rows[2:]] == [
        ["diverged", "metric-not-finite", "1"],
        ["failed", "exit-1", "6"],
        ["timeout", "timeout", "1"],
        ["missing", "no record", "1"],
    ]
    assert rows[3][3].count("`t0") == 5
    assert rows[3][3].endswith(" …")


def test_an_absent_parameter_is_an_empty_cell() -> None:
    batch = a_grid({"a": [1, 2]}, lambda v: float(str(v["a"])))
    second = replace(batch.expected[1], assignment=MappingProxyType({"b": 5}))

    rows = table_of(written(replace(batch, expected=(batch.expected[0], second))), "Top 2")

    assert rows[0][3:5] == ["`b`", "`a`"]
    assert [row[3:5] for row in rows[2:]] == [["5", ""], ["", "1"]]


@pytest.mark.parametrize(("seconds", "told"), [(90.0, "1.5 min"), (9000.0, "2.5 h")])
def test_computing_time_is_told_in_its_unit_and_neither_node_nor_date(seconds: float, told: str) -> None:
    batch = a_grid({"a": [1]}, lambda _: 0.5)

    text = written(replace(batch, records=(replace(batch.records[0], seconds=seconds, node="secret-host"),)))

    assert f"; {told} of computing time" in text
    assert "secret-host" not in text
    assert a_record().started[:10] not in text


HOSTILE = "<script>x</script> | `a` ![i](http://e.example/x.png)\n\n# head [l](javascript:1) -->"


@pytest.mark.parametrize("place", ["description", "value", "metric", "command", "other-metric"])
def test_hostile_text_brings_no_markup_of_its_own(place: str) -> None:
    metric = Metric(HOSTILE if place == "metric" else "test_accuracy", Goal.MAXIMIZE)
    program = a_program(command=("python", HOSTILE if place == "command" else "x"))
    values = [HOSTILE if place == "value" else "plain", "other"]
    batch = a_grid({"a": values}, lambda _: 0.5, metric=metric, program=program)
    if place == "other-metric":
        records = tuple(replace(each, metrics={**each.metrics, HOSTILE: 1.0}) for each in batch.records)
        batch = replace(batch, records=records)

    text = written(batch, description=HOSTILE if place == "description" else "Why?")

    render = MarkdownIt("commonmark").enable("table").render
    html, plain = render(text), render(written(a_grid({"a": ["plain", "other"]}, lambda _: 0.5)))
    tags = ("<script", "<img", "<h1>", "<h2>", "<a ", "<tr>", "<td", "<th", "<blockquote>", "<!--", "<p>")
    for tag in tags:
        extra = {"other-metric": {"<tr>": 1, "<td": 2}}.get(place, {}).get(tag, 0)
        assert html.count(tag) == plain.count(tag) + extra, tag
