"""Text in, checked values out: specs and settings, with every problem of a file at once."""

from sweepledger.spec.parser import parse, parse_settings
from sweepledger.spec.sweep_builder import ParsedSpec
