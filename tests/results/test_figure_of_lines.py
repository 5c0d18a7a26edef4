"""figures/parallel.svg: every trial as a line through its values."""

import re
from dataclasses import replace
from types import MappingProxyType

import pytest

from sweepledger.structs.metric import Goal, Metric
from tests.builders import a_grid
from tests.results.drawings import SVG, classes, drawn, paths, seen, texts, words
from tests.results.test_figures import demo


def axes(batch: object) -> list[str]:
    root = drawn("parallel", batch)  # type: ignore[arg-type]
    return [each.text or "" for each in seen(root) if "head" in classes(each)]


def ends(drawn_paths: list[str]) -> list[float]:
    """Where lines end on the last axis."""
    return [float(path.rsplit(" ", 2)[1]) for path in drawn_paths]


def test_the_axes_are_the_parameters_that_vary_and_the_objective() -> None:
    assert axes(a_grid({"a": [1, 2], "constant": [0], "b": ["x", "y"]}, lambda v: float(str(v["a"])))) == [
        "a",
        "b",
        "test_accuracy",
    ]


def test_each_trial_is_a_line_and_the_best_one_lies_on_top() -> None:
    root = drawn("parallel", demo())

    lines = [
        each for each in seen(root) if {"line", "chosen"} & {*classes(each)} and "C" in each.get("d", "")
    ]
    assert len(lines) == 16
    assert classes(lines[-1]) == ["chosen"]
    assert all(each.get("d", "").count("C") == 2 for each in lines)


def test_colours_tell_fifths_by_rank() -> None:
    root = drawn("parallel", a_grid({"a": list(range(10))}, lambda v: float(str(v["a"]))))

    counts = [len([each for each in paths(root, f"c{number}") if "C" in each]) for number in range(5)]
    assert counts == [2, 2, 2, 2, 1], "the best is of a colour of its own"
    assert (
        ends([each for each in paths(root, "c4") if "C" in each])[0]
        > ends([each for each in paths(root, "c0") if "C" in each])[0]
    )


def test_a_trial_without_a_parameter_goes_through_its_absence() -> None:
    batch = a_grid({"a": [1, 2, 3]}, lambda v: float(str(v["a"])))
    last = replace(batch.expected[2], assignment=MappingProxyType({"b": 5}))

    root = drawn("parallel", replace(batch, expected=(*batch.expected[:2], last)))

    assert "absent" in words(root)
    assert root.findtext(f"{SVG}desc") == "3 trials as lines through a to test_accuracy."


def test_the_objective_says_which_end_is_good() -> None:
    assert "higher is better" in words(drawn("parallel", demo()))
    smaller = a_grid({"a": [1, 2]}, lambda v: float(str(v["a"])), metric=Metric("loss", Goal.MINIMIZE))
    assert "lower is better" in words(drawn("parallel", smaller))


@pytest.mark.parametrize("page", ["wide", "narrow"])
def test_no_label_lies_on_a_line(page: str) -> None:
    root = drawn("parallel", demo())

    points = [
        point
        for each in (*paths(root, "line"), *paths(root, "chosen"))
        for x, y, bends in re.findall(r"M(\S+) (\S+)C([^M]+)", each)
        for point in on_curve([float(x), float(y), *map(float, bends.split())])
    ]
    assert len(points) > 16 * 2 * 50
    assert [label.what for label in texts(root, page) if any(map(label.holds, points))] == []


def on_curve(c: list[float]) -> list[tuple[float, float]]:
    """Points on a cubic Bézier curve."""
    shares = [number / 60 for number in range(61)]
    weights = [((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3) for t in shares]
    return [
        (
            sum(w * x for w, x in zip(each, c[::2], strict=True)),
            sum(w * y for w, y in zip(each, c[1::2], strict=True)),
        )
        for each in weights
    ]
