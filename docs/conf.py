"""The documentation as a site, built by `make docs`: Sphinx, because its search works without a server."""

import posixpath
import re
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

from sweepledger import __version__

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "sweepledger"
author = "the sweepledger authors"
copyright = author  # noqa: A001 - the name that Sphinx reads; without a year, so that each build gives the same bytes
version = release = __version__
extensions = ["myst_parser"]
suppress_warnings = ["misc.highlighting_failure"]  # not every block is in a language that Pygments knows
# Why something was decided is for those who change the code; they read it in the repository.
exclude_patterns = ["decisions"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
html_theme = "furo"
html_title = f"sweepledger {__version__}"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
# The search would fetch every page that it lists, which browsers refuse from a disk.
html_show_search_summary = False
html_last_updated_fmt = None
nitpicky = True

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]+)\]\((?P<target>(?![a-z]+:|#)[^)\s#]+)(?P<part>#[^)\s]*)?\)")


ROW = re.compile(r'<a id="(?P<id>[\w-]+)"></a>(?P<key>`[^`\n]+`)')
"""A key in a table, with the name by which other pages link to it, as GitHub reads it."""


def relink(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn links to files that are no pages into plain names, and names of rows into those of MyST."""
    folder = PurePosixPath("docs") / PurePosixPath(docname).parent

    def replaced(link: re.Match[str]) -> str:
        path = posixpath.normpath(folder / link["target"])
        if path == "README.md":
            above = "../" * docname.count("/")
            return f"[{link['text']}]({above}index.md)"
        is_page = re.fullmatch(r"docs/(?!decisions/).*\.md", path) and (ROOT / path).is_file()
        return link[0] if is_page else link["text"] if "`" in link["text"] else f"`{path}`"

    source[0] = ROW.sub(r"\g<key>{#\g<id>}", LINK.sub(replaced, source[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what this file adds to Sphinx."""
    app.connect("source-read", relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
