"""figures/parallel.svg: every trial as a line through its values."""

import re
from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.builders import a_grid
from tests.results.drawings import SVG, drawn, paths, texts, words
from tests.results.test_figures import demo


def test_a_trial_without_a_parameter_goes_through_its_absence() -> None:
    batch = a_grid({"a": [1, 2, 3]}, lambda v: float(str(v["a"])))
    last = replace(batch.expected[2], assignment=MappingProxyType({"b": 5}))

    root = drawn("parallel", replace(batch, expected=(*batch.expected[:2], last)))

    assert "absent" in words(root)
    assert root.findtext(f"{SVG}desc") == "3 trials as lines through a to test_accuracy."


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
