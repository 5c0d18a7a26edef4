"""The stores by name; a store's module is imported when it is first used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from sweepledger.stores.contents import StoreChange, SweepContents


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of store."""

    module: str
    default: str
    """The place if none is named, relative to the current folder."""
    file: str = ""
    """The only file that is written in that folder, if it is one."""

    def write(self, contents: SweepContents, place: str) -> StoreChange:
        """Write what the place lacks: killed at any moment and repeated, each trial is there once.

        Raises ToolError, StorageError.
        """
        store: Callable[[SweepContents, str], StoreChange] = import_module(
            f"sweepledger.stores.{self.module}"
        ).write
        return store(contents, place)

    def version(self, sweep: str, place: str) -> str | None:
        """Return which results of a sweep a server has; None if it may lack some, and for files. Raises ToolError."""
        version: Callable[[str, str], str | None] | None
        version = getattr(import_module(f"sweepledger.stores.{self.module}"), "version", None)
        return None if version is None else version(sweep, place)


STORES: Mapping[str, StoreKind] = {
    "mlflow": StoreKind("mlflow_tracking", "sqlite:///mlflow.db"),
    "optuna": StoreKind("optuna_storage", "sqlite:///optuna.db"),
    "wandb": StoreKind("wandb_offline", "wandb"),
    "tensorboard": StoreKind("tensorboard_events", "runs"),
    "parquet": StoreKind("parquet_files", "parquet"),
    "model-card": StoreKind("model_card", ".", "README.md"),
}
