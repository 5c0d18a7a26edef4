"""Whether YAML is so plain that any reader may have it: looked at event by event, nothing is built."""

from collections.abc import Iterator

import yaml

DEPTH = 32
"""A manifest has a dozen levels. Deeper, and PyYAML's C loader ends the process with no word."""

LARGEST = 8 * 2**20
"""Bytes: more than a thousand Jobs; what is longer would take seconds to look at."""


def harm(content: bytes) -> str | None:
    """Say why a document must not reach another reader: alias, tag, depth, size, no YAML; else None.

    A few hundred bytes with aliases make kustomize take gigabytes, and a circular one crashes it.
    """
    if len(content) > LARGEST:
        return f"must have at most {LARGEST >> 20} MiB of YAML, got {len(content) >> 20}"
    try:
        return next(_harms(content), None)
    except (yaml.YAMLError, ValueError) as error:
        return f"must be YAML: {str(error).splitlines()[0]}"


def _harms(content: bytes) -> Iterator[str]:
    depth = 0
    for event in yaml.parse(content, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.AliasEvent() | yaml.NodeEvent(anchor=str()):
                yield f"must hold no anchor or alias, got one in line {line}"
            case yaml.CollectionStartEvent(tag=str()) | yaml.ScalarEvent(tag=str()):
                yield f"must hold no tag, got {event.tag!r} in line {line}"
            case yaml.CollectionStartEvent():
                depth += 1
                if depth > DEPTH:
                    yield f"must nest at most {DEPTH} levels deep, got more in line {line}"
            case yaml.CollectionEndEvent():
                depth -= 1
