"""HTML of results in notebooks. Names, values and figures come from a repository: nothing in them may take effect."""

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from sweepledger.results.display import format_number, format_value, one_line

LONGEST_CELL = 80


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of a sweep's report."""

    name: str
    """Its file name without the ending, such as `trials` or `curves`."""
    svg: str = field(repr=False)
    """The file's text."""

    def _repr_html_(self) -> str:
        # As an image, an SVG file can run no script, load nothing, and its styles do not reach the notebook.
        content = b64encode(self.svg.encode()).decode()
        return f'<img alt="{text_html(self.name)}" src="data:image/svg+xml;base64,{content}">'


def text_html(text: str) -> str:
    """Return user text as one visible line of HTML, without markup."""
    return escape(one_line(text))


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """Return a heading, and a table of facts by name."""
    rows = "".join(
        f"<tr><th>{text_html(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<h4>{text_html(title)}</h4><table>{rows}</table>"


def table_html(names: Sequence[str], rows: Iterable[Sequence[Any]], *, total: int) -> str:
    """Return a table of some rows; states how many of the total are shown if these are not all."""
    head = "".join(f"<th>{text_html(name)}</th>" for name in names)
    lines = [f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows]
    note = "" if len(lines) == total else f"<p>{len(lines)} of {total} rows</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{note}"


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float() if math.isnan(value):
            return ""
        case float():
            return escape(format_number(value))
        case str():
            text = one_line(value)
        case _:
            text = format_value(value)
    return escape(text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…")
