"""Execution: batches as local processes or on a cluster, verified datasets, digests of images."""
