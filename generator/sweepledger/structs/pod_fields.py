"""Fields of pods that a key of the settings or of `run` decides by itself: each is stated with its key.

From the statement follow the field of the pod, the values that the admission policies allow, in their variable of the
same name, and what a person has to create.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from msgspec import Meta, Struct

from sweepledger.model import text_forms
from sweepledger.model.keys import attributes_of, is_struct, keys_of, type_of


class PodField(Struct, frozen=True):
    """The field of a pod that a key decides; the values of a list are allowed, for keys of specs to choose from."""

    name: str
    write: Callable[[Any], Any] = lambda value: value
    """Returns the field, from the key's value. The API server's CEL knows no list or mapping of several types."""


PodPriority = Annotated[text_forms.Name, PodField("priorityClassName"), Meta(examples=["batch-low"])]


def _stated(value: Struct) -> Iterator[tuple[PodField, Any]]:
    for attribute, stated in attributes_of(type(value)):
        given = getattr(value, attribute.name)
        yield from (
            (part, given) for part in stated.metadata if isinstance(part, PodField) and given is not None
        )


def decided(*values: Struct) -> dict[str, Any]:
    """Return the fields that keys of some values decide; the last word counts."""
    stated = (pair for value in values for pair in _stated(value))
    return {field.name: field.write(given) for field, given in stated if not isinstance(given, tuple)}


def allowed(value: Struct) -> Iterator[tuple[str, Any]]:
    """Yield the fields that keys of a value decide, or let specs choose, each with all that it may be."""
    for field, given in _stated(value):
        for each in given if isinstance(given, tuple) else (given,):
            yield field.name, field.write(each)


def field_paths(kind: type[Struct]) -> dict[str, list[tuple[str, ...]]]:
    """Return the paths of the keys below a class that decide a field, by the field; `*` is every name."""
    paths: dict[str, list[tuple[str, ...]]] = {}
    for name, path in _fields_below(kind):
        paths.setdefault(name, []).append(path)
    return paths


def _fields_below(kind: type[Struct], *path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, key in keys_of(kind).items():
        stated, below = type_of(key.annotation), (*path, name)
        yield from ((part.name, below) for part in stated.metadata if isinstance(part, PodField))
        if get_origin(stated.kind) is Mapping:
            stated, below = type_of(get_args(stated.kind)[1]), (*below, "*")
        if is_struct(stated.kind):
            yield from _fields_below(stated.kind, *below)
