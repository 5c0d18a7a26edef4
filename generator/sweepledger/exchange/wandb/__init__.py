"""W&B's sweep configuration, all of its distributions."""

from sweepledger.exchange.conversion import ForeignFormat
from sweepledger.exchange.wandb.reader import read
from sweepledger.exchange.wandb.writer import write

FORMAT = ForeignFormat(
    "wandb", "a sweep file of W&B: `method` and `parameters`", read=read, write=write, is_search=True
)
