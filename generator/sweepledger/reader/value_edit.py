"""Changes of one existing value in configuration files: YAML, JSON and TOML, with comments, order and style kept.

Each possible position is tried, and taken only if the parsed file then differs in nothing but this value.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sweepledger.reader.strict_yaml import read_document
from sweepledger.reader.yaml_edit import set_value

KeyPath = tuple[str, ...]
_TOML_LINE = re.compile(
    r"""^(?P<head>[^#\n=]*?=[ \t]*)
    (?P<value>"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\[[^\n#]*\]|[^\s#,"'\[{]+)""",
    re.MULTILINE | re.VERBOSE,
)


def read_values(text: str, suffix: str) -> dict[str, Any]:
    """Return the mapping in a file of a format, given by its ending. Raises ValueError."""
    parse = _PARSERS.get(suffix)
    if parse is None:
        raise ValueError(f"must end in {', '.join(_PARSERS)}, got {suffix!r}")
    data = parse(text)
    if not isinstance(data, dict):
        raise ValueError("must contain a mapping")  # noqa: TRY004 - a mistake of the author, not of the caller
    return data


def key_paths(data: Mapping[str, Any], name: str) -> tuple[KeyPath, ...]:
    """Return the paths of a file's keys that a parameter can mean, the nearest only: itself, its parts, its name below.

    `optimizer.lr` means the key `optimizer.lr`, else `lr` below `optimizer`, else any key of the name that is deeper.
    """
    listed = dict(_leaves(data))
    parts = tuple(name.split("."))
    for exact in ((name,), parts):
        if exact in listed:
            return (exact,)
    return tuple(path for path in listed if path[-len(parts) :] == parts or path[-1] == name)


def _leaves(data: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    for key, value in data.items():
        path = (*above, str(key))
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            yield path, value


def value_at(data: Mapping[str, Any], path: KeyPath) -> Any:
    """Return the value at a path. Raises KeyError."""
    value: Any = data
    for key in path:
        if not isinstance(value, Mapping):
            raise KeyError(key)
        value = value[key]
    return value


def replace_value(text: str, suffix: str, path: KeyPath, value: Any) -> str:
    """Return the text with another value at an existing path. Raises ValueError if this cannot be done safely."""
    data = read_values(text, suffix)
    if _same(value_at(data, path), value):
        return text
    if suffix in {".yaml", ".yml"}:
        return set_value(text, path, value)
    expected = _with(data, path, value)
    candidates = (
        _json_candidates(text, path[-1], value) if suffix == ".json" else _toml_candidates(text, value)
    )
    for changed in candidates:
        try:
            if _same(read_values(changed, suffix), expected):
                return changed
        except ValueError:
            continue
    raise ValueError(f"{'.'.join(path)} cannot be set without changing something else")


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal in type, too."""
    return json.dumps(one, default=str) == json.dumps(other, default=str)


def _with(data: Mapping[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    key, *rest = path
    return {**data, key: _with(data[key], tuple(rest), value) if rest else value}


def _json_candidates(text: str, key: str, value: Any) -> Iterator[str]:
    decoder = json.JSONDecoder()
    for match in re.finditer(re.escape(json.dumps(key)) + r"\s*:\s*", text):
        try:
            _, end = decoder.raw_decode(text, match.end())
        except ValueError:
            continue
        yield f"{text[: match.end()]}{json.dumps(value, ensure_ascii=False)}{text[end:]}"


def _toml_candidates(text: str, value: Any) -> Iterator[str]:
    if value is None:
        raise ValueError("TOML has no null")
    written = json.dumps(
        value, ensure_ascii=False
    )  # equal in TOML for text, numbers, truth and lists of these
    for match in _TOML_LINE.finditer(text):
        yield f"{text[: match.start('value')]}{written}{text[match.end('value') :]}"


def _yaml(text: str) -> Any:
    reading = read_document(text.encode(), "the file")
    if reading.document is None or reading.problems:
        raise ValueError(str(reading.problems[0]) if reading.problems else "the file cannot be read")
    return {} if reading.document.is_empty else reading.document.data


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": json.loads,
    ".toml": tomllib.loads,
}
