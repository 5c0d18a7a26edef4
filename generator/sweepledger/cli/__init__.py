"""The command line: text, JSON, exit codes. The only package that prints."""
