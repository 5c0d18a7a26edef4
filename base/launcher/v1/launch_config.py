"""Files with the values of a trial: `hyperparams.yml`, and the one of ${config}."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Mapping

from launch_files import Refused, need
from launch_json import parse_object
from launch_row import parse_line, read_rows

if TYPE_CHECKING:
    from launch_row import Row

WHOLE_LIST = 1000  # rows of hyperparams.yml: PyYAML needs half a second to read so many
PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", re.ASCII)
MISREAD = (  # PLAIN texts that YAML 1.1 does not read as text
    r"[+-]?0b[01_]+|[+-]?0[0-7_]+|[+-]?(?:0|[1-9][0-9_]*)|[+-]?0x[0-9a-fA-F_]+"
    r"|[+-]?[0-9][0-9_]*\.[0-9_]*(?:[eE][+-][0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
)
WORDS = {
    form
    for word in ("yes", "no", "true", "false", "on", "off", "null")
    for form in (word, word.title(), word.upper())
}


def yaml_scalar(value: Any) -> str:
    """Write a value as PyYAML does; text that is not a single word has other quotes, and equal value."""
    if isinstance(value, str) and PLAIN.fullmatch(value):
        return f"'{value}'" if value in WORDS or re.fullmatch(MISREAD, value, re.ASCII) else value
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_scalar, value)) + "]"
    return yaml_text(value) if isinstance(value, str) else json.dumps(value)


def yaml_text(text: str) -> str:
    """Write a text in quotes: JSON writes a letter beyond 16 bits as two, and YAML reads two."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", lambda letter: f"\\U{ord(letter[0]):08X}", text) + '"'


def yaml_item(values: Mapping[str, Any]) -> str:
    """Write one set of the list."""
    lines = []
    for name, value in sorted(values.items()):
        shown = f"    {yaml_scalar(name)}:"
        if isinstance(value, list) and value:
            lines += [shown, *(f"    - {yaml_scalar(item)}" for item in value)]
        else:
            lines.append(f"{shown} {yaml_scalar(value)}")
    return "\n".join(["- hyperparam_set:" if lines else "- hyperparam_set: {}", *lines, ""])


def hyperparams(launch: Mapping[str, Any], row: Row) -> str:
    """Write the list whose item JOB_ID - 1 scripts look up: complete if short, else empty before that item.

    With a long list in every pod, the cost of a sweep would be quadratic in its trials.
    """
    if len(launch["shards"]) > 1 or launch["shards"][0]["count"] > WHOLE_LIST:
        return "-\n" * row.number + yaml_item(row.values)
    rows = read_rows(launch, need("SWEEP_TABLE"), row.number)
    sets = (parse_line(line, rows.columns)[1] for line in rows.lines)
    return "".join(
        yaml_item({name: value for name, value in values.items() if name != "replicate"}) for values in sets
    )


def config_value(value: Any, sign: str) -> str:
    """Write a value on one line, as YAML 1.1, YAML 1.2 and TOML read it if this sign follows names."""
    if isinstance(value, dict):
        pairs = (yaml_text(name) + sign + config_value(inner, sign) for name, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(config_value(item, sign) for item in value) + "]"
    return yaml_text(value) if isinstance(value, str) else yaml_scalar(value)


def config_text(config: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return the base file of `run.config`, given as JSON, with a trial's values at their dotted names."""
    data, form = parse_object(config["text"].encode()), config["format"]
    for name, value in values.items():
        *above, last = name.split(".")
        place = data
        for part in above:
            place = place.setdefault(part, {})
            if type(place) is not dict:
                raise Refused(f"run.config: {name} would be inside of {part}, which is no mapping")
        place[last] = value
        if value is None and form == "toml":
            raise Refused(f"run.config: {name} is null, which TOML lacks")
    if form == "json":
        return json.dumps(data, indent=2) + "\n"
    sign = " = " if form == "toml" else ": "
    lines = (f"{yaml_text(name)}{sign}{config_value(value, sign)}\n" for name, value in data.items())
    return "".join(lines)
