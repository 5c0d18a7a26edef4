"""Partial reads of `batch.yaml`, `summary.csv` and manifests, for reading thousands of files.

They rely on the exact form in which this program writes these files.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sweepledger.formats import json, yaml
from sweepledger.formats.csv_cells import split_raw
from sweepledger.formats.summary_csv import METRIC_PREFIX, text_cell
from sweepledger.structs.metric import Goal, Metric, pareto_indices
from sweepledger.structs.program import Program
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import Resources, RunConfig, Shape


@dataclass(frozen=True, slots=True)
class SummaryExcerpt:
    """Counts of a summary, and its best trial."""

    trials: int
    ok: int
    trial: str | None
    """Id of the best trial, the smaller id of equal ones; None if no trial can be ranked."""
    value: float | None
    seconds: float = 0.0
    """Sum of the durations of the attempts that count."""
    front: int = 0
    """Size of the Pareto front, for several metrics."""


@dataclass(frozen=True, slots=True)
class LockExcerpt:
    """The fields of a batch lock that later results are evaluated with."""

    trials: int
    metric: Metric
    program: str
    """Digest of the program, 64 hex digits."""
    round: str = ""
    """Number and method of a search's round; empty for other batches."""
    others: tuple[Metric, ...] = ()
    """Metrics of a multi-objective search after the first."""


def read_blob_ids(content: bytes) -> Mapping[str, str]:
    """Return git's ids of the files that the archive may leave out, from a lock that this program wrote."""
    listed = _BLOBS.search(content)
    return {name.decode(): blob.decode() for name, blob in _BLOB.findall(listed[1])} if listed else {}


_BLOBS = re.compile(rb'^blobs:\n((?:  [a-z0-9.-]+: "[0-9a-f]{40}"\n)+)\Z', re.MULTILINE)
_BLOB = re.compile(rb'  ([a-z0-9.-]+): "([0-9a-f]{40})"\n')


def read_lock_excerpt(content: bytes) -> LockExcerpt:
    """Return some fields of a lock that this program wrote. Raises ValueError."""
    blocks = {block[1]: block[0] for block in _BLOCK.finditer(content.decode())}
    try:
        trials = int(blocks["trials"].removeprefix("trials:"))
        others = _others(blocks.get("other_metrics", ""))
        return LockExcerpt(
            trials, _metric(blocks["metric"]), _program(blocks["program"]), _round(blocks), others
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a lock file: {error!r}") from error


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
    """Return the digest of a program; most batches have that of the batch before."""
    return Program.from_data(yaml.load(text)["program"]).digest


def _round(blocks: dict[str, str]) -> str:
    number, method = (
        blocks.get(key, "").partition(": ")[2].strip().strip('"') for key in ("round", "method")
    )
    return f"round {number}, {method}" if number else ""


_BLOCK = re.compile(r"^(trials|metric|other_metrics|program|round|method):.*\n(?:[ -].*\n)*", re.MULTILINE)
"""A top-level key with everything that is indented below it."""


def read_summary_excerpt(text: str, lock: LockExcerpt | None) -> SummaryExcerpt:
    """Return counts, and the best trial of the newest batch's program. Raises ValueError."""
    head, *rows = text.split("\n")
    if not rows or rows.pop() != "":
        raise ValueError("the summary must end with a line end")
    names = split_raw(head)
    if not {"trial", "status", "program", "seconds"}.issubset(names):
        raise ValueError(f"line 1: not the columns of a summary: {head[:200]!r}")
    # The columns of the metrics, the objective first; empty without the objective.
    metrics = (
        [text_cell(METRIC_PREFIX + metric.name) for metric in (lock.metric, *lock.others)] if lock else []
    )
    columns = [names.index(name) for name in metrics if name in names] if {*metrics[:1]} & {*names} else []
    trial, status, program, took = map(names.index, ("trial", "status", "program", "seconds"))
    sign = -1.0 if lock and lock.metric.goal is Goal.MAXIMIZE else 1.0
    ok, spent, ranked = 0, 0.0, list[tuple[str, tuple[float, ...]]]()
    for number, row in enumerate(rows, start=2):
        cells = split_raw(row)
        if len(cells) != len(names):
            raise ValueError(f"line {number}: must have {len(names)} cells, but got {len(cells)}")
        if cells[took]:
            spent += float(cells[took])
        if cells[status] != Status.OK:
            continue
        ok += 1
        if lock and columns and cells[columns[0]] and cells[program] == lock.program:
            values = tuple(float(cells[column]) for column in columns if cells[column])
            ranked.append((cells[trial], values))
    value, best = min(((sign * values[0], trial_id) for trial_id, values in ranked), default=(None, None))
    excerpt = SummaryExcerpt(len(rows), ok, best, None if value is None else sign * value, spent)
    return replace(excerpt, front=_front_size(lock, ranked)) if lock and lock.others else excerpt


def _front_size(lock: LockExcerpt, ranked: Iterable[tuple[str, tuple[float, ...]]]) -> int:
    metrics = (lock.metric, *lock.others)
    return len(pareto_indices([values for _, values in ranked if len(values) == len(metrics)], metrics))


_REQUESTS = re.compile(r'^( +)requests:\n((?:\1  \S+: ".*"\n)+)', re.MULTILINE)
_AMOUNT = re.compile(r'^ +(\S+): "(.*)"$', re.MULTILINE)
_PARALLELISM = re.compile(r"^  parallelism: (\d+)$", re.MULTILINE)
_NODE_COUNTS = {
    Shape.TRAIN_JOB: re.compile(r"^ +numNodes: (\d+)$", re.MULTILINE),
    Shape.JOB_SET: re.compile(r"^ +parallelism: (\d+)$", re.MULTILINE),
}
"""Where a manifest states the number of pods of a trial; other shapes have replicas per role."""
_REPLICAS = re.compile(r"^ +replicas: (\d+)$", re.MULTILINE)
_OTHERS = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that are not GPUs; GPU resources have different names in different pools."""


def read_run_config(manifests: bytes, launch: bytes, shape: Shape, *, trials: int) -> RunConfig | None:
    """Read resources, pods, parallelism and timeout of a batch; None where they cannot be read."""
    text = manifests.decode(errors="replace")
    # All trials are equal in what is read. A separator follows the banner only before several objects.
    start = max(text.find(DOCUMENT), 0)
    end = text.find(DOCUMENT, start + 1)
    first = text[start:] if end < 0 else text[start : end + 1]
    amounts = [dict(_AMOUNT.findall(match[2])) for match in _REQUESTS.finditer(first)]
    try:
        trial = amounts[0]
        gpus = sum(int(amount) for name, amount in trial.items() if name not in _OTHERS)
        return RunConfig(
            resources=Resources(trial["cpu"], trial["memory"], gpus),
            parallelism=int(_PARALLELISM.findall(text)[0]) if shape is Shape.INDEXED else trials,
            nodes=_node_count(first, shape),
            timeout_seconds=int(json.load(launch)["timeout_seconds"]),
        )
    except (IndexError, KeyError, TypeError, ValueError):
        return None


DOCUMENT = "\n---\n"


def _node_count(first: str, shape: Shape) -> int:
    if not shape.is_distributed:
        return 1
    if shape in _NODE_COUNTS:
        return int(_NODE_COUNTS[shape].findall(first)[0])
    return sum(map(int, _REPLICAS.findall(first)))
