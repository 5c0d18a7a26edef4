"""What all figures have in common: the same bytes, light and dark, and nothing written over anything."""

import itertools
import re
from collections.abc import Mapping
from functools import cache

import pytest

from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.results.tree import report_files
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.values import Value
from tests.builders import a_grid
from tests.results.drawings import SVG, boxes, drawn, parsed, seen, source, texts
from tests.results.searched import a_search, ended, with_curves
from tests.results.test_readme_of_replicates import replicated

GRID: dict[str, list[Value]] = {"learning_rate": [0.01, 0.04, 0.1, 0.4], "batch_size": [32, 64, 128, 512]}
NAMES = ("trials", "parallel", "slices")
HOSTILE = "</text><script>x</script>\x00\x1b[31m\u202e&<![CDATA["
MANY: list[Value] = [f"a very long name {number}" for number in range(30)]


def score(values: Mapping[str, Value]) -> float:
    return 0.9 + 0.05 * float(str(values["learning_rate"])) - 1e-5 * float(str(values["batch_size"]))


def demo() -> BatchRecords:
    return a_grid(GRID, score)


def hostile() -> BatchRecords:
    return a_grid({HOSTILE: [HOSTILE, "b"]}, lambda _: 0.5, metric=Metric(HOSTILE, Goal.MAXIMIZE))


SWEEPS = [
    pytest.param(demo(), id="the-demo"),
    pytest.param(a_grid({"a": MANY, "b": [1, 1000000]}, lambda _: 0.5), id="many-long-names"),
    pytest.param(a_grid({"n" * 60: [1, 2], "M" * 60: [1, 2], "c": [True, [1]]}, lambda _: 1e-9), id="long"),
    pytest.param(
        a_grid({"a": ["漢字" * 9, "", "on"], "b": [1, 2]}, lambda v: float(str(v["b"]))), id="wide-letters"
    ),
    pytest.param(a_grid({str(n): [0, 1] for n in range(9)}, lambda v: 1e4 ** float(str(v["3"]))), id="crowd"),
    pytest.param(a_grid({"a": [1, 2, 3]}, lambda v: 1 / 3 if v["a"] == 1 else None), id="one-result"),
    pytest.param(hostile(), id="hostile"),
    pytest.param(
        ended(with_curves([[0.1 * row, 0.2 * row] for row in range(9)]), {2: "median"}), id="curves"
    ),
    pytest.param(a_search()[0], id="a-round"),
    pytest.param(replicated({"x": [0.9, 0.91], "y" * 90: [0.5], HOSTILE: [1e308, -1e308]}), id="replicates"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", ["wide", "narrow"])
@pytest.mark.parametrize("batch", SWEEPS)
def test_labels_meet_neither_each_other_nor_a_frame_nor_the_edge(batch: BatchRecords, page: str) -> None:
    for name in report_files(summarise([batch], description="")):
        if not name.endswith(".svg"):
            continue
        root = drawn(name.removeprefix("figures/").removesuffix(".svg"), batch)
        edge = boxes(root, "page")[0]
        labels = texts(root, page)

        assert [(a.what, b.what) for a, b in itertools.combinations(labels, 2) if a.meets(b)] == []
        assert [label.what for label in labels for frame in boxes(root) if label.meets(frame)] == []
        assert [
            label.what
            for label in labels
            if not (edge.left <= label.left and label.right <= edge.right and label.bottom <= edge.bottom)
        ] == []


@pytest.mark.parametrize("name", NAMES)
def test_all_that_is_drawn_has_colours_for_light_and_for_dark_pages(name: str) -> None:
    root = drawn(name, demo())
    light, dark = (root.findtext(f"{SVG}style") or "").split("@media (prefers-color-scheme: dark)")
    colourless = {"wide", "narrow", "fine", "line", "swatch", *(f"d{number}" for number in range(5))}

    used = {kind for each in root.iter() for kind in each.get("class", "").split()} - colourless

    assert used
    for kind in used:
        assert re.search(rf"\.{kind}\b", light), kind
        assert re.search(rf"\.{kind}\b", dark), kind


@pytest.mark.parametrize("name", NAMES)
def test_hostile_text_is_only_text_and_nothing_asks_for_more(name: str) -> None:
    text = source(name, hostile())
    root = parsed(text)

    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "g", "text", "circle", "path",
    }  # fmt: skip
    assert any("\\u202e" in (each.text or "") for each in root.iter(f"{SVG}desc"))
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\(|<[^>]*\bon\w+=", text)


@cache
def ten_thousand_trials() -> BatchRecords:
    parameters: dict[str, list[Value]] = {
        "a": list(range(100)),
        "b": list(range(10)),
        "c": list("abcdefghij"),
    }
    return a_grid(parameters, lambda v: float(str(v["a"])) / 7 + float(str(v["b"])) % 3)


@pytest.mark.full_suite("large inputs")
def test_ten_thousand_trials_make_small_files_that_say_how_they_are_thinned() -> None:
    files = report_files(summarise([ten_thousand_trials()], description=""))

    for name, sentence in {
        "trials": "10000 trials, counted in tiles of 6 by 6 pixels.",
        "slices": "10000 trials, counted in tiles of 6 by 6 pixels.",
        "parallel": "158 of 10000 trials are drawn: the best 20, and one in 72 of the others by rank.",
    }.items():
        drawing = files[f"figures/{name}.svg"]
        shown = " ".join(each.text or "" for each in seen(parsed(drawing)) if each.tag == f"{SVG}text")
        assert len(drawing) < 150_000
        assert sentence in shown.replace("  ", " ")


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0.0], id="one-zero"),
        pytest.param([1e308, -1e308], id="as-wide-as-doubles"),
        pytest.param([1.7976931348623157e308], id="the-largest"),
        pytest.param([5e-324, 1e308], id="all-decades"),
        pytest.param([5e-324, 1e-323], id="the-smallest"),
        pytest.param([1e16, 1e16 + 2], id="neighbours"),
        pytest.param([0.5, 0.5, 0.5], id="all-equal"),
        pytest.param([-3.0, -2.0], id="negative"),
        pytest.param([*(float(n) for n in range(1, 12)), 1e300], id="an-outlier"),
    ],
)
@pytest.mark.parametrize("goal", [Goal.MAXIMIZE, Goal.MINIMIZE])
def test_extreme_numbers_stay_inside_the_frame(values: list[float], goal: Goal) -> None:
    numbered: dict[int, float] = dict(enumerate(values))
    parameters: dict[str, list[Value]] = {"i": list(numbered), "v": [*dict.fromkeys(values)]}
    batch = a_grid(parameters, lambda v: numbered[int(str(v["i"]))], metric=Metric("m", goal))

    drawings = [
        text
        for name, text in report_files(summarise([batch], description="")).items()
        if name.endswith(".svg")
    ]

    assert drawings
    for root in map(parsed, drawings):
        width, height = float(root.get("width", "")), float(root.get("height", ""))
        for circle in root.iter(f"{SVG}circle"):
            assert 0 < float(circle.get("cx", "")) < width
            assert 0 < float(circle.get("cy", "")) < height
        for path in root.iter(f"{SVG}path"):
            numbers = [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", path.get("d", ""))]
            assert all(-1 <= each <= max(width, height) for each in numbers), path.get("d")
