"""Whether YAML is so plain that any reader may have it: looked at event by event, nothing is built."""

from collections.abc import Iterator
from typing import NamedTuple

import yaml

DEPTH = 32
"""A manifest has a dozen levels. Deeper, and PyYAML's C loader ends the process with no word."""

LARGEST = 8 * 2**20
"""Bytes: more than a thousand Jobs; what is longer would take seconds to look at."""


class Harm(NamedTuple):
    """Why a document must not reach another reader."""

    says: str
    line: int
    """From 1."""


def harm(content: bytes) -> Harm | None:
    """Say why a document must not reach another reader: alias, tag, depth, size, no YAML; else None.

    A few hundred bytes with aliases make kustomize take gigabytes, and a circular one crashes it.
    """
    if len(content) > LARGEST:
        return Harm(f"must have at most {LARGEST >> 20} MiB of YAML, got {len(content) >> 20}", 1)
    try:
        return next(_harms(content), None)
    except (yaml.YAMLError, ValueError) as error:
        return Harm(f"must be YAML: {words_of(error)}", line_of(error))


def words_of(error: Exception) -> str:
    """Say on one line what a reader of YAML stumbled over."""
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return str(error).splitlines()[0]


def line_of(error: Exception) -> int:
    """Say where a reader of YAML stumbled, from 1; that is the first line where it does not say."""
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return 1 if mark is None else mark.line + 1


def _harms(content: bytes) -> Iterator[Harm]:
    depth = 0
    for event in yaml.parse(content, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        match event:
            case yaml.AliasEvent() | yaml.NodeEvent(anchor=str()):
                yield Harm(f"must hold no anchor or alias, got one in line {line}", line)
            case yaml.CollectionStartEvent(tag=str()) | yaml.ScalarEvent(tag=str()):
                yield Harm(f"must hold no tag, got {event.tag!r} in line {line}", line)
            case yaml.CollectionStartEvent():
                depth += 1
                if depth > DEPTH:
                    yield Harm(f"must nest at most {DEPTH} levels deep, got more in line {line}", line)
            case yaml.CollectionEndEvent():
                depth -= 1
