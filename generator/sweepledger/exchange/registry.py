"""READERS and WRITERS by format; a format's module is imported when it is first used.

Nothing in this package touches a disk, expands a sweep or checks a spec: `commands` does.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from sweepledger.exchange.conversion import Exported, Imported
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

IMPORTS: Mapping[str, str] = {
    "wandb": "a sweep file of W&B: `method` and `parameters`",
    "katib": "an Experiment of Katib (kubeflow.org/v1beta1)",
    "optimization-job": "an OptimizationJob of Kubeflow Trainer (trainer.kubeflow.org/v1alpha1)",
    "hydra": "a config of Hydra with `hydra.sweeper.params`, or its multirun.yaml",
    "optuna": "a storage of Optuna: an SQLite file or a journal",
    "ray": "a Python file with one dict of calls such as tune.uniform(0, 1)",
    "nvidia": "a list of `hyperparam_set:` items",
    "csv": "a header with names, and a configuration on each line",
    "jsonl": "a JSON object with the values of a configuration on each line",
}
"""What is read of each format, in the order of help texts; each is a module or a folder of this package."""
EXPORTS = ("wandb", "katib", "optimization-job", "hydra", "optuna", "nvidia", "csv", "jsonl")
"""Formats that are written."""


def _module(format_name: str) -> Any:
    return import_module(f"sweepledger.exchange.{format_name.replace('-', '_')}")


def _read(format_name: str, content: bytes, *, name: str) -> Imported:
    """Return a spec of that name for another tool's file. Raises ForeignError for other files."""
    imported: Imported = _module(format_name).read(content, name=name)
    return imported


def _write(format_name: str, sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Return the file of another tool; the assignments are the sweep's configurations in order."""
    exported: Exported = _module(format_name).write(sweep, assignments)
    return exported


READERS: Mapping[str, Callable[..., Imported]] = {name: partial(_read, name) for name in IMPORTS}
WRITERS: Mapping[str, Callable[..., Exported]] = {name: partial(_write, name) for name in EXPORTS}
