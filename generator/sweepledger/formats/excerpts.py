"""What a story tells of a `summary.csv` or a `batch.yaml`, and nothing else: thousands of them are read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from generator.formats import yaml
from generator.formats.summary import METRIC_PREFIX, text_cell
from generator.formats.table import CELL
from generator.structs.front import unbeaten
from generator.structs.program import Program
from generator.structs.record import Status
from generator.structs.sweep import Goal, Metric


@dataclass(frozen=True, slots=True)
class Glance:
    """Counts, and the best of the trials that are ok."""

    trials: int
    ok: int
    trial: str | None
    """The best one, ties by the smaller id; None where nothing can be ranked."""
    value: float | None
    seconds: float = 0.0
    """What the attempts that count took, one after the other."""
    front: int = 0
    """Of several metrics: how many trials no other beats in all of them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a batch's lock says that later results are judged by."""

    trials: int
    metric: Metric
    program: str
    """Its digest, 64 hex digits."""
    round: str = ""
    """Of a search: its number and the method that drew it."""
    others: tuple[Metric, ...] = ()
    """Of a search by several metrics, those after the first."""


def glance_at_lock(content: bytes) -> Asked:
    """Read some members of a lock, as it is written by this program. Raises ValueError for what is none."""
    found = {block[1]: block[0] for block in _BLOCK.finditer(content.decode())}
    try:
        trials = int(found["trials"].removeprefix("trials:"))
        others = _others(found.get("other_metrics", ""))
        return Asked(trials, _metric(found["metric"]), _program(found["program"]), _round(found), others)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a lock file of version 1: {error!r}") from error


@lru_cache(maxsize=1024)
def _metric(text: str) -> Metric:
    data = yaml.load(text)["metric"]
    if not isinstance(data["name"], str):
        raise ValueError(f"the metric's name must be text, but got {data['name']!r}")  # noqa: TRY004
    return Metric(data["name"], Goal(data["goal"]))


@lru_cache(maxsize=1024)
def _others(text: str) -> tuple[Metric, ...]:
    listed = yaml.load(text)["other_metrics"] if text else {}
    return tuple(Metric(str(name), Goal(goal)) for name, goal in listed.items())


@lru_cache(maxsize=1024)
def _program(text: str) -> str:
    """Take the digest of a program; most batches have that of the one before."""
    return Program.from_data(yaml.load(text)["program"]).digest


def _round(found: dict[str, str]) -> str:
    number, method = (found.get(key, "").partition(": ")[2].strip().strip('"') for key in ("round", "method"))
    return f"round {number}, {method}" if number else ""


_BLOCK = re.compile(r"^(trials|metric|other_metrics|program|round|method):.*\n(?:[ -].*\n)*", re.MULTILINE)
"""A member at the top with all that is indented below it."""


def glance_at_summary(text: str, by: Asked | None) -> Glance:
    """Read counts, and the best trial of the program that was asked for last. Raises ValueError."""
    head, *rows = text.split("\n")
    if not rows or rows.pop() != "":
        raise ValueError("the summary must end with a line end")
    names = _cells(head)
    if not {"trial", "status", "program"}.issubset(names):
        raise ValueError(f"line 1: not the columns of a summary: {head[:200]!r}")
    columns = _columns(names, by)
    trial, status, program = (names.index(name) for name in ("trial", "status", "program"))
    sign = -1.0 if by and by.metric.goal is Goal.MAXIMIZE else 1.0
    took = names.index("seconds") if "seconds" in names else None
    ok, spent, ranked = 0, 0.0, list[tuple[str, tuple[float, ...]]]()
    for number, row in enumerate(rows, start=2):
        cells = _cells(row)
        if len(cells) != len(names):
            raise ValueError(f"line {number}: must have {len(names)} cells, but got {len(cells)}")
        if took is not None and cells[took]:
            spent += float(cells[took])
        if cells[status] != Status.OK:
            continue
        ok += 1
        if by and columns and cells[columns[0]] and cells[program] == by.program:
            values = tuple(float(cells[column]) for column in columns if cells[column])
            ranked.append((cells[trial], values))
    value, best = min(((sign * values[0], one) for one, values in ranked), default=(None, None))
    seen = Glance(len(rows), ok, best, None if value is None else sign * value, spent)
    return replace(seen, front=_front(by, ranked)) if by and by.others else seen


def _columns(names: Sequence[str], by: Asked | None) -> list[int]:
    """Find the columns of the metrics that are there, the first one first; none without that."""
    wanted = [text_cell(METRIC_PREFIX + one.name) for one in (by.metric, *by.others)] if by else []
    return [names.index(name) for name in wanted if name in names] if {*wanted[:1]} & {*names} else []


def _front(by: Asked, ranked: Iterable[tuple[str, tuple[float, ...]]]) -> int:
    metrics = (by.metric, *by.others)
    return len(unbeaten([values for _, values in ranked if len(values) == len(metrics)], metrics))


def _cells(line: str) -> list[str]:
    """Part a line; only where something is quoted can a comma be anything else."""
    if '"' not in line:
        return line.split(",")
    return [cell[0].removeprefix(",") for cell in CELL.finditer(line)]
