"""Plan: what a merge would add, its coverage, forecast and upper bounds. Pure: trials in, a review out."""
