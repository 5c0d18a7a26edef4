"""Strict YAML with a position for every node, for any schema. It does not know what the keys mean."""

from sweepledger.reader.document import Document, DocumentPath, format_path
from sweepledger.reader.messages import safe_repr, truncate
from sweepledger.reader.strict_yaml import limit_problems, read_document
