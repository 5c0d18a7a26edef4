"""Tables of keys and columns in the documentation come from their classes, and every example is what it says."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger import search
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec, parse, parse_settings
from sweepledger.structs.settings import Settings
from tests.written_specs import SETTINGS
from tools import key_tables

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/spec.md").read_text()
SETTINGS_PAGE = (ROOT / "docs/settings.md").read_text()


def blocks(page: str, kind: str = "yaml") -> Iterator[Any]:
    for match in re.finditer(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        yield pytest.param(match[1], id=f"line {page[: match.start()].count(chr(10)) + 1}")


TABLES = [parameter.values[0] for parameter in blocks(PAGE, "csv")]


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
        instead = {"command": "program:", "parameters": "method: list"}.get(key, "\0")
        if not has and not re.search(rf"^{instead}", text, re.MULTILINE):
            lines.append(line)
    whole = text + "\n".join(lines) + "\n"
    name = re.search(r"^name: (\S+)", whole, re.MULTILINE)
    assert name
    return whole, name[1]


@pytest.mark.parametrize("text", list(blocks(PAGE)))
def test_an_example_makes_as_many_trials_as_it_says(text: str) -> None:
    whole, name = completed(text)

    parsed = parse(whole.encode(), f"sweeps/{name}.yaml", SETTINGS, beside=lambda _: TABLES[0].encode())

    assert isinstance(parsed, ParsedSpec), "\n".join(map(str, parsed))
    assert not parsed.warnings
    sweep, expansion = parsed.sweep, search.explore(parsed.sweep)
    assert isinstance(expansion, Expansion), "\n".join(map(str, expansion))
    assert not expansion.warnings
    promised = re.match(r"# (\d+) trials", text)
    if promised:
        assert len(expansion.configurations) * sweep.replicates == int(promised[1])


@pytest.mark.parametrize(("path", "document"), key_tables.PAGES.items())
def test_the_tables_are_those_of_the_classes(path: Path, document: str) -> None:
    assert key_tables.page(path.read_text(), document) == path.read_text()


@pytest.mark.parametrize(
    ("path", "written", "row"),
    [
        (key_tables.RESULTS_PAGE, key_tables.results_page, "| `params.NAME` |"),
        (
            key_tables.MANIFESTS_PAGE,
            key_tables.manifests_page,
            "| `schedulerName` | [`pools.NAME.pod.scheduler`](",
        ),
    ],
    ids=["columns of the summary", "fields of pods"],
)
def test_a_table_is_what_classes_state(path: Path, written: Callable[[str], str], row: str) -> None:
    assert row in path.read_text()
    assert written(path.read_text()) == path.read_text()


@pytest.mark.parametrize("page", ["spec.md", "settings.md"])
def test_links_to_keys_lead_to_their_rows(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    rows = {*re.findall(r'id="(.+?)"', text), *(name.lower().replace(" ", "-") for name in headings)}
    texts = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    links = {name for text in texts for name in re.findall(rf"\b{page}#([a-z0-9_-]+)\)", text)}
    links |= set(re.findall(r"\]\(#([a-z0-9_-]+)\)", text))

    assert links <= rows


@pytest.mark.parametrize("text", list(blocks(SETTINGS_PAGE)))
def test_an_example_of_settings_is_valid(text: str) -> None:
    settings = parse_settings(text.encode(), "sweepledger.yaml")

    assert isinstance(settings, Settings), "\n".join(map(str, settings))
