"""Take the pictures of docs/how-to/site.md: the site of this repository's own history, by a real browser.

    python -m tools.site_pictures

Needs Chromium and Playwright (`make .venv/stamps/browser`).
"""

import sys
import tempfile
from pathlib import Path

from sweepledger.operations.repository.workspace import Workspace
from sweepledger.verbs.site import build_site
from tests.browser import browser

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PICTURES = {
    "site-home": ("index.html", None, 1000),
    "site-sweep": ("sweeps/mnist-search/index.html", "#charts", 1010),
}
"""Page, the element at the top of the picture, and height by name."""
WIDTH = 1280


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        out = Path(folder) / "site"
        build_site(Workspace.find(ROOT), out)
        for name, (path, top, height) in PICTURES.items():
            page = chromium.new_page(viewport={"width": WIDTH, "height": height})
            page.goto((out / path).as_uri())
            if top is not None:
                page.locator(top).evaluate(
                    "(element) => scrollTo(0, element.getBoundingClientRect().top - 24)"
                )
            page.wait_for_timeout(1000)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
