"""figures/slices.svg: one plot a parameter."""

import itertools

import pytest

from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.values import Value
from tests.builders import a_grid
from tests.results.drawings import boxes, classes, drawn, marks, paths, seen, words
from tests.results.test_figures import demo


def heads(name: str, *batches: object) -> list[str]:
    root = drawn(name, *batches)  # type: ignore[arg-type]
    return [each.text or "" for each in seen(root) if "head" in classes(each)]


def test_each_parameter_has_a_plot_with_every_trial_value_and_mean() -> None:
    root = drawn("slices", demo())

    assert heads("slices", demo()) == ["learning_rate", "batch_size"]
    assert len(boxes(root)) == 2
    assert len(marks(root, "trial")) == 2 * 16
    assert len(marks(root, "level")) == 2 * 4
    assert len(marks(root, "ring")) == 2
    assert {"0.01", "0.04", "0.1", "0.4", "32", "64", "128", "512"} <= set(words(root))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_however_many_share_a_value_all_stay_inside_the_frame(columns: int) -> None:
    names = ["a", "b", "c"][:columns]
    few = drawn("slices", a_grid({**{name: [1, 2, 3] for name in names}, "constant": [0]}, lambda _: 0.5))
    crowd = drawn("slices", a_grid({name: list(range(7)) for name in names}, lambda _: 0.5))

    assert len(marks(few, "trial")) == columns * 3**columns
    assert len(marks(crowd, "trial")) == columns * 7**columns


def test_trials_without_a_result_are_crosses_at_their_values() -> None:
    batch = a_grid({"a": [1, 2, 3], "b": [1, 2]}, lambda v: None if v["a"] == 3 else 0.5)
    root = drawn("slices", batch)

    assert "3" in words(root), "a value that never ended ok has its place, too"
    assert len(paths(root, "cross")) == 1 + 1 + 2, "the legend's, one value of a, two of b"


@pytest.mark.parametrize(
    ("values", "evenly"),
    [
        ([0.001, 0.01, 0.1], True),
        ([32, 64, 128, 256], True),
        ([1, 2, 3, 4], True),
        ([0.4, 0.6, 0.7], False),
        ([0, 1, 10], False),
    ],
)
def test_geometric_parameters_have_a_logarithmic_axis(values: list[Value], *, evenly: bool) -> None:
    batch = a_grid({"a": values, "b": [0, 1]}, lambda v: float(str(v["a"])) + 1e-6 * float(str(v["b"])))
    root = drawn("slices", batch)

    places = sorted(x for x, _ in marks(root, "level"))[: len(values)]
    gaps = [right - left for left, right in itertools.pairwise(places)]
    assert (max(gaps) - min(gaps) < 0.25) is evenly


def test_the_objective_of_an_outlier_is_drawn_at_the_edge_of_every_plot() -> None:
    batch = a_grid(
        {"a": list(range(10)), "b": [1, 2]},
        lambda v: 1e6 if (v["a"], v["b"]) == (3, 2) else 1 + float(str(v["a"])),
        metric=Metric("loss", Goal.MINIMIZE),
    )
    root = drawn("slices", batch)

    assert len(paths(root, "beyond")) == 3, "one is the legend's"
    assert "Means beyond the axis are drawn at its end." in words(root)


def test_side_by_side_trials_do_not_look_as_if_they_had_other_values() -> None:
    batch = a_grid({"batch_size": [16, 32, 64], "b": list(range(12))}, lambda v: float(str(v["batch_size"])))
    root = drawn("slices", batch)

    frame = boxes(root)[heads("slices", batch).index("batch_size")]
    places = sorted(x for x, y in marks(root, "trial") if frame.holds((x, y)))
    sixteen, thirty_two = (sum(each) / 12 for each in (places[:12], places[12:24]))
    shown = [16 * 2 ** ((x - sixteen) / (thirty_two - sixteen)) for x in places[:12]]
    assert 14.5 < min(shown) < max(shown) < 17.5
