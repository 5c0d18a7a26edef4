"""Lines in which a trial reports its objective, read while it runs. What counts is what the launcher reads at the end.

The same lines give the same points as in the launcher, which cannot be imported.
"""

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sweepledger.structs.metric import LONGEST_MATCH, Metric, MetricFormat

LONGEST_LINE = 64 * 1024
LARGEST_STEP = 2**53
_NAME = r"[A-Za-z][A-Za-z0-9_./@-]{0,62}"
_DECIMAL = (
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
_GROUPS = "'\u2019\u00a0\u2009\u202f"
"""What people put between groups of digits."""
_TEXT = re.compile(
    rf"(?<![\w./@|-])({_NAME})\s*=\s*({_DECIMAL})(?![{_GROUPS}][0-9])"
    r"(?=\.?(?:[\s;%|)\]}\"'(\[\x1b]|[,:](?![0-9])|$))"
)
_TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
)
_MORE_OF_NUMBER = re.compile(
    rf"\d|[._^\u00d7{_GROUPS}]\d|[xXoObB][0-9a-fA-F]|[eEdD][+-]?[0-9]|[kKMGT]i?B?(?!\w)"
)
_MORE_OF_WHOLE = re.compile("[,/][0-9]")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
"""Of `1.234,5`, if a comma and the rest follow."""
_REST_OF_THOUSANDS = re.compile(r",[0-9]+(?![.0-9])")
_LESS_OF_NUMBER = re.compile(rf"\d(?:[.,_/^\u00d7{_GROUPS}]|\.?[eEdD][+-]?)?$|(?<![0-9])0[xXoObB]$")
_NUMBER = re.compile(_DECIMAL)

Members = Mapping[str, Any]


def objective_points(metric: Metric, output: bytes) -> tuple[tuple[int, float], ...]:
    """Return the finite values of the compared metric by step, from complete lines; without a step they are counted."""
    return tuple((step, value) for step, value in _points(metric, output) if math.isfinite(value))


def _points(metric: Metric, output: bytes) -> Iterator[tuple[int, float]]:
    members, form = _reader(metric), metric.format or MetricFormat.TEXT
    count = 0
    for line in output.split(b"\n")[:-1]:
        if not line.strip() or len(line) > LONGEST_LINE:
            continue
        try:
            found = members(_TERMINAL_CODES.sub("", line.decode(errors="replace")))
        except (ValueError, RecursionError, csv.Error):
            continue
        value = found.get(metric.of_curve)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        step = None if metric.name == "step" else _whole(found.get("step"))
        count += 1
        yield count if step is None or form is MetricFormat.LOG else step, float(value)


def _reader(metric: Metric) -> Callable[[str], Members]:
    match metric.format:
        case MetricFormat.JSONL:
            return _json_members
        case MetricFormat.LOG:
            return _log_members
        case MetricFormat.CSV:
            return _CsvReader().members
        case MetricFormat.REGEX:
            return _PatternReader(metric).members
        case _:
            return lambda line: {name: float(value) for name, value in _TEXT.findall(line)}


def _whole(step: object) -> int | None:
    if isinstance(step, bool) or not isinstance(step, int | float) or not math.isfinite(step):
        return None
    return int(step) if 0 <= step <= LARGEST_STEP and step == int(step) else None


def _number_or_text(text: str) -> float | str:
    return float(text) if _NUMBER.fullmatch(text) else text


def _json_members(line: str) -> Members:
    data = json.loads(line)
    return data if isinstance(data, dict) else {}


def _log_members(line: str) -> Members:
    key, _, value = line.strip().rpartition(",")
    return {"_".join(key.split()): _number_or_text(value.strip())}


class _CsvReader:
    """Reads the rows of one table, of which the first is the header."""

    def __init__(self) -> None:
        self._header: list[str] = []

    def members(self, line: str) -> Members:
        (cells,) = csv.reader([line.rstrip("\r").lstrip("\ufeff")], strict=True)
        if not self._header:
            self._header = [name.strip() for name in cells]
            return {}
        named = zip(self._header, cells, strict=True)
        return {name: _number_or_text(cell.strip()) for name, cell in named if cell.strip()}


class _PatternReader:
    """Finds what the patterns of a metric match."""

    def __init__(self, metric: Metric) -> None:
        self._name = metric.name
        self._patterns = [re.compile(pattern, re.ASCII) for pattern in metric.patterns]

    def members(self, line: str) -> Members:
        found: dict[str, Any] = {}
        for piece in line.split("\r"):  # progress bars
            for pattern in self._patterns:
                for match in pattern.finditer(piece[:LONGEST_MATCH]):
                    groups = match.groupdict()
                    is_cut = match.end() == LONGEST_MATCH < len(piece)
                    is_number = _NUMBER.fullmatch(groups["value"] or "") is not None
                    if is_number and not is_cut and not _is_part(match):
                        found[groups.get("name") or self._name] = float(groups["value"])
                        if groups.get("step"):
                            found["step"] = _number_or_text(groups["step"])
        return found


def _is_part(match: re.Match[str]) -> bool:
    """Return whether the value of a match is only a part of a number, as far as the pattern itself does not say so."""
    start, end = match.span("value")
    before = match.string[:start] if start == match.start() else ""
    after = match.string[end:LONGEST_MATCH] if end == match.end() else ""
    is_whole = match["value"].lstrip("+-").isdigit()
    return bool(
        _MORE_OF_NUMBER.match(after)
        or (is_whole and _MORE_OF_WHOLE.match(after))
        or (_THOUSANDS.fullmatch(match["value"]) and _REST_OF_THOUSANDS.match(after))
        or _LESS_OF_NUMBER.search(before)
    )
