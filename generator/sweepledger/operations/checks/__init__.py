"""Checks of a repository before a merge: one module per subject; each yields problems."""
