"""Print the JSON Schema of specs or settings, or describe a key.

Editors complete and check YAML by the schema. `sweep schema --key run.retries` says what the key takes and where it may
be; the last part of a path, as in `--key retries`, finds each key with this name.
"""

import json
import re
from typing import Any

from sweepledger.cli.options import flag, option
from sweepledger.cli.response import Response
from sweepledger.errors import UsageError
from sweepledger.spec.schema_keys import DocumentKey, document_keys, find_keys, load_schema, schema_text
from sweepledger.spec.suggestions import did_you_mean


def schema(
    *,
    key: str | None = option("--key KEY", "Describe the key at this path, such as run.retries."),
    settings: bool = flag("--settings", "Use sweepledger.yaml instead of specs."),
) -> Response:
    document, other = ("settings", "sweep") if settings else ("sweep", "settings")
    if key is None:
        text = schema_text(document).rstrip("\n")
        return Response({"document": document, "schema": load_schema(document), "keys": ()}, (text,))
    keys = [described(document, entry) for entry in find_keys(document, key)]
    if not keys:
        paths = [entry.path for entry in document_keys(document)]
        nearest = did_you_mean(key, [*paths, *(path.rpartition(".")[2] for path in paths)])
        ways = {"sweep": "without --settings", "settings": "with --settings"}
        elsewhere = f"{other} has it: run the command {ways[other]}" if find_keys(other, key) else None
        raise UsageError(f"--key: {document} has no key {key!r}", hint=elsewhere or nearest)
    lines = []
    for entry in keys:
        lines += [f"{entry['path']}: {entry['value']}", f"  {entry['schema'].get('description', '')}"]
        if "examples" in entry["schema"]:
            example = json.dumps(entry["schema"]["examples"][0], ensure_ascii=False)
            lines.append(f"  example: {example}")
        if entry["also"]:
            lines.append(f"  also at: {', '.join(entry['also'])}")
    return Response({"document": document, "schema": None, "keys": keys}, tuple(lines))


def described(document: str, key: DocumentKey) -> dict[str, Any]:
    """Return a key with its JSON Schema, and the other paths at which it may be."""
    also = [
        other.path + key.path.removeprefix(other.same_as)
        for other in document_keys(document)
        if other.same_as and re.match(rf"{re.escape(other.same_as)}(?:[.\[]|$)", key.path)
    ]
    return {
        "path": key.path,
        "value": key.value.replace("`", ""),
        "required": key.is_required,
        "also": [*([key.same_as] if key.same_as else []), *(path for path in also if path != key.path)],
        "schema": key.schema,
    }
