"""Other tools' files: one module or package per format, in which `read` imports a file and `write` exports one."""
