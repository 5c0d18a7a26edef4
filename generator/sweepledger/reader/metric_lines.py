"""Lines in which a trial reports its objective, and the patterns for them, by the launcher's own functions."""

import math
import re
from re import _parser as parser  # type: ignore[attr-defined]

from sweepledger.reader.launcher_parts import ALL, LONGEST_MATCH, Refused, Stream, count_ways
from sweepledger.structs.metric import Metric, MetricFormat

GROUPS = frozenset({"name", "value", "step"})
WITHOUT_LINES = frozenset({MetricFormat.JSON, MetricFormat.TENSORBOARD})


def objective_points(metric: Metric, output: bytes) -> tuple[tuple[int, float], ...]:
    """Return the finite values of the compared metric by step, from complete lines of a running trial."""
    # Where no line says anything, lines for people may.
    form = MetricFormat.TEXT if metric.format is None or metric.format in WITHOUT_LINES else metric.format
    stream = Stream({"name": metric.name, "reduce": "last", **metric.reported, "format": str(form)})
    stream.feed(output)
    points = stream.gathered.curve.points
    return tuple((step, value) for (_, step), value in points if math.isfinite(value))


def pattern_error(text: str) -> str:
    """Return the error of a pattern that is invalid, lacks its groups, or is slow on some line; else an empty text."""
    try:
        if len(text) > LONGEST_MATCH:
            return f"must have at most {LONGEST_MATCH} characters ({len(text)})"
        groups = re.compile(text, re.ASCII).groupindex
        if "value" not in groups or not groups.keys() <= GROUPS:
            return "must have the group value, and besides it only name and step"
        count_ways(parser.parse(text, re.ASCII), [0] * len(ALL))
    except Refused as refused:
        return str(refused).partition("a pattern ")[2]
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        return f"must be a regular expression ({error})"
    return ""
