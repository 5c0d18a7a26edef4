"""Katib's metrics collectors as source, format and patterns of a metric."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.fields import Fields, show_value
from sweepledger.reader.metric_patterns import pattern_error
from sweepledger.structs.metric import LONGEST_MATCH

DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
"""Katib's filter of lines `name=value`, which the format `text` finds, too."""

PRINT = "print lines `name=value`"
OTHER_COLLECTORS = {
    "TensorFlowEvent": (
        "the program must write its event files below its working directory: then write `source: result`, "
        f"`format: tensorboard`, and their folder as `path`; or {PRINT}"
    ),
    "PrometheusMetric": f"a trial serves no metrics here; {PRINT}",
    "Custom": f"a collector of your own does not run here; {PRINT}",
    "Push": f"the program reports to Katib's database; {PRINT}",
    "None": f"Katib reads no metrics; {PRINT}",
}


@dataclass(frozen=True, slots=True)
class ReportedMetrics:
    """How a program reports its metrics."""

    keys: dict[str, Any]
    """The keys `source`, `format` and `patterns`."""
    file: str | None
    """The file that the program writes; None for standard output."""
    losses: tuple[Loss, ...]


GROUP_NAMES = ("(?P<name>", "(?P<value>")
"""Katib reads the name and the value in the first two groups of a filter."""
ONLY_GO = re.compile(r"\[\[|\[:|&&|--|\|\||~~|\{,|[*+?}]\+|\(\?(?!:)")
"""What Go's regular expressions read in another way than Python's, or not at all."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|.", re.DOTALL)
"""An escape, a set of characters, the start of a group, or another character."""


def pattern_of_filter(text: str) -> str | None:
    """Return the pattern that finds what a filter of Katib finds; None if there is no equal one."""
    if len(text) > LONGEST_MATCH or ONLY_GO.search(text):
        return None
    names = iter(GROUP_NAMES)
    parts = [next(names, "(?:") if part == "(" else part for part in _TOKEN.findall(text)]
    pattern = "".join(parts)
    has_both = next(names, None) is None
    return pattern if has_both and not pattern_error(pattern) else None


def read_collector(collector: Fields, *, is_renamed: bool = False) -> ReportedMetrics:
    """Return how the program reports its metrics; standard output if nothing else can be read.

    `is_renamed`: the metric has another name here, which a filter would not find.
    """
    chosen, source = collector.inner("collector"), collector.inner("source")
    kind = chosen.text("kind") or "StdOut"
    filters = [str(item) for item in source.inner("filter").items("metricsFormat")]
    if set(filters) == {DEFAULT_FILTER}:
        filters = []
    patterns = [] if is_renamed or kind not in {"StdOut", "File"} else _patterns(filters)
    can_read = len(patterns) == len(filters)
    reported = _from_file(source) if kind == "File" and can_read else None
    losses: list[Loss] = []
    if reported is None:
        reported = ReportedMetrics({"source": "stdout"}, None, ())
        if kind == "File":
            losses.append(Loss(f"{source.at('fileSystemPath')}", f"{PRINT} instead of writing this file"))
            source.inner("fileSystemPath").taken |= {"path", "kind"}
    if not can_read:
        why = f"has no equal pattern here; {PRINT}, or write `format: regex` and `patterns`"
        losses.append(Loss(f"{source.at('filter.metricsFormat')}: {show_value(filters)}", why))
    elif patterns and reported.keys.get("format") != "jsonl":
        reported.keys.update(format="regex", patterns=patterns)
    if kind in OTHER_COLLECTORS:
        losses.append(Loss(f"{chosen.at('kind')}: {kind}", OTHER_COLLECTORS[kind]))
    elif kind not in {"StdOut", "File"}:
        losses.append(Loss(f"{chosen.at('kind')}: {kind}", f"is not a collector of Katib; {PRINT}"))
    rest = [*chosen.rest(), *source.rest(), *collector.rest()]
    return ReportedMetrics(reported.keys, reported.file, (*reported.losses, *losses, *rest))


def _patterns(filters: Sequence[str]) -> list[str]:
    """Return the patterns of the filters that have one."""
    return [pattern for text in filters if (pattern := pattern_of_filter(text)) is not None]


def _from_file(source: Fields) -> ReportedMetrics | None:
    """Return a file with lines of text or JSON; None if the path is not a file."""
    place = source.inner("fileSystemPath")
    path, kind, form = place.text("path"), place.text("kind"), place.text("format") or "TEXT"
    if path is None or kind not in {None, "File"} or form not in {"TEXT", "JSON"}:
        return None
    losses = list(place.rest())
    if form == "JSON":
        why = (
            "numbers must be JSON numbers here; Katib also reads numbers in quotes, as hypertune writes them"
        )
        losses.append(Loss(f"{place.at('format')}: JSON", why))
    keys = {"source": "result", "format": "jsonl" if form == "JSON" else "text"}
    return ReportedMetrics(keys, path, tuple(losses))
