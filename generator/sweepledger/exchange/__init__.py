"""Other tools' files: one module or package per format; `read` makes a spec of one, `write` makes one."""
