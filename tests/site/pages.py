"""Pages of a site for tests: a sweep's history in which users and trials have written hostile text, and a parser."""

import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from types import MappingProxyType
from typing import Any

from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import Summary, summarise
from sweepledger.site import Event, SpecVersion, SweepHistory
from sweepledger.site.history import EventKind
from sweepledger.structs.record import Artifact, Record, Status
from tests.builders import a_lock, a_record, an_expected_trial

HOSTILE = (
    "</script><script>document.title='x'</script>",
    "<img src=x onerror=document.title='x'>",
    "\"><svg onload=document.title='x'>",
    "' onmouseover='document.title=1",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:document.title='x'",
    "<!--<script>",
    "\u202etfel-ot-thgir\u2028\u2029\x00\x1b[31m",
    "\udcff\ufffe]]>",
    "https://example.org/x.js",
)
"""Text that would be executed, loaded or hidden where it is taken for more than text."""


def a_history(texts: Sequence[str] = ("plain",), **changes: Any) -> SweepHistory:
    """A recorded sweep in which each text is wherever a person or a trial may write."""
    together = " ".join(texts)
    event = Event(
        "peak", EventKind.RESULTS, "a1" * 20, together, "2026-01-02T03:04:05Z", together, 0.9, 0.1, 4.0
    )
    versions = [
        SpecVersion("b2" * 20, together, "2026-01-01T00:00:00Z", together, text)
        for text in ("name: peak\n", f"name: peak\ndescription: {together}\n")
    ]
    return SweepHistory(
        **{
            "name": "peak",
            "summary": a_summary(texts),
            "spec": versions[-1].text,
            "versions": tuple(versions),
            "events": (replace(event, kind=EventKind.SPEC), event),
            "active": {},
            **changes,
        }
    )


def a_summary(texts: Sequence[str] = ("plain",), trials: int = 12) -> Summary:
    """The results of twelve trials: numbers, categories and text, curves, artifacts, and two that failed."""
    expected, records = [], []
    for index in range(trials):
        text = texts[index % len(texts)]
        values = {
            "rate": 10.0 ** -(index % 4),
            "depth": index % 3,
            "kind": f"{text} {index % 2}",
            text: index,
        }
        expected.append(an_expected_trial(index, assignment=MappingProxyType(values)))
        records.append(_record(index, text))
    lock = replace(a_lock(name="peak-b1-3f9a1c2e", sweep="peak"), trials=trials)
    batch = BatchRecords(lock, tuple(expected), tuple(records))
    return summarise([batch], description=" ".join(texts))


def _record(index: int, text: str) -> Record:
    curve = tuple((step, 0.5 + index / 100 + step / 1000) for step in range(1, 6))
    failed = index % 6 == 5
    return a_record(
        index,
        batch="peak-b1-3f9a1c2e",
        status=Status.FAILED if failed else Status.OK,
        reason=text if failed else None,
        metrics={"test_accuracy": 0.5 + index / 100, f"loss {text}": 0.1},
        details={"error": text, text: text, "versions": {text: text}},
        artifacts=(Artifact(text, 12, "0" * 64),),
        curve=curve,
    )


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of its scripts and styles."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.inside: list[tuple[dict[str, str], str]] = []
        """Attributes and content of each script and style."""
        self.text = ""
        self._open: dict[str, str] | None = None
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag in {"script", "style"}:
            self._open = {"element": tag, **attributes}
            self.inside.append((self._open, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is None:
            self.text += data
        else:
            self.inside[-1] = (self._open, self.inside[-1][1] + data)

    def data(self) -> Any:
        """Return the data of the page."""
        (text,) = [content for attributes, content in self.inside if attributes.get("id") == "data"]
        return json.loads(text)
