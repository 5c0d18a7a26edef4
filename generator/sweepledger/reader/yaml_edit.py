"""Changes of one value in YAML files of authors; comments, order and style of everything else are preserved.

The text is changed at the position that the parser reports. The result is parsed and must differ only in this
value.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sweepledger.reader.scalars import resolve_scalar
from sweepledger.reader.strict_yaml import read_document

BARE_TEXT = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./:@-]*[A-Za-z0-9_/])?", re.ASCII)
INDENT = 2
"""Indentation of a block, in blanks."""


def format_scalar(value: object) -> str:
    """Return a scalar as YAML; text is bare if that is safe."""
    if isinstance(value, str) and BARE_TEXT.fullmatch(value) and resolve_scalar(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def format_flow(value: Any, scalar: Callable[[Any], str] = format_scalar) -> str:
    """Return any value as YAML on one line; `scalar` writes its keys and scalars."""
    match value:
        case Mapping():
            items = (f"{scalar(key)}: {format_flow(item, scalar)}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
        case list() | tuple():
            return f"[{', '.join(format_flow(item, scalar) for item in value)}]"
        case _:
            return scalar(value)


def format_block(key: str, value: Any, indent: int) -> str:
    """Return a key and its value: mappings with one line per key, all other values after the key."""
    head = f"{' ' * indent}{format_scalar(key)}:"
    if not isinstance(value, Mapping) or not value:
        return f"{head} {format_flow(value)}"
    below = (format_block(name, item, indent + INDENT) for name, item in value.items())
    return "\n".join((head, *below))


def set_value(text: str, path: tuple[str, ...], value: Any, *, append: bool = False) -> str:
    """Set the key at a path of mappings, or append to its list; missing keys and parents are added at the end.

    Raises ValueError if the text has problems, or the change cannot be made safely.
    """
    if not path:
        raise ValueError("a path must hold at least one key")
    plain = _plain(text)
    expected = _expected(_data(plain), path, value, append=append)
    changed = _change(plain, path, value, append=append)
    return _checked(text, changed, expected, f"{'.'.join(path)} cannot be set")


def remove_key(text: str, key: str) -> str:
    """Remove a key of the document's mapping with its lines; a missing key changes nothing. Raises ValueError."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - as in `_change`

    plain = _plain(text)
    data = _data(plain)
    if key not in data:
        return text
    node = YAML(typ="safe", pure=True).compose(plain)
    name, value = next(pair for pair in node.value if pair[0].value == key)
    start = plain.rfind("\n", 0, name.start_mark.index) + 1
    end = plain.find("\n", max(_end(value), name.end_mark.index)) + 1 or len(plain)
    changed = plain[:start] + plain[end:]
    expected = {other: data[other] for other in data if other != key}
    return _checked(text, changed, expected, f"{key} cannot be removed")


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _checked(text: str, changed: str, expected: dict[str, Any], refusal: str) -> str:
    """Return a changed text with the original line ends. Raises ValueError unless it has the expected data."""
    # As JSON, because data that differ in type or order are not the same.
    if json.dumps(_data(changed)) != json.dumps(expected):
        raise ValueError(f"{refusal} without changing something else")
    changed = changed.replace("\n", "\r\n") if "\r\n" in text else changed
    return f"\ufeff{changed}" if text.startswith("\ufeff") else changed


def _data(text: str) -> dict[str, Any]:
    reading = read_document(text.encode(), "the file")
    if reading.document is None or reading.problems:
        raise ValueError(str(reading.problems[0]) if reading.problems else "the file cannot be read")
    data = {} if reading.document.is_empty else reading.document.data
    if not isinstance(data, dict):
        raise ValueError("the file must hold a mapping")  # noqa: TRY004 - a mistake of the author, not of the caller
    return data


def _expected(data: dict[str, Any], path: tuple[str, ...], value: Any, *, append: bool) -> dict[str, Any]:
    key, *rest = path
    held = data.get(key)
    if rest:
        if held is not None and not isinstance(held, dict):
            raise ValueError(f"{key} must be a mapping, got {held!r}")
        return {**data, key: _expected(held or {}, tuple(rest), value, append=append)}
    if not append:
        return {**data, key: value}
    if held is not None and not isinstance(held, list):
        raise ValueError(f"{key} must be a list, got {held!r}")
    return {**data, key: [*(held or ()), value]}


def _change(text: str, path: tuple[str, ...], value: Any, *, append: bool) -> str:
    # Imported late: `--help` and most commands edit no YAML.
    from ruamel.yaml import YAML  # noqa: PLC0415

    node = YAML(typ="safe", pure=True).compose(text)
    missing_value = [value] if append else value
    if not hasattr(node, "flow_style"):  # nothing but comments, or an empty document
        lines = [text.removesuffix("\n")] if text else []
        return "\n".join([*lines, format_block(path[0], _nested(path[1:], missing_value), 0), ""])
    pair: Any = None
    for position, key in enumerate(path):
        pair = next((item for item in node.value if item[0].value == key), None)
        if pair is None:
            rest = _nested(path[position + 1 :], missing_value)
            if node.flow_style:
                return _in_flow(text, node, format_flow({key: rest})[1:-1])
            indent = node.value[0][0].start_mark.column
            return _below(text, _end(node), format_block(key, rest, indent))
        node = pair[1]
    if append and node.flow_style:
        return _in_flow(text, node, format_flow(value))
    if append:
        return _below(text, _end(node), f"{' ' * node.start_mark.column}- {format_flow(value)}")
    start, end = node.start_mark.index, _end(node)
    after_key = text.index(":", pair[0].end_mark.index) + 1
    head = text[:start] if text[after_key:start].strip() else f"{text[:after_key]} "
    return f"{head}{format_flow(value)}{text[end:]}"


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _in_flow(text: str, node: Any, added: str) -> str:
    """Insert after the last entry and before the closing bracket, so that comments keep their places."""
    if not node.value:
        start = node.start_mark.index + 1
        return f"{text[:start]}{added}{text[node.end_mark.index - 1 :]}"
    end = _end(node.value[-1][1] if isinstance(node.value[-1], tuple) else node.value[-1])
    return f"{text[:end]}, {added}{text[end:]}"


def _below(text: str, end: int, added: str) -> str:
    """Insert lines after the line that contains an offset."""
    at = text.find("\n", end)
    return f"{text}\n{added}\n" if at < 0 else f"{text[:at]}\n{added}{text[at:]}"


def _end(node: Any) -> int:
    """Return the end of a node; the parser lets a block end where the next token begins."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    held = node.start_mark.buffer or ""
    return start + len(held[start:end].rstrip()) if held else int(end)
