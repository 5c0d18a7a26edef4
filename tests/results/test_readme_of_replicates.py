"""README.md where there are replicates: assignments are ranked by their means, and luck is named."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.results.tree import report_files
from sweepledger.structs.values import Value
from tests.builders import a_grid, a_record, an_expected_trial
from tests.results.drawings import drawn, marks, paths, words


def replicated(results: Mapping[Value, Sequence[float]]) -> BatchRecords:
    batch = a_grid({"a": [0]}, lambda _: 0.0)
    listed = [
        (value, number, result) for value, all_ in results.items() for number, result in enumerate(all_)
    ]
    expected = tuple(
        an_expected_trial(index, assignment=MappingProxyType({"a": value}), replicate=number)
        for index, (value, number, _) in enumerate(listed)
    )
    records = tuple(
        a_record(index, metrics=MappingProxyType({"test_accuracy": result}))
        for index, (_, _, result) in enumerate(listed)
    )
    return BatchRecords(replace(batch.lock, trials=len(listed)), expected, records)


CLEAR = replicated({"x": [0.9, 0.91, 0.92], "y": [0.5, 0.51, 0.52]})
OVERLAP = replicated({"x": [0.9, 0.91, 0.92], "y": [0.89, 0.91, 0.91]})


def written(batch: BatchRecords) -> str:
    return report_files(summarise([batch], description="", in_spec=lambda *_: True))["README.md"]


def test_the_best_mean_is_told_with_its_interval_the_next_one_and_its_luck() -> None:
    text = written(CLEAR)

    assert (
        "The best mean `test_accuracy` is **0.91** (95 % interval 0.885 to 0.935, 3 trials) with `a` `x`."
        " The interval of the second best, 0.485 to 0.535, does not overlap it.\n"
    ) in text
    assert "looks better than it is, because it was selected: by " in text


def test_a_mean_has_the_same_digits_in_the_answer_and_in_the_table() -> None:
    text = written(replicated({"x": [0.9, 0.92], "y": [0.5, 0.500002], "z": [0.1, 0.2, 0.3]}))

    (row,) = [line for line in text.splitlines() if line.startswith("| 1 | ")]
    mean, interval = (cell.strip() for cell in row.split("|")[2:4])
    assert f"is **{mean}** (95 % interval {interval}, 2 trials)" in text


def test_where_intervals_overlap_there_is_no_winner_and_the_best_are_listed() -> None:
    text = written(OVERLAP)

    assert "There is no best configuration: the 95 % intervals of the best two means" in text
    assert "## Best" not in text
    assert "--reproduce" not in text
    assert "## Top 2 of 2 configurations" in text
    assert "| 1 | 0.91 | 0.885 to 0.935 | 3 | `x` | `t00000000000` |" in text


def test_all_trials_of_the_best_assignment_are_marked_and_without_a_winner_none() -> None:
    root, without = drawn("trials", CLEAR), drawn("trials", OVERLAP)

    assert len(marks(root, "ring")) == 3
    assert len([each for each in paths(drawn("parallel", CLEAR), "chosen") if "C" in each]) == 3
    assert marks(without, "ring") == []
    assert "best" not in words(without)
    assert "best so far" in words(without)
