"""Typer and Rich: text, JSON, exit codes. The only place that prints."""
