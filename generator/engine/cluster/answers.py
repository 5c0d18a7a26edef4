"""What kubectl says: JSON that is believed only in the shape of Kubernetes objects, and errors in a sentence.

Between kubectl and a server may stand a proxy, a wrapper or nobody: any answer can be anything.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from generator.problems import one_line

DEEPEST = 128
"""Levels; no object of Kubernetes or of the controllers comes near."""
MOST_BRACKETS = 4_000_000
"""Lists and objects of one answer: 20,000 Jobs have half as many."""
NESTED = frozenset({dict, list})
QUOTED = 80
LONGEST = 1000
"""Characters of an error, from its end: a refused manifest has its reasons on many lines."""

KLOG = re.compile(r"[IWEF][0-9]{4} [0-9:.]+\s+[0-9]+ \S+:[0-9]+\]")
"""How lines begin that kubectl logs; what it says to people has no such beginning."""

CONTEXTS = (
    "`kubectl config get-contexts` lists the clusters; `--context` or `kubectl config use-context` chooses"
)
LOGIN = "log in to the cluster again, as its administrators say"
HINTS = (
    (re.compile(r"context was not found|does not exist|no configuration has been provided"), CONTEXTS),
    (re.compile(r"was refused|[Uu]nable to connect|no such host|timed? ?out|deadline exceeded"), CONTEXTS),
    (re.compile(r"Unauthorized|must be logged in|getting credentials"), LOGIN),
    (re.compile(r"Forbidden|forbidden: User"), "ask somebody who may, or choose another by `--context`"),
)

Predicate = Callable[[Any], bool]


class UnexpectedError(Exception):
    """The answer is not one that Kubernetes gives; the text says what was expected and what came."""


def parse(said: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises UnexpectedError."""
    try:
        if said.count(b"{") + said.count(b"[") > MOST_BRACKETS:
            raise UnexpectedError(f"an answer that is not built from {len(said)} bytes")
        found = json.loads(said)
    except (ValueError, RecursionError) as error:
        raise UnexpectedError(f"no JSON: {quoted(said)}") from error
    if not isinstance(found, dict) or _is_deep(found):
        raise UnexpectedError(f"no object of Kubernetes: {quoted(said)}")
    return found


def text(found: Mapping[str, Any], *path: str) -> str:
    """Give a text at a path. Raises UnexpectedError."""
    node: Any = found
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, str):
        raise UnexpectedError(f"no {'.'.join(path)}: {_shown(found)}")
    return node


def single(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give an object that has a kind and the shape that all have. Raises UnexpectedError."""
    text(found, "kind")
    return _shaped(found)


def several(found: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Give the objects of a list. Raises UnexpectedError."""
    items = found.get("items")
    if not isinstance(items, list):
        raise UnexpectedError(f"no list of objects: {_shown(found)}")
    return tuple(map(_shaped, items))


def following(found: Mapping[str, Any]) -> str | None:
    """Give the mark by which the next portion of a list is asked for; None at its end."""
    metadata = found.get("metadata")
    mark = metadata.get("continue") if isinstance(metadata, dict) else None
    return mark if isinstance(mark, str) and mark else None


def sentence(stderr: str) -> tuple[str, str | None]:
    """Put kubectl's error on one line, without what it logs; give it and a way out where one is known."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = [line for line in lines if not KLOG.match(line)] or [KLOG.sub("", line) for line in lines[-1:]]
    said = one_line("; ".join(told) or "it said nothing")
    hint = next((way for pattern, way in HINTS if pattern.search(said)), None)
    return said if len(said) <= LONGEST else f"…{said[-LONGEST:]}", hint


def quoted(said: bytes) -> str:
    """Show the first words of an answer."""
    return repr(said[:QUOTED].decode(errors="replace")) + ("…" if len(said) > QUOTED else "")


def _shown(found: Any) -> str:
    # Not all of it is put into text for the sake of its first words.
    encoder = json.JSONEncoder()
    made = ""
    for part in encoder.iterencode(found):
        made += part[: QUOTED + 1]
        if len(made) > QUOTED:
            break
    return quoted(made.encode(errors="replace"))


def _shaped(found: Any) -> Mapping[str, Any]:
    text(found if isinstance(found, dict) else {"": found}, "metadata", "name")
    for path, is_right in SHAPE:
        for node in _at(found, path):
            # A controller may leave null where it has nothing to say; the two that are asked for it may not.
            if not is_right(node) and (node is not None or path in NEVER_NULL):
                raise UnexpectedError(f"an object whose {'.'.join(path)} is {_shown(node)}")
    kept: Mapping[str, Any] = found
    return kept


def _at(node: Any, path: tuple[str, ...]) -> Iterator[Any]:
    for name in path:
        if not isinstance(node, dict) or name not in node:
            return
        node = node[name]
    yield node


def _is_deep(found: Any) -> bool:
    level = [found]
    for _ in range(DEEPEST):
        children = (one.values() if type(one) is dict else one for one in level)
        level = [child for group in children for child in group if type(child) in NESTED]
        if not level:
            return False
    return True


def _is_object(node: Any) -> bool:
    return isinstance(node, dict)


def _are_objects(node: Any) -> bool:
    return isinstance(node, list) and all(isinstance(one, dict) for one in node)


def _are_texts(node: Any) -> bool:
    return isinstance(node, list) and all(isinstance(one, str) for one in node)


def _is_by_text(node: Any) -> bool:
    return isinstance(node, dict) and all(isinstance(one, str) for one in node.values())


SHAPE: tuple[tuple[tuple[str, ...], Predicate], ...] = (
    (("metadata", "labels"), _is_by_text),
    (("metadata", "ownerReferences"), _are_objects),
    (("spec",), _is_object),
    (("spec", "accessModes"), _are_texts),
    (("status",), _is_object),
    (("status", "conditions"), _are_objects),
    (("status", "sync"), _is_object),
)
"""What else is read of objects as if it had this form, where it is there."""
NEVER_NULL = frozenset({("metadata", "labels"), ("spec",)})
