"""The comparisons of `sweep verify`: files, recorded batches, commits, rebuilt results."""
