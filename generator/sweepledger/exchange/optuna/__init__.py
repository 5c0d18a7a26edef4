"""Optuna: the storage of a study is read, and a script that searches the same space is written."""

from sweepledger.exchange.conversion import ForeignFormat
from sweepledger.exchange.evidence.optuna_study import read_trials
from sweepledger.exchange.optuna.reader import read
from sweepledger.exchange.optuna.writer import write

FORMAT = ForeignFormat(
    "optuna",
    "a storage of Optuna: an SQLite file or a journal",
    read=read,
    write=write,
    is_search=True,
    trials=read_trials,
    suffixes=(".db", ".sqlite", ".sqlite3", ".log", ".journal"),
)
