"""figures/trials.svg: every trial in its order, and the best so far."""

from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.program import Code
from tests.builders import a_grid, a_program
from tests.results.drawings import SVG, drawn, marks, paths, words


def test_each_trial_is_a_dot_with_its_story_or_a_cross_and_the_best_is_ringed() -> None:
    root = drawn("trials", a_grid({"a": [1, 2, 3, 4]}, lambda v: None if v["a"] == 2 else float(str(v["a"]))))

    trials = marks(root, "trial")
    assert len(trials) == 3
    assert [y for _, y in trials] == sorted((y for _, y in trials), reverse=True), "larger is higher"
    assert marks(root, "ring") == [trials[2]]
    assert len(paths(root, "cross")) == 2, "one is the legend's"
    assert {"1", "2", "3", "4", "trial, in the order of the summary", "no result"} <= set(words(root))
    assert "test_accuracy (higher is better)" in words(root)
    messages = [each.findtext(f"{SVG}title") for each in root.iter(f"{SVG}circle")]
    assert "t00000000002: test_accuracy 3 with a 3" in messages


def test_trials_of_an_older_program_are_grey_and_behind_a_seam() -> None:
    later = a_program(code=Code("trainer", "beef" * 10))
    root = drawn(
        "trials",
        a_grid({"a": [1, 2]}, lambda _: 0.9),
        a_grid({"a": [1, 2, 3]}, lambda _: 0.5, number=2, name="mnist-grid-b2-00000000", program=later),
    )

    assert len(marks(root, "retired")) == 2
    assert len(marks(root, "trial")) == 3
    assert len(paths(root, "seam")) == 1
    assert {"not ranked", "trial, in the order of the summary, batch by batch"} <= set(words(root))
    assert marks(root, "ring") == [marks(root, "trial")[0]]


def test_an_outlier_is_a_mark_at_the_edge_and_is_told() -> None:
    batch = a_grid(
        {"a": list(range(20))},
        lambda v: 1e9 if v["a"] == 7 else 1 + float(str(v["a"])) / 10,
        metric=Metric("loss", Goal.MINIMIZE),
    )
    root = drawn("trials", batch)

    assert len(marks(root, "trial")) == 19
    assert len(paths(root, "beyond")) == 2, "one is the legend's"
    assert "1 of 20 trials are beyond the axis, the worst at 1e+09." in words(root)


def test_losses_of_many_orders_of_magnitude_have_a_logarithmic_axis_that_says_so() -> None:
    batch = a_grid(
        {"a": list(range(9))}, lambda v: 10.0 ** float(str(v["a"])), metric=Metric("loss", Goal.MINIMIZE)
    )
    root = drawn("trials", batch)

    assert "loss (lower is better, log scale)" in words(root)
    heights = [y for _, y in marks(root, "trial")]
    assert {round(above - below) for below, above in zip(heights[1:], heights, strict=False)} <= {28, 29, 30}
