"""Every page is found by following links from README.md, and no link leads nowhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links(page: Path) -> set[Path]:
    """Give the files of the repository that a page leads to."""
    found = LINK.findall(page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in found if "://" not in target}


def reached() -> set[Path]:
    seen: set[Path] = set()
    ahead = {ROOT / "README.md"}
    while ahead:
        page = ahead.pop()
        seen.add(page)
        ahead |= {found for found in links(page) if found.suffix == ".md" and found.is_file()} - seen
    return seen


def test_every_page_is_reached_from_the_readme() -> None:
    # The contents of the site that `make docs` builds is for that site alone.
    pages = set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs/index.md"}

    assert {str(page.relative_to(ROOT)) for page in pages - reached()} == set()


def test_every_page_but_decision_records_is_in_the_contents_of_the_site() -> None:
    docs = ROOT / "docs"
    lines = re.findall(r"^[a-z][a-z/*-]*$", (docs / "index.md").read_text("utf-8"), re.MULTILINE)
    listed = {path for line in lines for path in docs.glob(f"{line}.md")}

    decisions = set(docs.glob("decisions/*.md"))
    assert set(docs.rglob("*.md")) - {docs / "index.md"} - decisions == listed


def test_no_link_leads_nowhere() -> None:
    broken = {
        f"{page.relative_to(ROOT)}: {found}"
        for page in reached()
        for found in links(page)
        if not found.exists()
    }

    assert broken == set()


def test_tests_that_a_page_of_promises_names_exist() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    names = {name for text in texts for name in re.findall(r"def test_(\w+)", text)}
    promises = "".join((ROOT / page).read_text("utf-8") for page in ("docs/guarantees.md", "SECURITY.md"))

    assert set(re.findall(r"`(?:test_)?([a-z]+(?:_[a-z]+){4,})`", promises)) <= names
