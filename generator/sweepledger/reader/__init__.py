"""Strict YAML with a position for every node, for any schema. It does not know the meaning of keys."""

from sweepledger.problems import DocumentPath, format_path
from sweepledger.reader.safe_repr import safe_repr, truncate
from sweepledger.reader.strict_yaml import Document, read_document
