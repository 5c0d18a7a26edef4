"""What a cluster needs besides the batches: the files of `clusters/` as data; one module for each subject."""
