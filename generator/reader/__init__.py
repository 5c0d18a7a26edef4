"""Strict YAML with a position for every node, for any schema. Decides nothing about what the keys mean."""

from generator.reader.document import Document
from generator.reader.paths import Path, dotted
from generator.reader.reading import Reading, limited, read
from generator.reader.shown import cut, shown

__all__ = ["Document", "Path", "Reading", "cut", "dotted", "limited", "read", "shown"]
