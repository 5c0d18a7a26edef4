"""Take a picture of a step's summary as a code host shows it: Markdown in, PNG out, by a real browser.

    npm pack github-markdown-css && tar xf github-markdown-css-*.tgz
    python tools/summary_picture.py summary.md package/github-markdown-light.css docs/images/summary.png 900

Needs chromium on the PATH, or named by $BROWSER.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

WIDTH = 900
PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>{css}
body {{ margin: 0; background: #f6f8fa; font-family: sans-serif }}
.card {{ margin: 16px; padding: 16px; background: #fff; border: 1px solid #d0d7de; border-radius: 6px }}
h6 {{ margin: -16px -16px 16px; padding: 12px 16px; border-bottom: 1px solid #d0d7de; font-size: 14px }}
</style></head><body>
<div class="card"><h6>{title}</h6><div class="markdown-body">{body}</div></div></body></html>
"""
TITLE = "The sweeps of this change may be merged <span style='color:#656d76'>summary</span>"


def main(source: Path, style: Path, target: Path, height: int) -> None:
    # As GitHub does: raw HTML of a page is shown where it is harmless, and ours writes only <code>.
    body = MarkdownIt("commonmark").enable("table").render(source.read_text(encoding="utf-8"))
    page = PAGE.format(css=style.read_text(encoding="utf-8"), title=TITLE, body=body)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "page.html"
        file.write_text(page, encoding="utf-8")
        browser = os.environ.get("BROWSER", "chromium")
        argv = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        argv += [f"--user-data-dir={scratch}/profile", f"--window-size={WIDTH},{height}"]
        subprocess.run([*argv, f"--screenshot={target.absolute()}", file.as_uri()], check=True, timeout=120)


if __name__ == "__main__":
    files, height = [Path(name) for name in sys.argv[1:4]], int(sys.argv[4])
    main(files[0], files[1], files[2], height)
