"""Batches of a search for tests: with curves, rounds, parents, and trials that were ended early."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from msgspec import structs

from sweepledger.results.outcomes import BatchRecords
from sweepledger.structs.record import Status
from tests.builders import a_grid


def with_curves(curves: Sequence[Sequence[float | None]], **lock: Any) -> BatchRecords:
    """A trial a curve, ok with its last value; its seconds are its steps."""
    batch = a_grid({"a": list(range(len(curves)))}, lambda _: 0.0, **lock)
    metric = batch.lock.metric.name
    records = tuple(
        replace(
            record,
            metrics=MappingProxyType({metric: curve[-1]}),
            curves=MappingProxyType({metric: tuple(enumerate(curve, start=1))}),
            seconds=float(len(curve)),
            finished=f"2026-01-01T00:00:{record.index:02d}Z",
        )
        for record, curve in zip(batch.records, curves, strict=True)
    )
    return replace(batch, records=records)


def ended(batch: BatchRecords, rules: Mapping[int, str]) -> BatchRecords:
    """End some of its trials early, by row and rule."""
    records = []
    for record in batch.records:
        rule = rules.get(record.index)
        early = {"stopped_early": {"rule": rule, "step": max(map(len, record.curves.values()))}}
        if rule in {"patience", "target"}:
            records.append(replace(record, details=MappingProxyType(early)))
        elif rule is not None:
            records.append(replace(record, status=Status.PRUNED, reason=rule))
        else:
            records.append(record)
    return replace(batch, records=tuple(records))


def a_promotion() -> tuple[BatchRecords, BatchRecords]:
    """The same search, in which the second round continues at the step where the first ended."""
    first, second = a_search()
    records = tuple(
        replace(one, curves=MappingProxyType({name: tuple(point for point in points if point[0] > 3)}))
        for one in second.records
        for name, points in one.curves.items()
    )
    return first, replace(second, records=records)


def a_search() -> tuple[BatchRecords, BatchRecords]:
    """Two rounds: six trials of three steps, of which the second goes on with two of them to nine."""
    first = with_curves([[0.1 * row, 0.1 * row + 0.05, 0.1 * row + 0.1] for row in range(6)])
    first = replace(first, lock=structs.replace(first.lock, round=1, engine="optuna 5.0.0"))
    lock = {"number": 2, "name": "mnist-grid-b2-00000000"}
    second = with_curves([[0.5 + 0.01 * step for step in range(9)], [0.6] * 9], **lock)
    parents = {0: first.expected[4].trial, 1: first.expected[5].trial}
    second = replace(
        second, lock=structs.replace(second.lock, round=2, engine="optuna 5.0.0", parents=parents)
    )
    moved = tuple(replace(one, trial=f"t{9 + one.index:011x}") for one in second.expected)
    records = tuple(replace(one, trial=f"t{9 + one.index:011x}") for one in second.records)
    return first, replace(second, expected=moved, records=records)
