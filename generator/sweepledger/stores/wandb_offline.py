"""W&B: an offline run for each trial, which `wandb sync` uploads; a project for each sweep.

A list beside the runs names the complete ones; the folder of an incomplete run is removed and written again.
"""

import math
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from sweepledger.storage import remove_folder, storage_errors
from sweepledger.stores.contents import FinishedTrial, StoreChange, StoreKind, SweepContents, library


def write(contents: SweepContents, place: str) -> StoreChange:
    """Write an offline run for each trial that the folder lacks. Raises ToolError, StorageError."""
    wandb: Any = library("wandb", extra="wandb")
    folder = Path(place)
    ledger = folder / f"{contents.sweep}.complete"
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        known = set(ledger.read_text(encoding="utf-8").split()) if ledger.is_file() else set()
    missing = [trial for trial in contents.trials if trial.id not in known]
    for trial in missing:
        with storage_errors(folder):
            for cut in folder.glob(f"wandb/offline-run-*-{trial.id}"):
                remove_folder(cut)
            _write_run(wandb, contents, trial, folder)
            with ledger.open("a", encoding="utf-8") as file:
                file.write(f"{trial.id}\n")
                file.flush()
                os.fsync(file.fileno())
    return StoreChange(len(missing), len(contents.trials) - len(missing))


def _write_run(wandb: Any, contents: SweepContents, trial: FinishedTrial, folder: Path) -> None:
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,
        save_code=False,
        x_disable_stats=True,
        x_disable_meta=True,
    )
    run = wandb.init(
        mode="offline",
        dir=str(folder),
        project=contents.sweep,
        id=trial.id,
        name=trial.id,
        group=trial.batch,
        tags=[str(trial.status)],
        config={**trial.parameters, "sweepledger": trial.labels},
        settings=settings,
    )
    lines: dict[int, dict[str, float]] = defaultdict(dict)
    for name, points in trial.curves.items():
        for step, value in points:
            lines[step][f"curve/{name}"] = math.nan if value is None else value
    for step in sorted(lines):  # which must grow
        run.log(lines[step], step=step)
    run.summary.update(dict(trial.metrics))
    run.finish(exit_code=0)


STORE = StoreKind("wandb", "wandb", write)
