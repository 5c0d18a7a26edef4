"""Verbs that only read: trials, results, logs, history, status and budgets."""
