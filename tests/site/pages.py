"""Pages of a site for tests: a sweep's history in which users and trials have written hostile text, and a parser."""

import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from types import MappingProxyType
from typing import Any

from msgspec import structs

from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import Summary, summarise
from sweepledger.site.history import CodeRevision, Event, EventKind, SweepHistory
from sweepledger.structs.record import Artifact, Record, Status
from tests.builders import a_lock, a_program, a_record, an_expected_trial

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


TREES = ("be" * 20, "af" * 20)
"""Of the code before a change and after it, of a sweep with two batches."""


def a_history(texts: Sequence[str] = ("plain",), **changes: Any) -> SweepHistory:
    """A recorded sweep in which each text is wherever a person or a trial may write."""
    together = " ".join(texts)
    event = Event(
        "peak", EventKind.RESULTS, "a1" * 20, together, "2026-01-02T03:04:05Z", together, 0.9, 0.1, 4.0
    )
    requested = replace(event, kind=EventKind.SPEC, commit="b2" * 20, date="2026-01-01T00:00:00Z")
    spec = f"name: peak\ndescription: {together}\n"
    return SweepHistory(
        **{
            "name": "peak",
            "summary": a_summary(texts),
            "spec": spec,
            "versions": ((requested, "name: peak\n"), (requested, spec)),
            "events": (replace(event, kind=EventKind.SPEC), event),
            "active": {},
            "recorded": {"peak-b1-3f9a1c2e": "a1" * 20, "peak-b2-4f9a1c2e": "e5" * 20},
            "code_changes": {
                TREES: CodeRevision(((together, 1, 2),), f"@@ -1 +1 @@\n-{together}\n+{together}\n")
            },
            "prices": {"peak-b1-3f9a1c2e": 2.0, "peak-b2-4f9a1c2e": 3.0},
            "currency": "EUR",
            **changes,
        }
    )


def a_summary(texts: Sequence[str] = ("plain",), trials: int = 12) -> Summary:
    """The results of twelve trials: numbers, categories and text, curves, artifacts, and two that failed."""
    return summarise([_batch(texts, trials)], description=" ".join(texts))


def a_repeated_summary(texts: Sequence[str] = ("plain",), trials: int = 12, gain: float = 0.3) -> Summary:
    """The same with a second batch of the same configurations, in which other code is better by a gain."""
    first, second = (_batch(texts, trials, number, gain * (number - 1)) for number in (1, 2))
    return summarise([first, second], description=" ".join(texts))


def _batch(texts: Sequence[str], trials: int, number: int = 1, gain: float = 0.0) -> BatchRecords:
    program = structs.replace(a_program(), code=structs.replace(a_program().code, tree=TREES[number - 1]))
    name = f"peak-b{number}-{number + 2}f9a1c2e"
    lock = structs.replace(a_lock(name=name, sweep="peak", number=number, program=program), trials=trials)
    expected, records = [], []
    for index in range(trials):
        text = texts[index % len(texts)]
        values = {
            "rate": 10.0 ** -(index % 4),
            "depth": index % 3,
            "kind": f"{text} {index % 2}",
            text: index,
        }
        given = an_expected_trial(index, assignment=MappingProxyType(values))
        expected.append(replace(given, trial=f"{'tu'[number - 1]}{given.trial[1:]}"))
        made = _record(index, text, gain)
        records.append(replace(made, trial=expected[-1].trial, batch=name, code=program.code.tree))
    return BatchRecords(lock, tuple(expected), tuple(records))


def _record(index: int, text: str, gain: float) -> Record:
    curve = tuple((step, 0.5 + index / 100 + step / 1000) for step in range(1, 6))
    failed = index % 6 == 5
    return a_record(
        index,
        batch="peak-b1-3f9a1c2e",
        status=Status.FAILED if failed else Status.OK,
        reason=text if failed else None,
        metrics={"test_accuracy": 0.5 + index / 100 + gain + gain * (index % 3) / 50, f"loss {text}": 0.1},
        details={"error": text, text: text, "versions": {text: text}},
        artifacts=(Artifact(text, 12, "0" * 64),),
        curves=MappingProxyType(
            {"test_accuracy": curve, "loss": tuple((step, 2 - value) for step, value in curve)}
        ),
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
        (text,) = [content for attributes, content in self.inside if attributes.get("id") == "data"]
        return json.loads(text)
