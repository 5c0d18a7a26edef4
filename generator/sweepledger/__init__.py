"""Spec in, files out; results in, commit out. Knows nothing of what a trial computes."""

__version__ = "0.1.0"
