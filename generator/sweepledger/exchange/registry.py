"""READERS and WRITERS by format; a format's module is imported when it is first used.

Nothing in this package touches a disk, expands a sweep or checks a spec: `commands` does.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from sweepledger.exchange.conversion import Exported, Imported, Reader, Writer
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


def _reader(format_name: str) -> Reader:
    def read(content: bytes, *, name: str) -> Imported:
        reader: Reader = _module(format_name).read
        return reader(content, name=name)

    return read


def _writer(format_name: str) -> Writer:
    def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
        writer: Writer = _module(format_name).write
        return writer(sweep, assignments)

    return write


READERS: Mapping[str, Reader] = {name: _reader(name) for name in IMPORTS}
WRITERS: Mapping[str, Writer] = {name: _writer(name) for name in EXPORTS}
