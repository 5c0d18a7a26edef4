"""What lies where on a figure, for tests: texts as boxes, frames, marks, on wide pages and on narrow ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from sweepledger.results.figures.svg import BOLD, NARROW_SIZE, TITLE, WIDE_SIZE, text_width
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.results.tree import report_files

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"wide": WIDE_SIZE, "narrow": NARROW_SIZE}
OTHER = {"wide": "narrow", "narrow": "wide"}


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float
    what: str = ""

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, point: tuple[float, float]) -> bool:
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom


def source(name: str, *batches: BatchRecords) -> str:
    return report_files(summarise(batches, description="", in_spec=lambda *_: True))[f"figures/{name}.svg"]


def drawn(name: str, *batches: BatchRecords) -> ET.Element:
    return parsed(source(name, *batches))


def parsed(drawing: str) -> ET.Element:
    return ET.fromstring(drawing)  # noqa: S314 - our own


def classes(element: ET.Element) -> list[str]:
    return element.get("class", "").split()


def seen(root: ET.Element, page: str = "wide") -> Iterator[ET.Element]:
    for child in root:
        if OTHER[page] not in classes(child):
            yield child
            yield from seen(child, page)


def texts(root: ET.Element, page: str = "wide") -> list[Box]:
    boxes = []
    for element in seen(root, page):
        if element.tag != f"{SVG}text":
            continue
        kinds, words = classes(element), element.text or ""
        size = SIZES[page] * (TITLE if "title" in kinds else 1)
        width = text_width(words, size) * (BOLD if {"title", "head"} & {*kinds} else 1)
        x, y = float(element.get("x", "")), float(element.get("y", ""))
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[element.get("text-anchor", "")]
        boxes.append(Box(left, y - size * 0.75, left + width, y + size * 0.22, words))
    return boxes


def words(root: ET.Element, page: str = "wide") -> list[str]:
    return [box.what for box in texts(root, page)]


def boxes(root: ET.Element, kind: str = "frame") -> list[Box]:
    results = []
    for element in seen(root):
        if element.tag == f"{SVG}rect" and kind in classes(element):
            x, y, width, height = (float(element.get(name, "")) for name in ("x", "y", "width", "height"))
            results.append(Box(x, y, x + width, y + height))
    return results


def marks(root: ET.Element, kind: str) -> list[tuple[float, float]]:
    """The marks that lie in a frame: not those of the legend."""
    circles = [each for each in seen(root) if each.tag == f"{SVG}circle" and kind in classes(each)]
    points = [(float(each.get("cx", "")), float(each.get("cy", ""))) for each in circles]
    return [point for point in points if any(frame.holds(point) for frame in boxes(root))]


def paths(root: ET.Element, kind: str) -> list[str]:
    elements = (each for each in seen(root) if each.tag == f"{SVG}path" and kind in classes(each))
    return [each.get("d", "") for each in elements]
