"""W&B's sweep configuration, all of its distributions."""

from generator.exchange.wandb.reading import read
from generator.exchange.wandb.writing import write

__all__ = ["read", "write"]
