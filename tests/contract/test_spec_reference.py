"""docs/spec.md and docs/settings.md: every key has a section, and every example is what it says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger import search
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec, parse, parse_settings
from sweepledger.structs.settings import Settings
from tests.written_specs import SETTINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/spec.md").read_text()
SCHEMA = json.loads((ROOT / "generator/sweepledger/schemas/sweep.schema.json").read_text())

SETTINGS_PAGE = (ROOT / "docs/settings.md").read_text()
SETTINGS_SCHEMA = json.loads((ROOT / "generator/sweepledger/schemas/settings.schema.json").read_text())

EXAMPLES = re.findall(r"^### (.+?)\n|^```yaml\n(.*?)^```|^```csv\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def examples() -> Iterator[Any]:
    heading = "whole"
    tables = [csv for _, _, csv in EXAMPLES if csv]
    for result, text, _ in EXAMPLES:
        heading = result.split(", ")[0].strip("`") or heading if result else heading
        if text:
            yield pytest.param(text, tables, id=heading)


def completed(text: str) -> tuple[str, str]:
    """Add what a part of a spec lacks; give the sweep's name too."""
    lines = []
    for key, line in {
        "name": "name: lr",
        "metric": "metric: {name: score, goal: maximize}",
        "command": 'command: [train, "${args}"]',
        "method": "method: grid",
        "parameters": "parameters: {width: {values: [64, 128]}}",
    }.items():
        has = re.search(rf"^{key}:", text, re.MULTILINE)
        instead = {"command": "program:", "method": "blocks:", "parameters": "method: list"}.get(key, "\0")
        if not has and not re.search(rf"^{instead}", text, re.MULTILINE):
            lines.append(line)
    whole = text + "\n".join(lines) + "\n"
    name = re.search(r"^name: (\S+)", whole, re.MULTILINE)
    assert name
    return whole, name[1]


@pytest.mark.parametrize(("text", "tables"), list(examples()))
def test_an_example_makes_as_many_trials_as_it_says(text: str, tables: list[str]) -> None:
    whole, name = completed(text)

    parsed = parse(
        whole.encode(),
        f"sweeps/{name}.yaml",
        SETTINGS,
        beside=lambda _: tables[0].encode() if tables else None,
    )

    assert isinstance(parsed, ParsedSpec), "\n".join(map(str, parsed))
    assert not parsed.warnings
    sweep, expansion = parsed.sweep, search.explore(parsed.sweep)
    assert isinstance(expansion, Expansion), "\n".join(map(str, expansion))
    assert not expansion.warnings
    promised = re.match(r"# (\d+) trials", text)
    if promised:
        assert len(expansion.configurations) * sweep.replicates == int(promised[1])


def keys(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, entry in schema.get("properties", {}).items():
        yield path + name
        if name != "blocks" and "$ref" not in entry:
            yield from keys(entry, f"{path}{name}.")


def test_every_key_of_the_schema_has_a_section_and_every_section_is_of_a_key() -> None:
    headings = {
        name
        for line in re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
        for name in re.findall(r"`(.+?)`", line)
    }

    parameter = {f"parameters.NAME.{name}" for name in SCHEMA["$defs"]["parameter"]["properties"]}
    assert headings == {*keys(SCHEMA), *parameter}


def test_every_section_has_an_example() -> None:
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]

    assert [section for section in sections if "```yaml" not in section] == []


def test_the_method_and_the_macros_are_all_named() -> None:
    assert {f"`{method}`" for method in SCHEMA["properties"]["method"]["enum"]} <= set(
        re.findall(r"`[a-z0-9-]+`", PAGE)
    )
    assert all(
        f"`{kind}`" in PAGE for kind in SCHEMA["$defs"]["parameter"]["properties"]["distribution"]["enum"]
    )


def test_the_complete_spec_at_the_end_is_the_one_among_the_examples() -> None:
    whole = PAGE.rpartition("# 117 trials, whole\n")[2].removesuffix("```\n")

    assert whole == (ROOT / "tests/specs/valid/everything.yaml").read_text()


def settings_keys(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, entry in schema.get("properties", {}).items():
        part = resolved(entry)
        yield path + name
        yield from settings_keys(part, f"{path}{name}.")
        if isinstance(part.get("additionalProperties"), dict):
            yield from settings_keys(resolved(part["additionalProperties"]), f"{path}{name}.NAME.")


def resolved(entry: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference to a definition of the settings' schema."""
    found: dict[str, Any] = (
        SETTINGS_SCHEMA["$defs"][entry["$ref"].rpartition("/")[2]] if "$ref" in entry else entry
    )
    return found


def test_every_key_of_the_settings_has_a_section_with_an_example() -> None:
    sections = re.split(r"^### ", SETTINGS_PAGE, flags=re.MULTILINE)[1:]

    assert sorted(re.findall(r"^### `(.+)`$", SETTINGS_PAGE, re.MULTILINE)) == sorted(
        settings_keys(SETTINGS_SCHEMA)
    )
    assert [section for section in sections if "```yaml" not in section] == []


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        (section.partition("\n")[0].strip("`"), example)
        for section in re.split(r"^### ", SETTINGS_PAGE, flags=re.MULTILINE)
        for example in re.findall(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    ],
)
def test_an_example_of_settings_is_taken_and_says_something_of_its_key(heading: str, text: str) -> None:
    settings = parse_settings(text.encode(), "sweepledger.yaml")

    assert isinstance(settings, Settings), "\n".join(map(str, settings))
    assert f"{heading.rpartition('.')[2]}:" in text or heading.startswith("#")
