"""A change of `.gitattributes` makes a checkout differ from what was reviewed."""

import pytest

from sweepledger.commands.check import check
from tests.repository import Sandbox

SPELLINGS = [
    '"*"filter=lfs',
    '"*"\tident',
    '"*"export-subst',
    '"a b"working-tree-encoding=UTF-16',
    '"\\052" filter=lfs',
    '"*\\"" filter=lfs',
    '\t "*"filter',
    "* -text filter=lfs",
    "* filter",
    "results/** filter=lfs",
    "sweeps/*.yaml ident",
    "overlays/active/*/launch.py working-tree-encoding=UTF-16LE",
    "base/** export-ignore",
    "[attr]evil filter=lfs",
    '"[attr]evil"filter=lfs',
    "\ufeff* filter=lfs",
    "* text\tfilter=lfs\r",
    "sweepledger.yaml export-subst",
    "\x0b* filter=lfs",
    "\x0b# x filter",
    "\x0c\n* ident",
]


def problems(sandbox: Sandbox, text: str) -> set[tuple[str, str]]:
    sandbox.merged()
    sandbox.write(".gitattributes", f"# attributes\n{text}\n")
    sandbox.commit("Attributes")
    return {(one.file, one.code) for one in check(sandbox.workspace, base="origin/main").problems}


@pytest.mark.parametrize("text", SPELLINGS)
def test_attributes_that_rewrite_files_are_refused_in_every_spelling(sandbox: Sandbox, text: str) -> None:
    assert (".gitattributes", "side-file") in problems(sandbox, text)


@pytest.mark.parametrize(
    "text", ["* eol=crlf", "*.yaml text eol=crlf", '"sweeps/*"eol=crlf', "sweeps/* crlf", "*.csv crlf=input"]
)
def test_line_ends_of_reviewed_files_stay(sandbox: Sandbox, text: str) -> None:
    assert {code for _, code in problems(sandbox, text)} == {"side-file"}


@pytest.mark.parametrize(
    "text",
    [
        "* text=auto eol=lf",
        "overlays/** -text linguist-generated",
        "*.bat text eol=crlf",
        "*.bin -filter",
        "*.bin !filter -ident",
        "filter text",
        '"my filter" text',
        "# * filter=lfs",
        "\x0b",
        "\x0c \x0b",
        "",
    ],
)
def test_other_attributes_are_allowed(sandbox: Sandbox, text: str) -> None:
    assert problems(sandbox, text) == set()


@pytest.mark.parametrize(
    "path",
    [
        ".lfsconfig",
        "code/.lfsconfig",
        ".LFSConfig",
        ".gitmodules",
        "sweeps/.gitattributes",
        "a/.GitAttributes",
    ],
)
def test_files_beside_it_that_git_obeys_are_refused(sandbox: Sandbox, path: str) -> None:
    sandbox.write(path, "[lfs]\n\turl = https://example.org\n")
    sandbox.git("add", "--all")

    assert (path, "side-file") in {(one.file, one.code) for one in check(sandbox.workspace).problems}
