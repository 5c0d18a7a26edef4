"""A batch in, its overlay out: pure. Structure is built as data, never as text."""
