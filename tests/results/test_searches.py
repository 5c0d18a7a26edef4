"""What is told of a search: rounds, lineage, what was ended early, and the figures of curves and of means."""

import re
from dataclasses import replace
from types import MappingProxyType

import pytest

from sweepledger.formats import summary_csv
from sweepledger.results.figures.lines import TrialCurve, origin_of
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.rounds import EarlyStopping, early_stopping
from sweepledger.results.summary import summarise
from sweepledger.results.tree import report_files, result_files
from sweepledger.structs.metric import Goal, Metric
from tests.results.drawings import drawn, marks, paths, words
from tests.results.searched import a_promotion, a_search, ended, with_curves
from tests.results.test_readme_of_replicates import CLEAR, replicated

LONG = with_curves([[0.1, 0.2, 0.3, 0.4]] * 3 + [[0.1, 0.1]] * 3)


def readme(*batches: BatchRecords) -> str:
    return report_files(summarise(batches, description="", in_spec=lambda *_: True))["README.md"]


def early(batch: BatchRecords) -> EarlyStopping | None:
    return early_stopping(summarise([batch], description="").outcomes, batch.lock.metric.name)


# ------------------------------------------------------------------------------------------------ ended early


def test_what_was_saved_is_what_whole_trials_took_at_the_own_pace_of_each() -> None:
    stopping = early(ended(LONG, {3: "median", 4: "median", 5: "target"}))

    assert stopping == EarlyStopping({"median": 2, "target": 1}, whole=4, steps=6, seconds=6.0)


def test_without_a_whole_trial_nobody_can_say_what_was_saved() -> None:
    all_ended = ended(LONG, dict.fromkeys(range(6), "hyperband"))

    assert early(all_ended) == EarlyStopping({"hyperband": 6}, whole=None, steps=0, seconds=0.0)
    assert "saved is unknown" in readme(all_ended)


@pytest.mark.parametrize("value", ["x", {"rule": []}, {"rule": "median"}, {"rule": "<b>"}, {}, None, 7])
def test_what_a_trial_writes_into_its_details_is_no_rule(value: object) -> None:
    forged = tuple(
        replace(record, details=MappingProxyType({"stopped_early": value})) for record in LONG.records
    )

    assert early(replace(LONG, records=forged)) is None


def test_the_readme_says_how_many_were_ended_and_that_it_is_an_estimate() -> None:
    text = readme(ended(LONG, {3: "median", 4: "median", 5: "target"}))

    assert "- 2 trials stopped by the rule `median`\n- 1 trial stopped by the rule `target`\n" in text
    assert "6 more steps and 6.0 s. This is an estimate.\n" in text
    assert "None: every trial ended ok or was stopped early.\n" in text
    assert "4 ok, 2 pruned, 0 diverged" in text.replace("0 diverged, 2 pruned", "2 pruned, 0 diverged")


def test_a_pruned_trial_never_wins() -> None:
    summary = summarise(
        [ended(LONG, dict.fromkeys(range(3), "median"))], description="", in_spec=lambda *_: True
    )

    assert summary.winner is not None
    assert summary.best == 0.1
    assert {result.trial for result in summary.top}.isdisjoint(trial.trial for trial in LONG.expected[:3])


# ---------------------------------------------------------------------------------------- rounds and lineage


def test_the_curve_of_a_promoted_trial_begins_where_its_parent_ended() -> None:
    parent, child = _curve("a", None, (1, 2)), _curve("b", "a", (3, 4))
    restarted = _curve("c", "a", (1, 2, 3))

    assert origin_of(child, parent) == parent.points[-1]
    assert origin_of(restarted, parent) is None
    assert replace(child, origin=parent.points[-1]).path == ((2, 0.2), (3, 0.3), (4, 0.4))


def test_the_rungs_of_a_promoted_trial_are_one_line() -> None:
    lines = [*paths(root := drawn("curves", *a_promotion()), "line"), *paths(root, "chosen")]
    places = [re.findall(r"[ML](\S+ [^ML\s]+)", each) for each in lines]

    ends = {each[-1] for each in places if len(each) == 3}
    promoted = [each for each in places if len(each) == 7]
    assert len(ends) == 6
    assert len(promoted) == 2
    assert {each[0] for each in promoted} <= ends


def _curve(trial: str, parent: str | None, steps: tuple[int, ...]) -> TrialCurve:
    outcome = replace(summarise([LONG], description="").outcomes[0], trial=trial, parent=parent)
    return TrialCurve(outcome, tuple((step, step / 10) for step in steps))


def test_the_readme_says_what_each_round_cost_found_and_kept() -> None:
    assert (
        "| round | sampler | trials | ok | pruned | computing time | best `test_accuracy` | continued |\n"
        "|---:|---|---:|---:|---:|---:|---:|---:|\n"
        "| 1 | optuna 5.0.0 | 6 | 6 | 0 | 18.0 s | **0.6** | 2 |\n"
        "| 2 | optuna 5.0.0 | 2 | 2 | 0 | 18.0 s | 0.6 | 0 |\n"
    ) in readme(*a_search())


def test_a_search_without_parents_has_no_column_of_them_and_another_sweep_no_rounds() -> None:
    first, _ = a_search()

    assert "continued" not in readme(first)
    assert "| 1 | optuna 5.0.0 | 6 | 6 | 0 | 18.0 s | **0.6** |\n" in readme(first)
    assert "Rounds" not in readme(LONG)


