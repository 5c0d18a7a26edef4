"""Text in, checked values out: specs and settings, with every problem of a file at once."""

from sweepledger.spec.parser import parse, parse_settings
from sweepledger.spec.starter import starter_spec
from sweepledger.spec.sweep_builder import ParsedSpec

__all__ = ["ParsedSpec", "parse", "parse_settings", "starter_spec"]
