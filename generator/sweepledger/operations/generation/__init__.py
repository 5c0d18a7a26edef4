"""The next batch of each sweep, planned from specs and merged batches."""
