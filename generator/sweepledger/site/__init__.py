"""A static site of the experiment history: pages as pure functions of the content of a commit. No I/O."""
