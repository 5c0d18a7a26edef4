"""The JSON Schemas: described for editors, and saying the same as the rules."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generator.spec.rules.cluster import DIGEST, LABEL
from generator.spec.rules.names import METRIC_NAME
from generator.spec.rules.program import INTERPRETER
from generator.spec.schemas import schema
from generator.structs.names import PARAMETER_NAME, SWEEP_NAME

NAMES = ("settings", "sweep")


def parts(part: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Find every subschema that describes a value."""
    yield place, part
    for key, inner in part.get("properties", {}).items():
        yield from parts(inner, f"{place}.{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            yield from parts(part[key], f"{place}.{key}")


PARTS = [found for name in NAMES for found in parts(schema(name), name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_draft_2020_12(name: str) -> None:
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"

    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize(("place", "part"), PARTS, ids=[place for place, _ in PARTS])
def test_every_key_has_a_description_and_examples_that_fit(place: str, part: dict[str, Any]) -> None:
    assert part["description"].endswith("."), place
    assert part["examples"], place
    for example in [*part["examples"], *([part["default"]] if "default" in part else [])]:
        Draft202012Validator(part).validate(example)


@pytest.mark.parametrize(("place", "part"), PARTS, ids=[place for place, _ in PARTS])
def test_every_mapping_refuses_unknown_keys(place: str, part: dict[str, Any]) -> None:
    if part.get("type") == "object":
        assert "additionalProperties" in part, place
        assert part["additionalProperties"] is not True, place


def pattern(name: str, *path: str) -> str:
    found: Any = schema(name)
    for key in path:
        found = found[key]
    return str(found["pattern"])


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (pattern("sweep", "properties", "name"), SWEEP_NAME),
        (pattern("sweep", "properties", "metric", "properties", "name"), METRIC_NAME),
        (pattern("sweep", "properties", "parameters", "propertyNames"), PARAMETER_NAME),
        (pattern("sweep", "properties", "run", "properties", "interpreter"), INTERPRETER),
        (pattern("settings", "properties", "namespace"), LABEL),
        (pattern("settings", "properties", "results", "properties", "claim"), LABEL),
        (pattern("settings", "properties", "datasets", "propertyNames"), LABEL),
        (pattern("settings", "properties", "datasets", "additionalProperties", "properties", "claim"), LABEL),
        (
            pattern("settings", "properties", "datasets", "additionalProperties", "properties", "digest"),
            DIGEST,
        ),
    ],
)
def test_editors_and_rules_hold_names_to_the_same_pattern(found: str, rule: re.Pattern[str]) -> None:
    assert found == f"^{rule.pattern}$"
