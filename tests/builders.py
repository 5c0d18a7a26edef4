"""Values that are valid by default; a test changes the one thing it is about."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec.structs import replace

from sweepledger.results.outcomes import BatchRecords
from sweepledger.structs.batch import BatchLock, SpecFile
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.program import Code, Data, Program
from sweepledger.structs.record import ExpectedTrial, Record, Status
from sweepledger.structs.run_config import RunConfig, Shape
from sweepledger.structs.values import Value, digest

T = TypeVar("T")
TREE = "c0de" * 10
DATA = "sha256:" + "da7a" * 16


def present(value: T | None) -> T:
    """Return a value that must not be None."""
    assert value is not None
    return value


def a_program(**changes: Any) -> Program:
    return Program(
        **{
            "image": "local",
            "command": ("python", "-m", "trainer", "mnist", "${args}"),
            "code": Code("trainer", TREE),
            "data": Data("mnist", DATA),
            **changes,
        }
    )


def a_lock(**changes: Any) -> BatchLock:
    """Make a lock; changes of `run` may be given by their own names."""
    run = {key: changes.pop(key) for key in ("pool", "pack", "retries") if key in changes}
    return BatchLock(
        **{
            "name": "mnist-grid-b1-3f9a1c2e",
            "digest": "3f9a1c2e" * 8,
            "sweep": "mnist-grid",
            "number": 1,
            "parent": None,
            "generated": "by a test",
            "spec": SpecFile("sweeps/mnist-grid.yaml", "sha256:" + "5bec" * 16),
            "shape": Shape.INDEXED,
            "trials": 2,
            "metric": Metric("test_accuracy", Goal.MAXIMIZE),
            "program": a_program(),
            "run": RunConfig(**{"retries": 1, **run}),
            "generator": "0.1.0",
            "bases": (),
            "columns": {},
            "files": {},
            "blobs": {},
            **changes,
        }
    )


def an_expected_trial(index: int = 0, **changes: Any) -> ExpectedTrial:
    """A row of the table; its id and its digest follow from its index, its values by default too."""
    assignment: dict[str, Value] = {"learning_rate": 0.1, "batch_size": 32 * 2**index}
    return ExpectedTrial(
        **{
            "trial": f"t{index:011x}",
            "row": digest(["row", index]),
            "index": index,
            "assignment": MappingProxyType(assignment),
            **changes,
        }
    )


def a_record(index: int = 0, **changes: Any) -> Record:
    """A record of `an_expected_trial(index)` in `a_lock()`."""
    return Record(
        **{
            "trial": f"t{index:011x}",
            "row": digest(["row", index]),
            "batch": "mnist-grid-b1-3f9a1c2e",
            "index": index,
            "uid": f"pod-{index}",
            "attempt": 1,
            "disruptions": 0,
            "status": Status.OK,
            "reason": None if changes.get("status", Status.OK) is Status.OK else "exit-1",
            "metrics": MappingProxyType({"test_accuracy": 0.94, "loss": 0.2}),
            "seconds": 3.25,
            "started": "2026-01-01T00:00:00Z",
            "finished": "2026-01-01T00:00:03Z",
            "ran": "process",
            "code": TREE,
            "data": DATA,
            "seed": 0,
            "node": "here",
            "environment": None,
            "details": MappingProxyType({"device": "cpu", "versions": {"torch": "2.9.0"}}),
            **changes,
        }
    )


def a_grid(
    parameters: Mapping[str, Sequence[Value]],
    score: Callable[[Mapping[str, Value]], float | None],
    **lock: Any,
) -> BatchRecords:
    """A batch of all combinations: each trial ok with its score, or missing where that is None."""
    held = a_lock(**lock)
    expected, records = [], []
    for index, values in enumerate(itertools.product(*parameters.values())):
        assignment = dict(zip(parameters, values, strict=True))
        trial = an_expected_trial(index, assignment=MappingProxyType(assignment))
        expected.append(trial)
        objective = score(assignment)
        if objective is not None:
            metrics = MappingProxyType({held.metric.name: objective})
            record = a_record(index, batch=held.name, code=held.program.code.tree, metrics=metrics)
            records.append(record)
    return BatchRecords(replace(held, trials=len(expected)), tuple(expected), tuple(records))
