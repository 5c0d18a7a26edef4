"""Configuration files of programs, in YAML, TOML or JSON, as JSON: the launcher reads no other format."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from sweepledger.formats.foreign_yaml import ExponentText, load
from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.problems import TextError
from sweepledger.structs.program import ConfigFormat

MOST_BYTES = 64 * 1024
"""Each batch has the file in its lock and in its launch file."""

LONG_KEY = re.compile(
    rb"""(?<![\w-])(?:(?:[\w-]{1,99}|"(?:[^"\\\n]|\\.){0,99}"|'[^'\n]{0,99}')[ \t]{0,9}\.[ \t]{0,9}){64}"""
)
"""A dotted key of TOML of which each level costs the library memory for all that are above it."""


def read(content: bytes, form: ConfigFormat | None) -> str:
    """Return a configuration file as JSON, in its order. Raises ValueError with the rule that it breaks."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"must have at most {MOST_BYTES >> 10} KiB, got {len(content)} bytes")
    if form is ConfigFormat.TOML and LONG_KEY.search(content):
        raise ValueError("must be a mapping in toml: must nest at most 64 levels deep")
    is_plain = True
    try:
        text = content.decode("utf-8-sig")
        match form:
            case ConfigFormat.TOML:
                import tomllib  # noqa: PLC0415 - its patterns take longer than most files

                data: Any = tomllib.loads(text)
            case ConfigFormat.JSON:
                parse_untrusted_object(text.encode())  # refuses a key that is there twice
                data = json.loads(text)
            case _:
                data = load(content)
                is_plain = yaml.load(text, Loader=yaml.CSafeLoader) == data
        written = json.dumps(_with_numbers(data), allow_nan=False)
        parse_untrusted_object(written.encode())
    except (TextError, TypeError, ValueError, RecursionError, RejectedInput, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"must be a mapping in {form or ConfigFormat.YAML}: {reason}") from error
    if not is_plain:
        raise ValueError("must have keys that are texts, and no values that only YAML has, such as dates")
    return written


def _with_numbers(value: Any) -> Any:
    """Return a document in which numbers such as `1e-3`, which are texts for PyYAML, are numbers."""
    match value:
        case ExponentText():
            return float(value)
        case dict():
            return {name: _with_numbers(item) for name, item in value.items()}
        case list():
            return [_with_numbers(item) for item in value]
        case _:
            return value


def value_at(data: Any, name: str) -> Any:
    """Return the value at a dotted name. Raises KeyError if it is missing, TypeError if its parent is no mapping."""
    for part in name.split("."):
        if not isinstance(data, Mapping):
            raise TypeError(f"{name} would be in {data!r:.60}, which is no mapping")
        data = data[part]
    return data


def names_in(data: Any, above: str = "") -> list[str]:
    """Return the dotted names of a document, including the names of mappings."""
    items = data.items() if isinstance(data, dict) else ()
    return [name for part, value in items for name in (f"{above}{part}", *names_in(value, f"{above}{part}."))]
