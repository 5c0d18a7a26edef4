"""Parquet: trials.parquet and curves.parquet in a folder for each sweep, replaced as a whole."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweepledger.formats import parquet
from sweepledger.safe_open import read_regular
from sweepledger.storage import storage_errors, write_file
from sweepledger.stores.contents import StoreChange, StoreKind, SweepContents


def write(contents: SweepContents, place: str) -> StoreChange:
    """Write both tables; equal results give equal bytes. Raises ToolError, StorageError."""
    folder = Path(place) / contents.sweep
    tables = {"trials.parquet": _trials(contents), "curves.parquet": _curves(contents)}
    encoded = {name: parquet.write(columns) for name, columns in tables.items()}
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        present = {name: read_regular(folder / name, len(content) + 1) for name, content in encoded.items()}
    if present == encoded:
        return StoreChange(0, len(contents.trials))
    for name, content in encoded.items():
        write_file(folder / name, content)
    return StoreChange(len(contents.trials), 0)


def _trials(contents: SweepContents) -> dict[str, Sequence[Any]]:
    trials = contents.trials
    parameters = dict.fromkeys(name for trial in trials for name in trial.parameters)
    metrics = dict.fromkeys(name for trial in trials for name in trial.metrics)
    return {
        "trial": [trial.id for trial in trials],
        **{name: [getattr(trial, name) for trial in trials] for name in ("batch", "replicate", "seed")},
        "status": [str(trial.status) for trial in trials],
        **{f"params.{name}": [trial.parameters.get(name) for trial in trials] for name in parameters},
        **{f"metrics.{name}": [trial.metrics.get(name) for trial in trials] for name in metrics},
        **{
            name: [getattr(trial, name) for trial in trials]
            for name in ("started", "finished", "code", "ran")
        },
    }


def _curves(contents: SweepContents) -> dict[str, Sequence[Any]]:
    columns: dict[str, list[Any]] = {"trial": [], "metric": [], "step": [], "value": []}
    for trial in contents.trials:
        for metric, points in trial.curves.items():
            columns["trial"] += [trial.id] * len(points)
            columns["metric"] += [metric] * len(points)
            columns["step"] += [step for step, _ in points]
            columns["value"] += [math.nan if value is None else value for _, value in points]
    return {**columns}


STORE = StoreKind("parquet", "parquet", write)
