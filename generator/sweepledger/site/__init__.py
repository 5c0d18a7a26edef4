"""A static site of the experiment history: pages as pure functions of what a commit contains. No I/O."""
