"""The keys of a document, which only its class declares.

A document, and each mapping in it whose keys are fixed, is a frozen struct of msgspec, and an attribute is a key:

    every_minutes: Annotated[Minutes, Meta(examples=["10m"])] = 5
    \"\"\"Interval of the collector: whole minutes that divide an hour, at most 30m.\"\"\"

- The type is the value's type in the class. `Meta` (msgspec) has bounds, pattern and examples; a list or a mapping has
  the bounds of its entries in its brackets: `tuple[Annotated[str, Meta(…)], ...]`, `Mapping[Name, Pool]`.
- A `TextForm` is for texts that become another value or must have a form; it has a problem code and a message.
- A key without a default is required, unless `Absent` gives its value. `X | None = None` may be left out. Bounds belong
to the value: `Annotated[str, Meta(max_length=9)] | None`, as msgspec refuses them for a value that may be None.
- The text below an attribute is the key's description; without it, the text of its class is used, which also describes
the entries of a mapping with free names (`EntryName` gives a name for the example). Entries of lists and plain
values of mappings need neither.
- A key has the name of its attribute, without the unit of its form. `Key` gives another name. `NAME` marks an
attribute that receives the entry's name in the mapping around it, `UNWRITTEN` an attribute that no document has, and
`OneOf` an attribute that several keys can give. `EntryOf` is for texts that must be names in the settings. `GROUP`
marks an attribute whose class declares keys of the mapping around it, so that functions can take some of many keys.

From this, `decode` makes the value of a valid document, `texts` lists the values that rules check, and
`python -m tools.json_schemas` writes the JSON Schemas, by which every problem of a document is found at its position.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields, replace

Path = tuple[str | int, ...]
Test = Callable[[str], bool]
EMPTY: Mapping[Any, Any] = MappingProxyType({})
"""A mapping that nobody can change."""


class TextForm(Struct, frozen=True):
    """The written form of a value that is not a plain text or number."""

    read: Callable[[Any], Any]
    """Returns the value. Raises ValueError, which says how it must be written."""
    code: str
    """Code of the problem."""
    example: str = ""
    note: str = ""
    """What the hint says behind the example, or alone."""
    unit: str = ""
    """End of an attribute's name that is no part of the key."""
    write: Callable[[Any], str] = str
    """Returns how a default is written."""
    types: tuple[type, ...] = (str,)
    """As what it is written."""
    pattern: str = ""
    """A regular expression that it matches, for editors."""

    @property
    def hint(self) -> str | None:
        """The hint of a problem with this form."""
        return f"for example {self.example}{self.note}" if self.example else self.note or None


def like(
    pattern: str,
    rule: str,
    example: str = "",
    code: str = "wrong-form",
    *,
    note: str = "",
    fits: Test | None = None,
) -> TextForm:
    """Return the form of texts that match a regular expression and pass a further check."""

    def read(text: str) -> str:
        if re.fullmatch(pattern, text, re.ASCII) is None or not (fits is None or fits(text)):
            raise ValueError(rule)
        return text

    return TextForm(read, code, example, note, pattern=pattern)


class Key(Struct, frozen=True):
    """The name of a key that is not called like its attribute."""

    name: str


class Absent(Struct, frozen=True):
    """The value of a key that may be left out although its attribute has no default."""

    value: Any


class EntryName(Struct, frozen=True):
    """A name for the example of a mapping with free names."""

    name: str


class EntryOf(Struct, frozen=True):
    """A text that must be a name in the mapping or list at this key of the settings."""

    key: str


class OneOf(Struct, frozen=True):
    """Alternative keys, any one of which gives the value of an attribute, with their annotations."""

    keys: tuple[tuple[str, Any], ...]


NAME, UNWRITTEN, GROUP = Key("*"), Key("-"), Key("")
MANY = Meta(max_length=1000)
"""The largest number of entries of a mapping with free names."""


def some(most: int = 100) -> Meta:
    """Return the bounds of a list or a mapping that must not be empty."""
    return Meta(min_length=1, max_length=most)


UNIONS = {Union, UnionType}


class Type(NamedTuple):
    """The content of an annotation."""

    kind: Any
    """The type itself, without None: a class, `Mapping[…]`, `tuple[…]`, or a union."""
    metadata: tuple[Any, ...]

    @property
    def form(self) -> TextForm | None:
        """The written form of the value; None: plain."""
        return next((part for part in reversed(self.metadata) if isinstance(part, TextForm)), None)