def with_epochs(batch: BatchRecords, epochs: list[int]) -> BatchRecords:
    trials = [
        replace(trial, assignment=MappingProxyType({**trial.assignment, "epochs": amount}))
        for trial, amount in zip(batch.expected, epochs, strict=True)
    ]
    return replace(batch, expected=tuple(trials))


def of_rungs(first: list[int], second: list[int]) -> str:
    begun, went_on = a_search()
    summary = summarise(
        [with_epochs(begun, first), with_epochs(went_on, second)], description="", in_spec=lambda *_: True
    )
    return report_files(replace(summary, resource="epochs"))["README.md"]


def test_where_a_round_is_a_rung_it_says_what_each_trial_of_it_got() -> None:
    text = of_rungs([1] * 6, [3] * 2)

    assert "| round | sampler | `epochs` | trials |" in text
    assert "| 2 | optuna 5.0.0 | 3 | 2 | 2 | 0 | 18.0 s | 0.6 | 0 |\n" in text
    assert "Rungs" not in text


def test_where_a_round_has_several_rungs_each_is_told_of_over_all_rounds() -> None:
    text = of_rungs([1, 1, 1, 1, 3, 3], [3, 9])

    assert "| 1 | optuna 5.0.0 | 1, 3 | 6 | 6 | 0 | 18.0 s | **0.6** | 2 |\n" in text
    assert (
        "### Rungs\n\n"
        "| `epochs` | trials | ok | pruned | computing time | best `test_accuracy` | continued |\n"
        "|---:|---:|---:|---:|---:|---:|---:|\n"
        "| 1 | 4 | 4 | 0 | 12.0 s | 0.4 | 0 |\n"
        "| 3 | 3 | 3 | 0 | 15.0 s | 0.6 | 2 |\n"
        "| 9 | 1 | 1 | 0 | 9.0 s | 0.6 | 0 |\n"
    ) in text


def test_only_a_search_with_parents_has_a_column_of_them_and_it_reads_back() -> None:
    first, second = a_search()

    text = dict(result_files(summarise([first, second], description="")))["summary.csv"].decode()
    rows = summary_csv.read(text).rows

    assert text.splitlines()[0].endswith(",started,finished,parent")
    assert [row.parent for row in rows] == [None] * 6 + [trial.trial for trial in first.expected[4:6]]
    alone = dict(result_files(summarise([first], description="")))["summary.csv"].decode()
    assert alone.splitlines()[0].endswith(",started,finished")


# ---------------------------------------------------------------------------------------------------- figures


def test_every_curve_is_a_line_and_the_best_lies_on_top() -> None:
    root = drawn("curves", with_curves([[0.1, 0.3], [0.2, 0.9], [0.3, 0.5]]))

    legend, best = paths(root, "chosen")
    others = paths(root, "line")
    assert len(others) == 2
    assert legend != best
    assert min(float(each.split()[-1]) for each in (*others, best)) == float(best.split()[-1])
    assert {"step", "test_accuracy (higher is better)"} <= set(words(root))


def test_a_line_ends_where_the_steps_begin_again() -> None:
    batch = with_curves([[0.1, 0.3, 0.2, 0.5], [0.2, 0.9, 0.8, 0.9]])
    folds = tuple(
        replace(one, curves={name: tuple((1 + at % 2, value) for at, (_, value) in enumerate(points))})
        for one in batch.records
        for name, points in one.curves.items()
    )

    (line,) = paths(drawn("curves", replace(batch, records=folds)), "line")

    assert re.findall("[ML]", line) == ["M", "L", "M", "L"]


def test_points_that_are_not_finite_leave_no_line_and_one_point_is_no_curve() -> None:
    batch = with_curves([[0.1, 0.3], [0.2, 0.9]])
    gone = tuple(
        replace(record, curves={batch.lock.metric.name: ((1, None), (2, 0.5))}) for record in batch.records
    )

    assert "figures/curves.svg" not in report_files(summarise([replace(batch, records=gone)], description=""))


def test_many_curves_are_thinned_and_it_is_said() -> None:
    root = drawn(
        "curves", with_curves([[0.0, row / 400] for row in range(400)], metric=Metric("l", Goal.MINIMIZE))
    )

    assert any("of 400 trials are drawn: the best 20," in word for word in words(root))
    assert len(paths(root, "line")) <= 160


def test_each_assignment_has_its_mean_its_interval_and_its_trials_best_first() -> None:
    root = drawn("intervals", CLEAR)

    assert len(marks(root, "trial")) == 6
    assert len(marks(root, "best")) == len(marks(root, "level")) == 1
    assert len(paths(root, "mean")) == 3, "one is the legend's"
    assert [word for word in words(root) if word.startswith("a ")] == ["a x", "a y"]


def test_the_best_so_far_over_what_was_spent_is_a_searchs_alone() -> None:
    root = drawn("spent", *a_search())

    assert len(marks(root, "trial")) == 8
    assert "minutes of computing time, all trials together" in words(root)
    assert [path for path in paths(root, "record") if path.count("L") == 5]
    assert "figures/spent.svg" not in report_files(summarise([LONG], description=""))


def test_figures_of_a_wide_replicated_sweep_name_only_what_varies() -> None:
    many = replicated({f"a very long value {number} of many": [number, number + 1] for number in range(40)})
    root = drawn("intervals", many)

    assert "The best 24 of 40 configurations." in words(root)
