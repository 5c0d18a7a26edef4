"""One change to a YAML file that a person wrote: comments, order and style of all else stay as they are.

The change is made in the text, at the place that the parser names, and proven by reading the result: it
must hold what it held before, but for the change.
"""

import json
from collections.abc import Sequence
from typing import Any

from generator.reader.reading import read
from generator.reader.writing import block, flow

NEW_LINE = "\n"


def with_value(text: str, path: tuple[str, ...], value: Any) -> str:
    """Set the key at a path of mappings; a missing one is added at the end of its mapping, parents too.

    Raises ValueError where the text is not read without a problem, or the change cannot be made safely.
    """
    return _edited(text, path, value, append=False)


def with_item(text: str, path: tuple[str, ...], item: Any) -> str:
    """Append an item to the list at a path; a missing list is added at the end of its mapping.

    Raises ValueError as `with_value` does, and where something else than a list is there.
    """
    return _edited(text, path, item, append=True)


def _edited(text: str, path: tuple[str, ...], value: Any, *, append: bool) -> str:
    if not path:
        raise ValueError("a path must hold at least one key")
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    wanted = _wanted(_data(plain), path, value, append=append)
    made = _change(plain, path, value, append=append)
    if _frozen(_data(made)) != _frozen(wanted):
        raise ValueError(f"{'.'.join(path)} cannot be set without changing something else")
    made = made.replace("\n", "\r\n") if "\r\n" in text else made
    return f"\ufeff{made}" if text.startswith("\ufeff") else made


def _data(text: str) -> dict[str, Any]:
    found = read(text.encode(), "the file")
    if found.document is None or found.problems:
        raise ValueError(str(found.problems[0]) if found.problems else "the file cannot be read")
    data = {} if found.document.is_empty else found.document.data
    if not isinstance(data, dict):
        raise ValueError("the file must hold a mapping")  # noqa: TRY004 - of what a person wrote
    return data


def _wanted(data: dict[str, Any], path: tuple[str, ...], value: Any, *, append: bool) -> dict[str, Any]:
    """Give the data as they must be read afterwards."""
    key, *rest = path
    held = data.get(key)
    if rest:
        if held is not None and not isinstance(held, dict):
            raise ValueError(f"{key} must be a mapping, got {held!r}")
        return {**data, key: _wanted(held or {}, tuple(rest), value, append=append)}
    if not append:
        return {**data, key: value}
    if held is not None and not isinstance(held, list):
        raise ValueError(f"{key} must be a list, got {held!r}")
    return {**data, key: [*(held or ()), value]}


def _frozen(data: Any) -> str:
    """Write data so that what differs in type or order differs."""
    return json.dumps(data)


def _change(text: str, path: tuple[str, ...], value: Any, *, append: bool) -> str:
    # Late: `--help` and most commands read no YAML of people.
    from ruamel.yaml import YAML  # noqa: PLC0415

    node = YAML(typ="safe", pure=True).compose(text)
    if not hasattr(node, "flow_style"):  # nothing but comments, or an empty document
        missing = block(path[0], _nested(path[1:], [value] if append else value), 0)
        return f"{text}{'' if text.endswith(NEW_LINE) or not text else NEW_LINE}{missing}\n"
    found: Any = None
    for position, key in enumerate(path):
        found = next((pair for pair in node.value if pair[0].value == key), None)
        if found is None:
            rest = _nested(path[position + 1 :], [value] if append else value)
            return _added(text, node, key, rest)
        node = found[1]
    return _appended(text, node, value) if append else _replaced(text, found[0], node, value)


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _added(text: str, node: Any, key: str, value: Any) -> str:
    """Put a key at the end of a mapping."""
    if node.flow_style:
        return _in_flow(text, node, flow({key: value})[1:-1])
    indent = node.value[0][0].start_mark.column
    return _below(text, _end(node), block(key, value, indent))


def _appended(text: str, node: Any, item: Any) -> str:
    """Put an item at the end of a list."""
    if node.flow_style:
        return _in_flow(text, node, flow(item))
    return _below(text, _end(node), f"{' ' * node.start_mark.column}- {flow(item)}")


def _replaced(text: str, key: Any, node: Any, value: Any) -> str:
    start, end = node.start_mark.index, _end(node)
    after_key = text.index(":", key.end_mark.index) + 1
    if not text[after_key:start].strip():
        return f"{text[:after_key]} {flow(value)}{text[end:]}"
    return f"{text[:start]}{flow(value)}{text[end:]}"


def _in_flow(text: str, node: Any, added: str) -> str:
    """Insert before the closing bracket; after the last entry, so that comments stay where they are."""
    if not node.value:
        start = node.start_mark.index + 1
        return f"{text[:start]}{added}{text[node.end_mark.index - 1 :]}"
    end = _end(node.value[-1][1] if isinstance(node.value[-1], tuple) else node.value[-1])
    return f"{text[:end]}, {added}{text[end:]}"


def _below(text: str, end: int, added: str) -> str:
    """Insert lines after the line in which something ends."""
    at = text.find("\n", end)
    return f"{text}\n{added}\n" if at < 0 else f"{text[:at]}\n{added}{text[at:]}"


def _end(node: Any) -> int:
    """Find where the last character of a node is; the parser lets a block end where the next token begins."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    held = node.start_mark.buffer or ""
    return start + len(held[start:end].rstrip()) if held else int(end)
