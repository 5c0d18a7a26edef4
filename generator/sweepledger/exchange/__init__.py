"""Other tools' files: one module or package per format, with `read` for imports and `write` for exports."""
