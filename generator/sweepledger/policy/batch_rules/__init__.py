"""Rules for the objects of a batch, one module per subject. General rules are in `rules/`."""