@cache
def type_of(annotation: Any) -> Type:
    """Return the content of an annotation, with aliases resolved."""
    metadata: tuple[Any, ...] = ()
    while True:
        parts = [part for part in get_args(annotation) if part is not NoneType]
        if get_origin(annotation) is Annotated:
            metadata = (*annotation.__metadata__, *metadata)
            annotation = annotation.__origin__
        elif get_origin(annotation) in UNIONS and len(parts) == 1:
            (annotation,) = parts
        else:
            return Type(annotation, metadata)


class KeyOf(NamedTuple):
    """A key of a class."""

    attribute: str
    annotation: Any
    default: Any
    """NODEFAULT: it has none."""
    is_required: bool
    absent: Any = NODEFAULT
    """What the attribute is if the key is left out; NODEFAULT: its default."""
    owner: type = object
    """The class that states it: the class itself, or that of a group."""


@cache
def attributes_of(kind: type[Struct]) -> tuple[tuple[FieldInfo, Type], ...]:
    """Return the attributes of a class with the content of their annotations."""
    return tuple((attribute, type_of(attribute.type)) for attribute in fields(kind))


@cache
def keys_of(kind: type[Struct]) -> Mapping[str, KeyOf]:
    """Return the keys of a class in its order."""
    keys: dict[str, KeyOf] = {}
    for attribute, stated in attributes_of(kind):
        name = attribute.name.removesuffix(stated.form.unit if stated.form else "")
        absent, is_required = NODEFAULT, attribute.required
        for part in stated.metadata:
            if isinstance(part, OneOf):
                name = UNWRITTEN.name
                keys |= {
                    key: KeyOf(attribute.name, inner, NODEFAULT, is_required=False, owner=kind)
                    for key, inner in part.keys
                }
            elif isinstance(part, Key):
                name = part.name
            elif isinstance(part, Absent):
                absent, is_required = part.value, False
        if name == GROUP.name:
            keys |= keys_of(stated.kind)
        elif name not in {NAME.name, UNWRITTEN.name}:
            keys[name] = KeyOf(attribute.name, attribute.type, attribute.default, is_required, absent, kind)
    return MappingProxyType(keys)


def is_struct(kind: Any) -> bool:
    """Return whether a type is a class that declares keys."""
    return isinstance(kind, type(Struct))


def decode(annotation: Any, data: Any, name: str = "") -> Any:
    """Return the value of a part of a document that has no problem; `name` is its name in the mapping around it."""
    kind, form = type_of(annotation).kind, type_of(annotation).form
    if form is not None:
        named = _named(kind, name) if is_struct(kind) else {}
        return replace(form.read(data), **named) if named else form.read(data)
    if is_struct(kind):
        return _decode_class(kind, data, name)
    match get_origin(kind):
        case origin if kind is Any or origin in UNIONS:
            return data
        case None:
            return kind(data)
        case builtin if builtin in {tuple, frozenset}:
            return builtin(decode(get_args(kind)[0], part) for part in data)
        case _:
            inner = get_args(kind)[1]
            return MappingProxyType({key: decode(inner, part, key) for key, part in data.items()})


def _decode_class(kind: type[Struct], data: Any, name: str) -> Any:
    if isinstance(data, str):  # the first key alone, without its name
        data = {next(iter(keys_of(kind))): data}
    values = _named(kind, name)
    for attribute, stated in attributes_of(kind):
        if GROUP in stated.metadata:
            values[attribute.name] = decode(attribute.type, data)
    for written, key in keys_of(kind).items():
        if key.owner is not kind:
            continue
        if written in data:
            values[key.attribute] = decode(key.annotation, data[written])
        elif key.absent is not NODEFAULT:
            values[key.attribute] = key.absent
    return kind(**values)


def _named(kind: type[Struct], name: str) -> dict[str, Any]:
    """Return the attributes that receive the name of an entry."""
    return {attribute.name: name for attribute, stated in attributes_of(kind) if NAME in stated.metadata}


def texts(annotation: Any, data: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Type, bool]]:
    """Yield texts and other values that must have a form: path, written value, type, and whether it is a key."""
    stated = type_of(annotation)
    kind, origin = stated.kind, get_origin(stated.kind)
    if isinstance(data, str if stated.form is None else stated.form.types):
        yield path, data, stated, False
    elif is_struct(kind) and isinstance(data, dict):
        for key, stated_key in keys_of(kind).items():
            if key in data:
                yield from texts(stated_key.annotation, data[key], (*path, key))
    elif origin is tuple and isinstance(data, list):
        for index, part in enumerate(data):
            yield from texts(get_args(kind)[0], part, (*path, index))
    elif origin is Mapping and isinstance(data, dict):
        names, entries = get_args(kind)
        for key, part in data.items():
            yield (*path, key), key, type_of(names), True
            yield from texts(entries, part, (*path, key))
