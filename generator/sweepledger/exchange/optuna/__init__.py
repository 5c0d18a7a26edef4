"""Optuna: the storage of a study is read, and a script that searches the same space is written."""

from sweepledger.exchange.optuna.reader import read
from sweepledger.exchange.optuna.writer import write
