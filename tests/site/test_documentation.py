"""The documentation as `make docs` builds it: the same bytes each time, and a search that needs no server."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.browser import NoBrowserError, browser

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv/docs/bin/python"
pytestmark = pytest.mark.full_suite("builds the documentation")


def build(folder: Path) -> Path:
    pages = folder / "pages"
    argv = [str(PYTHON), "-m", "sphinx", "--quiet", "--fail-on-warning", "--builder", "html"]
    argv += ["--doctree-dir", str(folder / "doctrees"), "docs", str(pages)]
    environment = {"PYTHONPATH": "generator", "PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "random"}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pages


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PYTHON.is_file():
        pytest.skip("skipped: Sphinx is not installed: make .venv/stamps/docs")
    return build(tmp_path_factory.mktemp("documentation"))


def test_two_builds_give_the_same_bytes(pages: Path, tmp_path: Path) -> None:
    again = build(tmp_path)

    files = {path.relative_to(pages) for path in pages.rglob("*") if path.is_file()}
    assert files == {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    # Pickled environments of Sphinx are no pages.
    different = [
        path
        for path in sorted(files)
        if path.name != ".buildinfo" and (pages / path).read_bytes() != (again / path).read_bytes()
    ]
    assert different == []


def test_every_page_is_in_the_site_but_decision_records(pages: Path) -> None:
    docs = ROOT / "docs"
    written = {path.relative_to(docs).with_suffix(".html") for path in docs.rglob("*.md")}
    decisions = {path for path in written if path.parts[0] == "decisions"}
    built = {path.relative_to(pages) for path in pages.rglob("*.html")}

    assert written - decisions <= built
    assert decisions & built == set()


def test_the_search_works_from_a_folder_without_requests(pages: Path) -> None:
    requests: list[str] = []
    errors: list[str] = []
    try:
        with browser() as chromium:
            page: Any = chromium.new_page()
            page.on("request", lambda request: requests.append(request.url))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto((pages / "search.html").as_uri() + "?q=pre-receive")
            page.wait_for_selector("ul.search li a")
            links = page.eval_on_selector_all("ul.search li a", "links => links.map(link => link.href)")
            page.goto(links[0])
            title = page.title()
    except NoBrowserError as error:
        pytest.skip(f"skipped: {error}")

    assert any("guarantees.html" in link or "recover.html" in link for link in links), links
    assert "sweepledger" in title
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
