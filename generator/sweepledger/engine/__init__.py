"""Execution of batches, as local processes or on a cluster."""
