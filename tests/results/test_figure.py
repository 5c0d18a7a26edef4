"""figure.svg: well-formed, the same bytes, and nothing written over anything else."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

import pytest

from generator.results import BatchResults, summarise
from generator.results.figure import figure
from generator.results.svg import CHARACTER_WIDTH
from generator.structs.program import Code
from generator.structs.sweep import Goal, Metric
from generator.structs.values import Value
from tests.builders import a_grid, a_program

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"title": 18, "head": 13}
GRID: dict[str, list[Value]] = {"learning_rate": [0.01, 0.04, 0.1, 0.4], "batch_size": [32, 64, 128, 512]}


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float
    what: str

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def drawn(*batches: BatchResults) -> ET.Element:
    return ET.fromstring(figure(summarise(batches, description="")))  # noqa: S314 - our own


def demo() -> BatchResults:
    return a_grid(
        GRID, lambda v: 0.9 + 0.05 * float(str(v["learning_rate"])) - 1e-5 * float(str(v["batch_size"]))
    )


def texts(root: ET.Element) -> Iterator[Box]:
    for element in root.iter(f"{SVG}text"):
        words, size = element.text or "", SIZES.get(element.get("class", ""), 11)
        width = len(words) * size * CHARACTER_WIDTH
        x, y = float(element.get("x", "")), float(element.get("y", ""))
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[element.get("text-anchor", "")]
        yield Box(left, y - size * 0.8, left + width, y + size * 0.25, words)


def frames(root: ET.Element, kind: str = "frame") -> list[Box]:
    boxes = []
    for element in root.iter(f"{SVG}rect"):
        if element.get("class") == kind:
            x, y, width, height = (float(element.get(name, "")) for name in ("x", "y", "width", "height"))
            boxes.append(Box(x, y, x + width, y + height, kind))
    return boxes


def marks(root: ET.Element, kind: str) -> list[tuple[float, float]]:
    circles = (each for each in root.iter(f"{SVG}circle") if each.get("class") == kind)
    return [(float(each.get("cx", "")), float(each.get("cy", ""))) for each in circles]


def inside(root: ET.Element, kind: str) -> list[tuple[float, float]]:
    """Marks that lie in a frame: not those of the legend."""
    return [
        (x, y)
        for x, y in marks(root, kind)
        if any(box.left <= x <= box.right and box.top <= y <= box.bottom for box in frames(root))
    ]


MANY: list[Value] = [f"a very long name {number}" for number in range(30)]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(demo(), id="the-demo"),
        pytest.param(a_grid({"a": MANY, "b": [1, 1000000]}, lambda _: 0.5), id="many-long-names"),
        pytest.param(
            a_grid({"n" * 60: [1, 2], "m" * 60: [1, 2], "c": [True, [1]]}, lambda _: 1e-9), id="long"
        ),
        pytest.param(a_grid({"a": [1, 2, 3]}, lambda _: None), id="no-results"),
    ],
)
def test_labels_meet_neither_each_other_nor_a_frame_nor_the_edge(batch: BatchResults) -> None:
    root = drawn(batch)
    page = frames(root, "page")[0]
    labels = [label for label in texts(root) if label.what != "no trial has ended ok"]

    assert [(a.what, b.what) for a, b in itertools.combinations(labels, 2) if a.meets(b)] == []
    assert [label.what for label in labels for frame in frames(root) if label.meets(frame)] == []
    assert [
        label.what
        for label in labels
        if not (page.left <= label.left and label.right <= page.right and label.bottom <= page.bottom)
    ] == []


def test_the_demo_has_a_panel_a_parameter_and_one_for_the_order() -> None:
    root = drawn(demo())

    heads = [each.text for each in root.iter(f"{SVG}text") if each.get("class") == "head"]
    assert heads == ["learning_rate", "batch_size", "every trial, in the order of the tables"]
    assert len(frames(root)) == 3
    assert len(inside(root, "trial")) == 3 * 16
    assert len(inside(root, "level")) == 2 * 4
    assert len(inside(root, "ring")) == 3
    assert root.get("width") == "860"


def test_every_mark_lies_in_a_frame_and_every_value_has_its_label() -> None:
    root = drawn(demo())

    for kind in ("trial", "level", "best"):
        assert len(inside(root, kind)) == len(marks(root, kind)) - 1, "one is the legend's"
    words = {label.what for label in texts(root)}
    assert {"0.01", "0.04", "0.1", "0.4", "32", "64", "128", "512"} <= words
    assert {str(number) for number in range(1, 17)} <= words


def test_the_same_results_are_the_same_bytes_in_any_order() -> None:
    batch = demo()

    first = figure(summarise([batch], description=""))
    again = figure(summarise([replace(batch, records=tuple(reversed(batch.records)))], description=""))

    assert first == again
    assert first.endswith("</svg>\n")


def test_coordinates_have_at_most_one_decimal() -> None:
    text = figure(summarise([demo()], description=""))

    assert re.findall(r'(?:x|y|r|d|width|height)="[^"]*\.\d\d[^"]*"', text) == []


def test_it_is_described_for_those_who_do_not_see_it() -> None:
    batch = a_grid({"a": [1, 2]}, lambda v: 0.5 if v["a"] == 1 else None)
    root = drawn(a_grid({"a": [1, 2], "b": [0, 1]}, lambda v: float(str(v["a"]))))

    assert root.findtext(f"{SVG}title") == "mnist-grid: test_accuracy by parameter and by trial"
    assert root.findtext(f"{SVG}desc") == (
        "4 of 4 trials ended ok, best test_accuracy 2 (t00000000002)."
        " a: 1 has mean 1, 2 has mean 2. b: 0 has mean 1.5, 1 has mean 1.5."
    )
    assert (
        drawn(batch).findtext(f"{SVG}desc")
        == "1 of 2 trials ended ok, best test_accuracy 0.5 (t00000000000)."
    )
    told = [each.findtext(f"{SVG}title") for each in root.iter(f"{SVG}circle")]
    assert "t00000000002: test_accuracy 2 with a 2, b 0" in told


def test_it_has_colours_for_light_and_for_dark_pages() -> None:
    style = drawn(demo()).findtext(f"{SVG}style") or ""

    light, dark = style.split("@media (prefers-color-scheme: dark)")
    used = {each.get("class") for each in drawn(demo()).iter() if each.get("class")}
    for kind in used:
        assert f".{kind}" in light
        assert f".{kind}" in dark


def test_larger_is_higher_and_the_best_is_ringed() -> None:
    root = drawn(a_grid({"a": [1, 2, 3]}, lambda v: float(str(v["a"]))))

    trials, ring = inside(root, "trial"), inside(root, "ring")
    assert [y for _, y in trials[:3]] == sorted((y for _, y in trials[:3]), reverse=True)
    assert ring[0] == trials[2]


def test_the_smallest_is_ringed_where_small_is_good() -> None:
    root = drawn(a_grid({"a": [1, 2, 3]}, lambda v: float(str(v["a"])), metric=Metric("loss", Goal.MINIMIZE)))

    assert inside(root, "ring")[0] == inside(root, "trial")[0]


def test_trials_that_share_a_value_stand_side_by_side() -> None:
    root = drawn(a_grid({"a": [1, 2], "b": [1, 2, 3]}, lambda _: 0.5))

    places = inside(root, "trial")[:6]
    assert len(set(places)) == 6


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_however_many_share_a_value_all_stay_inside_the_frame(columns: int) -> None:
    names = ["a", "b", "c"][:columns]
    root = drawn(a_grid({**{name: [1, 2, 3] for name in names}, "constant": [0]}, lambda _: 0.5))
    crowd = drawn(a_grid({name: list(range(7)) for name in names}, lambda _: 0.5))

    for each in (root, crowd):
        assert len(inside(each, "trial")) == len(marks(each, "trial")) - 1


def test_trials_without_a_result_are_crosses_of_the_order_panel() -> None:
    root = drawn(a_grid({"a": [1, 2, 3, 4]}, lambda v: None if v["a"] == 2 else 0.5))

    crosses = [each for each in root.iter(f"{SVG}path") if each.get("class") == "cross"]
    assert len(crosses) == 2, "one is the legend's"
    assert any(label.what == "diverged, failed or missing" for label in texts(root))


def test_without_results_it_says_so() -> None:
    root = drawn(a_grid({"a": [1, 2]}, lambda _: None))

    assert any(label.what == "no trial has ended ok" for label in texts(root))
    assert len(frames(root)) == 1
    assert marks(root, "best") == []


def test_trials_of_an_older_program_are_pale_and_only_in_the_order_panel() -> None:
    later = a_program(code=Code("trainer", "beef" * 10))
    root = drawn(
        a_grid({"a": [1, 2]}, lambda _: 0.9),
        a_grid({"a": [1, 2, 3]}, lambda _: 0.5, number=2, name="mnist-grid-b2-00000000", program=later),
    )

    assert len(marks(root, "retired")) == 2
    assert len(inside(root, "trial")) == 2 * 3
    assert len([each for each in root.iter(f"{SVG}path") if each.get("class") == "seam"]) == 1


def test_many_trials_make_a_small_file() -> None:
    text = figure(
        summarise([a_grid({"a": list(range(5000))}, lambda v: float(str(v["a"])) % 97)], description="")
    )

    assert len(text) < 400_000
    assert "<circle" in text


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
    ],
)
def test_extreme_numbers_stay_inside_the_frame(values: list[float]) -> None:
    numbered: dict[int, float] = dict(enumerate(values))
    for parameters in ({"i": list(numbered)}, {"i": list(numbered), "v": [*values]}):
        root = drawn(a_grid(parameters, lambda v: numbered[int(str(v["i"]))]))  # type: ignore[arg-type]

        assert len(inside(root, "trial")) == len(marks(root, "trial")) - 1


@pytest.mark.parametrize(
    ("values", "evenly"),
    [
        ([0.001, 0.01, 0.1], True),
        ([32, 64, 128, 256], True),
        ([1, 2, 3, 4], True),
        ([1, 10], False),
        ([0, 1, 10], False),
    ],
)
def test_geometric_parameters_have_a_logarithmic_axis(values: list[Value], *, evenly: bool) -> None:
    root = drawn(a_grid({"a": values, "b": [0, 1]}, lambda v: float(str(v["a"])) + 1e-6 * float(str(v["b"]))))

    places = sorted(x for x, _ in inside(root, "level"))[: len(values)]
    gaps = [right - left for left, right in itertools.pairwise(places)]
    assert (len(gaps) > 1 and max(gaps) - min(gaps) < 0.25) is evenly


def test_hostile_text_is_only_text() -> None:
    hostile = "</text><script>x</script>\x00\x1b[31m\u202e&<![CDATA["
    root = drawn(
        a_grid({"a": [hostile, "b"]}, lambda _: 0.5, metric=Metric(hostile, Goal.MAXIMIZE)),
    )

    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg", "title", "desc", "style", "rect", "g", "text", "circle", "path",
    }  # fmt: skip
