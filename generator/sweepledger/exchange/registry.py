"""The formats by name: those of this package, and those that other packages provide as entry points.

Nothing in this package expands a sweep or checks a spec: `verbs` do.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from sweepledger.exchange.conversion import ForeignFormat
from sweepledger.extensions import extended

MODULES = ("wandb", "katib", "optimization_job", "hydra", "optuna", "ray", "nvidia", "csv", "jsonl")
"""Modules of this package, each with a `FORMAT`, in the order of help texts."""
GROUP = "sweepledger.formats"
"""Entry points of other packages."""


@cache
def formats() -> Mapping[str, ForeignFormat]:
    """Return all formats by name."""
    own = [import_module(f"sweepledger.exchange.{module}").FORMAT for module in MODULES]
    return extended(
        own, GROUP, lambda name, refuse: ForeignFormat(name, "not loaded", read=refuse, write=refuse)
    )
