"""figures/trials.svg: every trial in its order, and the best so far."""

from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.program import Code
from tests.builders import a_grid, a_program
from tests.results.drawings import drawn, marks, paths, words


def test_larger_is_higher_and_the_best_is_ringed() -> None:
    root = drawn("trials", a_grid({"a": [1, 2, 3]}, lambda v: float(str(v["a"]))))

    trials, ring = marks(root, "trial"), marks(root, "ring")
    assert [y for _, y in trials] == sorted((y for _, y in trials), reverse=True)
    assert ring == [trials[2]]
    assert "test_accuracy (higher is better)" in words(root)


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
