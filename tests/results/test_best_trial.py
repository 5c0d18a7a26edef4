"""Who wins, who may not, and what a reader is told of it (catalogue R11)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from msgspec import structs

from sweepledger.formats.summary_csv import REPLICATES_COLUMNS
from sweepledger.results.best_trial import Verdict
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import Summary, commit_message, summarise
from sweepledger.results.tree import result_files
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.program import Code
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value, digest
from tests.builders import a_grid, a_lock, a_program, a_record, an_expected_trial

LATER = {"number": 2, "name": "mnist-grid-b2-00000000"}
NEW_CODE = a_program(code=Code("trainer", "beef" * 10))


def everything(_: Mapping[str, Any], __: int) -> bool:
    return True


def of(*batches: BatchRecords, in_spec: Any = everything) -> Summary:
    return summarise(batches, description="Why?", in_spec=in_spec)


def scores(*values: float | None, **lock: object) -> BatchRecords:
    numbered = dict(enumerate(values))
    return a_grid(
        {"number": list(numbered)}, lambda assignment: numbered[int(str(assignment["number"]))], **lock
    )


def replicates(*samples: Sequence[float | None], **lock: Any) -> BatchRecords:
    """Assignments 0, 1, 2 … with these objectives of replicates; None is a missing trial."""
    held = a_lock(**lock)
    listed = [
        (number, replicate, value)
        for number, sample in enumerate(samples)
        for replicate, value in enumerate(sample)
    ]
    expected = tuple(
        an_expected_trial(index, assignment=MappingProxyType({"number": number}), replicate=replicate)
        for index, (number, replicate, _) in enumerate(listed)
    )
    records = tuple(
        a_record(
            index,
            batch=held.name,
            code=held.program.code.tree,
            seed=replicate,
            metrics={"test_accuracy": value},
        )
        for index, (_, replicate, value) in enumerate(listed)
        if value is not None
    )
    return BatchRecords(structs.replace(held, trials=len(expected)), expected, records)


def test_with_one_trial_an_assignment_the_best_wins_and_ties_go_to_the_id() -> None:
    summary = of(scores(0.5, 0.7, 0.7))

    assert summary.verdict is Verdict.BEST
    assert summary.winner is summary.outcomes[1]
    assert summary.reason == "the best test_accuracy of 3 trials, one per configuration"
    assert (summary.interval, summary.optimism, summary.replicated) == (None, None, ())


def test_without_a_result_there_is_no_winner_and_the_verdict_says_why() -> None:
    summary = of(scores(None, None))

    assert (summary.verdict, summary.winner, summary.best) == (Verdict.NOTHING_OK, None, None)
    assert summary.reason == "no trial of the ranked program ended ok with a finite test_accuracy (0 of 2)"


def test_what_the_spec_no_longer_asks_for_never_wins_and_is_told() -> None:
    summary = of(scores(0.5, 0.9, 0.7), in_spec=lambda assignment, _: assignment["number"] != 1)

    assert [outcome.in_spec for outcome in summary.outcomes] == [True, False, True]
    assert summary.best == 0.7
    assert [outcome.index for outcome in summary.top] == [2, 0]
    (warning,) = summary.warnings
    assert warning == (
        "trial t00000000001 (test_accuracy 0.9) is better than all ranked trials, "
        "but the current spec does not contain it"
    )


def test_where_nobody_knows_the_spec_everybody_may_win_and_it_is_told() -> None:
    summary = of(scores(0.5, 0.9), in_spec=None)

    assert {outcome.in_spec for outcome in summary.outcomes} == {None}
    assert summary.best == 0.9
    assert summary.warnings == (
        "the current spec cannot be read or expanded, so trials that it no longer contains may be ranked",
    )


@pytest.mark.parametrize(
    ("goal", "old", "is_told"),
    [(Goal.MAXIMIZE, 0.99, True), (Goal.MAXIMIZE, 0.1, False), (Goal.MINIMIZE, 0.1, True)],
)
def test_a_better_trial_of_an_earlier_program_is_told(goal: Goal, old: float, *, is_told: bool) -> None:
    metric = Metric("test_accuracy", goal)

    summary = of(scores(old, metric=metric), scores(0.5, program=NEW_CODE, metric=metric, **LATER))

    assert summary.best == 0.5
    than = "is better than all ranked trials, but it ran another program"
    message = f"trial t00000000000 (test_accuracy {old}) {than}"
    assert summary.warnings == ((message,) if is_told else ())


def test_processes_and_containers_are_ranked_together_with_a_warning() -> None:
    batch = scores(0.5, 0.6, 0.7)
    image = "registry.example/a@sha256:" + "0" * 64

    mixed = of(replace(batch, records=(*batch.records[:2], replace(batch.records[2], ran=image))))

    assert mixed.best == 0.7
    (warning,) = mixed.warnings
    assert warning == (
        "2 of the ranked trials ran as processes of `sweep cluster local` and 1 in containers, "
        "which alone can make results differ"
    )


def test_trials_of_which_only_unusable_records_are_left_are_told() -> None:
    batch = scores(0.5, None, None)
    made = tuple(
        replace(a_record(index), status=Status.FAILED, reason=reason, row=digest(["row", index]), metrics={})
        for index, reason in ((1, "corrupt"), (2, "foreign"))
    )

    summary = of(replace(batch, records=(*batch.records, *made)))

    assert summary.warnings == (
        "1 trial left only records that cannot be read",
        "1 trial left only records of other trials",
    )


def test_with_replicates_the_winner_is_an_assignment_whose_interval_clears_the_next() -> None:
    summary = of(replicates((0.5, 0.51, 0.52), (0.9, 0.91, 0.92), (0.1, 0.99, 0.1)))

    assert summary.verdict is Verdict.CLEAR
    assert summary.winner is summary.outcomes[3]
    assert summary.best == pytest.approx(0.91)
    assert summary.interval is not None
    assert (summary.interval.low, summary.interval.high) == pytest.approx((0.8851586, 0.9348414))
    assert summary.replicated[0].trials == summary.outcomes[3:6]


def test_overlapping_intervals_leave_no_winner_and_the_numbers_are_told() -> None:
    summary = of(replicates((0.90, 0.92), (0.91, 0.93)))

    assert (summary.verdict, summary.winner, summary.best) == (Verdict.OVERLAP, None, None)
    assert summary.reason == (
        "the 95 % intervals of the best two means of test_accuracy overlap: 0.792938 to 1.04706 "
        "over 2 trials and 0.782938 to 1.03706 over 2"
    )
    assert summary.optimism == pytest.approx(0.0141421356 / 2**0.5 * 0.5641895835)
    assert "no winner" in commit_message(summary, recorded=[])


@pytest.mark.parametrize(
    ("samples", "verdict", "best"),
    [
        pytest.param([(0.5, 0.501), (0.3, 0.301)], Verdict.CLEAR, 0.3005, id="the lower interval is clear"),
        pytest.param([(0.5, 0.501), (0.3, None)], Verdict.TOO_FEW, None, id="one result has no interval"),
        pytest.param([(0.5, 0.6), (None, None)], Verdict.ALONE, 0.55, id="nobody to win over"),
    ],
)
def test_of_losses_the_lowest_mean_wins_if_its_interval_is_clear(
    samples: list[tuple[float | None, ...]], verdict: Verdict, best: float | None
) -> None:
    summary = of(replicates(*samples, metric=Metric("test_accuracy", Goal.MINIMIZE)))

    assert (summary.verdict, summary.best) == (verdict, best)


def test_rows_of_one_assignment_are_taken_together_though_a_table_calls_each_the_first() -> None:
    batch = replicates((0.5, 0.51), (0.1, 0.11))
    rows = tuple(replace(trial, replicate=0) for trial in batch.expected)

    summary = of(replace(batch, expected=rows))

    assert {outcome.replicate for outcome in summary.outcomes} == {0}
    assert (summary.verdict, summary.best, len(summary.replicated)) == (Verdict.CLEAR, 0.505, 2)
    assert "± 0.063531 over 2 replicates" in commit_message(summary, recorded=[])
    assert "replicates.csv" in result_files(summary).files


def test_replicates_are_counted_only_as_far_as_the_spec_asks_for_them() -> None:
    batch = replicates((0.5, 0.6, 0.9), (0.4, 0.3, 0.2))

    fewer = of(batch, in_spec=lambda _, replicate: replicate < 2)
    single = of(batch, in_spec=lambda _, replicate: replicate < 1)

    assert [results.values for results in fewer.replicated] == [(0.5, 0.6), (0.4, 0.3)]
    assert (single.replicated, single.best, single.verdict) == ((), 0.5, Verdict.BEST)


def test_replicates_have_a_table_best_first() -> None:
    batch = replicates((0.5, 0.5), (0.75, None), (None, None), (0.625, 0.875), (1.0, 1.0))

    files = dict(result_files(of(batch, in_spec=lambda assignment, _: assignment["number"] != 4)))

    assert files["replicates.csv"].decode() == (
        f"params.number,{','.join(REPLICATES_COLUMNS)}\n"
        '1,true,1,0.75,,,,"t00000000002 t00000000003"\n'
        '3,true,2,0.75,0.1767766952966369,-0.838275592,2.338275592,"t00000000006 t00000000007"\n'
        '0,true,2,0.5,0,0.5,0.5,"t00000000000 t00000000001"\n'
        '2,true,0,,,,,"t00000000004 t00000000005"\n'
        '4,false,2,1,0,1,1,"t00000000008 t00000000009"\n'
    )


def test_values_of_other_kinds_are_other_assignments() -> None:
    values: list[Value] = [1, True, "1"]
    batch = a_grid({"a": values}, lambda _: 0.5)
    twice = tuple(replace(row, replicate=1, index=row.index + 3, trial=f"t{row.index + 3:011x}",
                          row=digest(["row", row.index + 3])) for row in batch.expected)  # fmt: skip

    summary = of(replace(batch, expected=(*batch.expected, *twice)))

    assert [results.count for results in summary.replicated] == [1, 1, 1]
