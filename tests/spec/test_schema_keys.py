"""The JSON Schemas: described for editors, and saying the same as the rules."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sweepledger.spec.schema_keys import load_schema, schema_text
from tools import json_schemas

NAMES = ("settings", "sweep")


@pytest.mark.parametrize("name", json_schemas.DOCUMENTS)
def test_a_schema_is_what_its_class_says(name: str) -> None:
    assert schema_text(name) == json_schemas.text(name), "run `python -m tools.json_schemas`"


def parts(part: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Find every subschema that describes a value; what is referred to stands under its own name."""
    if "$ref" not in part:
        yield place, part
    for key in ("properties", "$defs"):
        for name, inner in part.get(key, {}).items():
            yield from parts(inner, f"{place}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            yield from parts(part[key], f"{place}.{key}")


PARTS = [item for name in NAMES for item in parts(load_schema(name), name)]


def validator(part: dict[str, Any], place: str) -> Draft202012Validator:
    """Check values by a part of a schema, which may refer to other parts."""
    return Draft202012Validator({**part, "$defs": load_schema(place.partition(".")[0]).get("$defs", {})})


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_draft_2020_12(name: str) -> None:
    assert load_schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"

    Draft202012Validator.check_schema(load_schema(name))


def test_every_key_has_a_description_and_examples_that_fit() -> None:
    for place, part in PARTS:
        assert part["description"].endswith("."), place
        assert part["examples"], place
        for example in [*part["examples"], *([part["default"]] if "default" in part else [])]:
            assert validator(part, place).is_valid(example), f"{place}: {example}"


def test_every_mapping_refuses_unknown_keys() -> None:
    for place, part in PARTS:
        if part.get("type") == "object":
            assert "additionalProperties" in part, place
            assert part["additionalProperties"] is not True, place


def test_neither_ruamel_nor_jsonschema_is_imported_before_a_spec_is_read() -> None:
    script = "import sys, sweepledger.spec; print({'ruamel.yaml', 'jsonschema', 'jsonschema_rs'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
