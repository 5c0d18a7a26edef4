"""The rounds of a search: evidence, the next round, its commit, bounds and progress."""
