"""Finished trials of other tools as foreign evidence: tables (CSV, JSON Lines, W&B's exports) and Optuna's storages."""
