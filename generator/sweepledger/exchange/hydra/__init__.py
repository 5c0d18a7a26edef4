"""Hydra's multirun: `hydra.sweeper.params` in its override syntax, for the basic sweeper and for Optuna's."""

from sweepledger.exchange.hydra.reader import read
from sweepledger.exchange.hydra.writer import write
