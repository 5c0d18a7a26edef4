"""Where and how a trial says what came of it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class MetricSource(StrEnum):
    """Where a trial leaves its metrics."""

    RESULT = "result"
    """JSON in the file `$SWEEP_RESULT`."""
    STDOUT = "stdout"
    """Lines on standard output."""


class MetricFormat(StrEnum):
    """In which form a trial reports its metrics."""

    JSON = "json"
    """One object in a file."""
    JSONL = "jsonl"
    """An object a line, with its step."""
    TEXT = "text"
    """Lines with `name=value` anywhere in them."""
    LOG = "log"
    """Lines `key,value`."""


class Reduce(StrEnum):
    """Which of a metric's numbers counts where a trial reports more than one."""

    LAST = "last"
    MIN = "min"
    MAX = "max"


USUAL_FORMATS: Mapping[MetricSource, MetricFormat] = MappingProxyType(
    {MetricSource.RESULT: MetricFormat.JSON, MetricSource.STDOUT: MetricFormat.TEXT}
)
"""What is read where nothing else is asked for."""

STREAMS = frozenset({MetricFormat.JSONL, MetricFormat.TEXT})
"""Formats in which a metric may come more than once."""
