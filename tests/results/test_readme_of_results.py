"""README.md of a sweep's results: a whole one, and what hostile text makes of it."""

from dataclasses import replace
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


def test_the_answer_names_the_varied_parameters_and_their_best_values() -> None:
    batch = a_grid({"a": [1, 2], "b": ["x", "y"], "c": [3]}, lambda v: 0.9 if v["b"] == "y" else 0.8)

    assert (
        "The best `test_accuracy` is **0.9** with `a` 1 and `b` `y`: the highest of all 4 trials"
        " (2 trials have this value; the one with the smallest id is shown).\n"
    ) in written(batch)


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
    ],
    ids=["control characters", "markup", "long"],
)
def test_a_message_is_one_short_line_of_text(error: str, shown: str) -> None:
    *_, row = table_of(written(failing(error)), "Failures")

    assert row[2] == shown


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


def two_programs(later: str) -> str:
    """A batch of which all trials failed, and one of another or the same program of which all are ok."""
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
        program=a_program(command=("python", later)),
    )
    return written(replace(tried, records=failed), mended)


def test_of_several_programs_the_report_names_the_ranked_one_and_no_failure_of_another() -> None:
    text = two_programs("mended.py")

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


def test_neither_node_nor_time_is_told() -> None:
    batch = a_grid({"a": [1]}, lambda _: 0.5)
    elsewhere = replace(batch, records=tuple(replace(each, node="secret-host") for each in batch.records))

    assert "secret-host" not in written(elsewhere)
    assert a_record().started[:10] not in written(elsewhere)
