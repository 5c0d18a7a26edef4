"""Katib's metrics collectors as source and format of a metric."""

from dataclasses import dataclass

from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.fields import Fields, show_value

DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
"""Katib's filter of lines `name=value`, which the format `text` finds, too."""

PRINT = "print lines `name=value`"
OTHER_COLLECTORS = {
    "TensorFlowEvent": f"event files of TensorBoard are not read here; {PRINT} as well",
    "PrometheusMetric": f"a trial serves no metrics here; {PRINT}",
    "Custom": f"a collector of your own does not run here; {PRINT}",
    "Push": f"the program reports to Katib's database; {PRINT}",
    "None": f"Katib reads no metrics; {PRINT}",
}


@dataclass(frozen=True, slots=True)
class ReportedMetrics:
    """How a program reports its metrics."""

    keys: dict[str, str]
    """The keys `source` and `format`."""
    file: str | None
    """The file that the program writes; None for standard output."""
    losses: tuple[Loss, ...]


def read_collector(collector: Fields) -> ReportedMetrics:
    """Return how the program reports its metrics; standard output if nothing else can be read."""
    chosen, source = collector.inner("collector"), collector.inner("source")
    kind = chosen.text("kind") or "StdOut"
    filters = [str(item) for item in source.inner("filter").items("metricsFormat")]
    own_filters = [text for text in filters if text != DEFAULT_FILTER]
    reported = _from_file(source) if kind == "File" and not own_filters else None
    losses: list[Loss] = []
    if reported is None:
        reported = ReportedMetrics({"source": "stdout"}, None, ())
        if kind == "File":
            losses.append(Loss(f"{source.at('fileSystemPath')}", f"{PRINT} instead of writing this file"))
            source.inner("fileSystemPath").taken |= {"path", "kind"}
    if own_filters:
        why = f"a filter of your own is not a format here; {PRINT}"
        losses.append(Loss(f"{source.at('filter.metricsFormat')}: {show_value(own_filters)}", why))
    if kind in OTHER_COLLECTORS:
        losses.append(Loss(f"{chosen.at('kind')}: {kind}", OTHER_COLLECTORS[kind]))
    elif kind not in {"StdOut", "File"}:
        losses.append(Loss(f"{chosen.at('kind')}: {kind}", f"is not a collector of Katib; {PRINT}"))
    rest = [*chosen.rest(), *source.rest(), *collector.rest()]
    return ReportedMetrics(reported.keys, reported.file, (*reported.losses, *losses, *rest))


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
