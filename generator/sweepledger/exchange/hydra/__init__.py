"""Hydra's multirun: `hydra.sweeper.params` in its override syntax, for the basic sweeper and for Optuna's."""

from sweepledger.exchange.conversion import ForeignFormat
from sweepledger.exchange.hydra.reader import read
from sweepledger.exchange.hydra.writer import write

FORMAT = ForeignFormat(
    "hydra", "a config of Hydra with `hydra.sweeper.params`, or its multirun.yaml", read=read, write=write
)
