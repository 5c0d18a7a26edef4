"""Values of hyperparameters, and the canonical form in which they are compared."""

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from types import MappingProxyType
from typing import Any, TypeGuard

import msgspec
from msgspec import Struct

Scalar = str | int | float | bool | None
Value = Scalar | Sequence[Scalar]

LARGEST_EXACT_INTEGER = 2**53
"""JSON readers that use doubles, such as Kustomize, lose digits of larger integers."""

SECONDS_PER_HOUR = 3600


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def frozen_value(data: Any) -> Value:
    """Return a value that was read from a file, as an immutable one."""
    given: Value = tuple(data) if isinstance(data, list) else data
    return given


def canonical(value: object) -> object:
    """Return the canonical form of a value: 1.0 becomes 1, -0.0 becomes 0, tuples become lists.

    Raises ValueError for numbers that are not finite and for types that JSON does not have.
    """
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return _plain(value)
        case Mapping():
            return {str(key): canonical(item) for key, item in value.items()}
        case list() | tuple():
            return [canonical(item) for item in value]
        case _:
            raise ValueError(f"a value must be JSON data, but got {type(value).__name__}")


def written(value: Any) -> Any:
    """Return a value as JSON data in its spelling: 1.0 keeps its point, -0.0 becomes 0.0, tuples become lists."""
    match value:
        case float():
            return value + 0.0
        case Mapping():
            return {name: written(item) for name, item in value.items()}
        case list() | tuple():
            return [written(item) for item in value]
        case _:
            return value


def identity(value: Value) -> Hashable:
    """Return a key that is equal if the canonical forms are: for 1 and 1.0, but not for true and 1."""
    match value:
        case bool():
            return (bool, value)
        case list() | tuple():
            return (list, *map(identity, value))
        case _:
            return value


def canonical_json(value: object) -> str:
    """Return a value as the JSON that digests cover: sorted keys, no spaces, ASCII."""
    write = WRITERS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, CanonicalText):
        return value.text
    return json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: float) -> float:
    if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"a value must be finite, but got {value!r}")
    return value


def _mapping(value: Mapping[str, object]) -> str:
    try:
        keys = _keys(tuple(value))
    except TypeError:  # a key is no text
        return _mapping({str(key): item for key, item in value.items()})
    items = [(written, value[key]) for key, written in keys]
    return (
        "{" + ",".join([text + WRITERS.get(type(item), canonical_json)(item) for text, item in items]) + "}"
    )


@lru_cache(maxsize=64)
def _keys(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return sorted keys with their JSON; all trials of a sweep share them. TypeError: a key is not text."""
    return tuple((name, encode_basestring_ascii(name) + ":") for name in sorted(names))


def _sequence(value: Sequence[object]) -> str:
    return "[" + ",".join([WRITERS.get(type(item), canonical_json)(item) for item in value]) + "]"


class CanonicalText:
    """JSON data that is kept as its canonical text: values of strangers may need a hundred times its memory."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        return self.text not in {"[]", "{}"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"


class CanonicalObject(CanonicalText, Mapping[str, Any]):
    """A JSON object, parsed when it is read."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        return _parsed_object(self.text)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_parsed_object(self.text))

    def __len__(self) -> int:
        return len(_parsed_object(self.text))


@lru_cache(maxsize=1)
def _parsed_object(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    return data


WRITERS: Mapping[type, Callable[[Any], str]] = {
    float: lambda value: repr(_plain(value)),
    int: repr,
    str: encode_basestring_ascii,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda _: "null",
    dict: _mapping,
    MappingProxyType: _mapping,
    list: _sequence,
    tuple: _sequence,
}
"""Equal to `canonical` followed by json.dumps, without the copy: a run computes 100,000 digests."""


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def bytes_digest(content: bytes) -> str:
    """Return the SHA-256 of bytes as in lock files: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def listing_digest(digests: Mapping[str, str]) -> str:
    """Return `sha256:` and the digest of the sorted lines `<digest>  <name>`, as sha256sum prints them."""
    return bytes_digest("".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode())


def blob_id(content: bytes) -> str:
    """Return git's id of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def as_data(value: Any) -> Any:
    """Return structs, dataclasses, enums and tuples as what JSON has, keys in the order of the fields.

    A field with a default is left out where it says nothing: it is None, false or empty. Other defaults are written,
    so that a document does not change its meaning with a later default.
    """
    if is_dataclass(value) or isinstance(value, Struct):
        items = ((name, has_default, getattr(value, name)) for name, has_default in _fields(value.__class__))
        return {
            name: as_data(item)
            for name, has_default, item in items
            if not (has_default and (item is None or item is False or item in ((), {})))
        }
    match value:
        case StrEnum():
            return str(value)
        case Mapping():
            return {str(key): as_data(item) for key, item in value.items()}
        case tuple() | list():
            return [as_data(item) for item in value]
        case _:
            return value


@lru_cache(maxsize=256)
def _fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    if issubclass(kind, Struct):
        stated = {field.name: not field.required for field in msgspec.structs.fields(kind)}
        # Inherited fields come last, unless the class repeats them at their place.
        names = dict.fromkeys((*kind.__annotations__, *stated))
        return tuple((name, stated[name]) for name in names if name in stated)
    return tuple(
        (field.name, field.default is not MISSING or field.default_factory is not MISSING)
        for field in fields(kind)
    )
