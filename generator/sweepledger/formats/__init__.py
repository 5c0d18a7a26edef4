"""One file format per module, both reading and writing. Text and bytes only: no module opens a file."""
