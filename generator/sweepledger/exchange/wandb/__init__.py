"""W&B's sweep configuration, all of its distributions."""

from sweepledger.exchange.wandb.reader import read
from sweepledger.exchange.wandb.writer import write
