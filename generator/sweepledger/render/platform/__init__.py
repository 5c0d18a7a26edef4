"""What a cluster needs besides the batches: `clusters/`, data, one module a subject."""
