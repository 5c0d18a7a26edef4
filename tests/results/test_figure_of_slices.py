"""figures/slices.svg: one plot a parameter."""

import itertools

import pytest

from sweepledger.structs.values import Value
from tests.builders import a_grid
from tests.results.drawings import boxes, classes, drawn, marks, paths, seen, words


def heads(name: str, *batches: object) -> list[str]:
    root = drawn(name, *batches)  # type: ignore[arg-type]
    return [each.text or "" for each in seen(root) if "head" in classes(each)]


def test_trials_without_a_result_are_crosses_at_their_values() -> None:
    batch = a_grid({"a": [1, 2, 3], "b": [1, 2]}, lambda v: None if v["a"] == 3 else 0.5)
    root = drawn("slices", batch)

    assert "3" in words(root), "a value that never ended ok has its place, too"
    assert len(paths(root, "cross")) == 1 + 1 + 2, "the legend's, one value of a, two of b"


@pytest.mark.parametrize(
    ("values", "evenly"),
    [
        ([0.001, 0.01, 0.1], True),
        ([1, 2, 3, 4], True),
        ([0.4, 0.6, 0.7], False),
    ],
)
def test_geometric_parameters_have_a_logarithmic_axis(values: list[Value], *, evenly: bool) -> None:
    batch = a_grid({"a": values, "b": [0, 1]}, lambda v: float(str(v["a"])) + 1e-6 * float(str(v["b"])))
    root = drawn("slices", batch)

    places = sorted(x for x, _ in marks(root, "level"))[: len(values)]
    gaps = [right - left for left, right in itertools.pairwise(places)]
    assert (max(gaps) - min(gaps) < 0.25) is evenly


def test_side_by_side_trials_do_not_look_as_if_they_had_other_values() -> None:
    batch = a_grid({"batch_size": [16, 32, 64], "b": list(range(12))}, lambda v: float(str(v["batch_size"])))
    root = drawn("slices", batch)

    frame = boxes(root)[heads("slices", batch).index("batch_size")]
    places = sorted(x for x, y in marks(root, "trial") if frame.holds((x, y)))
    sixteen, thirty_two = (sum(each) / 12 for each in (places[:12], places[12:24]))
    shown = [16 * 2 ** ((x - sixteen) / (thirty_two - sixteen)) for x in places[:12]]
    assert 14.5 < min(shown) < max(shown) < 17.5
