"""The stores by name: those of this package, and those that other packages provide as entry points."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from sweepledger.extensions import extended
from sweepledger.stores.contents import StoreKind

MODULES = (
    *("mlflow_tracking", "optuna_storage", "wandb_offline", "tensorboard_events", "parquet_files"),
    "model_card",
)
"""Modules of this package, each with a `STORE`, in the order of help texts."""
GROUP = "sweepledger.stores"
"""Entry points of other packages."""


@cache
def stores() -> Mapping[str, StoreKind]:
    """Return all stores by name."""
    own = [import_module(f"sweepledger.stores.{module}").STORE for module in MODULES]
    return extended(own, GROUP, lambda name, refuse: StoreKind(name, ".", refuse, refuse))
