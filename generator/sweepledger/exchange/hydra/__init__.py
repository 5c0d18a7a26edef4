"""Hydra's multirun: `hydra.sweeper.params` in its override syntax, for the basic sweeper and for Optuna's."""

from generator.exchange.hydra.reading import read
from generator.exchange.hydra.writing import write

__all__ = ["read", "write"]
