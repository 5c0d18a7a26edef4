"""Frozen values and the pure functions that belong to them. No I/O, no third-party imports."""
