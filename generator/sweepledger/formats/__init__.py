"""One module per file format, with a reader and a writer. They handle text and bytes; no module opens a file."""
