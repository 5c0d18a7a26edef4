"""Text in, checked values out: specs and settings, with every problem of a file at once."""

from generator.spec.parsing import parse, parse_settings
from generator.spec.starter import starter

__all__ = ["parse", "parse_settings", "starter"]
