"""Plan: the additions of a merge, their coverage, forecast and upper bounds. Pure: trials in, a review out."""
