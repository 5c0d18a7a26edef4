"""One file format a module, both directions. Text and bytes only: nothing here opens a file."""
