"""A change of `.gitattributes` makes a checkout differ from what was reviewed."""

import pytest

from sweepledger.repo import base_files
from tests.repository import Sandbox, replace_in

LINES = "\n".join(base_files.ATTRIBUTE_LINES)
REWRITING = [
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
    # To git, NUL ends a line, and the file where it reads the index.
    "code/** ident\0x",
    "code/** export-subst\0=",
    "results/** ident\0",
    "* -ident\0\n* ident\0",
    "* !ident ident",
    # Lines that reach files of sweeps, whatever else they are for.
    "active/ export-ignore",
    "/Results/** filter=lfs",
    "base/trial/** ident",
    "**/data/** filter=lfs",
    "/dat*/** filter=lfs",
    f"{LINES}\n*.csv filter=lfs",
    f"*.csv filter=lfs\n{LINES.replace('/results/** ', '/result/** ')}",
    f"*.csv filter=lfs\n{LINES.replace('-filter', '')}",
    f"[attr]kept filter=lfs\n{LINES}",
    f"*.csv filter=lfs\n# {LINES}",
    f"*.csv filter=lfs\n{LINES}\0",
]
HIDING = [
    "code/** -diff",
    "*.py -diff",
    "* -diff",
    "code/train.py binary",
    "code/train.py linguist-generated",
    "code/train.py linguist-generated=true",
    "*.py linguist-generated=yes",
    "* linguist-vendored",
    "code/** gitlab-generated",
    '"code/*"-diff',
    "[attr]quiet -diff\ncode/** quiet",
    "sweeps/*.yaml -diff",
    "base/** linguist-generated",
    "sweepledger.yaml linguist-generated",
    ".gitattributes -diff",
    ".github/** -diff",
    "clusters/** linguist-vendored=1",
    "*.py !diff\n*.py -diff",
]
ONE_CODE = {
    "side-file": [
        *("* eol=crlf", "*.yaml text eol=crlf", '"sweeps/*"eol=crlf', "sweeps/* crlf", "*.csv crlf=input"),
        *("code/** eol=crlf", "*.py text eol=crlf", "code/* crlf"),
    ],
    "merge-driver": [
        *("* merge=union", "code/** merge=ours", "*.py merge=theirs", "sweeps/*.yaml merge=union"),
        *("base/** merge=mine", "sweepledger.yaml merge=ours", "overlays/** merge=ours"),
        *("*.yaml merge=union -text", '"code/*"merge=union', ".gitattributes merge=ours"),
    ],
}
ALLOWED = [
    "* text=auto eol=lf",
    f"*.csv filter=lfs diff=lfs -text\n{LINES}",
    "overlays/** -diff linguist-generated",
    "results/** linguist-generated=true -diff",
    "*.lock linguist-generated",
    "docs/** linguist-documentation",
    "code/** linguist-generated=false -linguist-vendored",
    "*.py diff=python merge=text",
    "*.png binary",
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
    "/data/*.bin filter=lfs diff=lfs merge=lfs -text",
    "data/** filter=lfs",
    "/tests/ export-ignore",
    "/docs/*.ipynb filter=nbstripout",
    "/activity/** ident",
    f"* text=auto ident\n{LINES}\n/code/** !ident",
    f"{LINES}\n/data/** filter=lfs",
]


def problems(sandbox: Sandbox, text: str) -> set[tuple[str, str]]:
    sandbox.merged()
    sandbox.commit("Attributes", {".gitattributes": f"# attributes\n{text}\n"})
    return set(sandbox.problems(base="origin/main"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", REWRITING)
def test_attributes_that_rewrite_files_are_refused_in_every_spelling(sandbox: Sandbox, text: str) -> None:
    assert (".gitattributes", "side-file") in problems(sandbox, text)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(code, text, marks=[pytest.mark.full_suite("more attacks")] if number else [])
        for code, texts in ONE_CODE.items()
        for number, text in enumerate(texts)
    ],
)
def test_line_ends_stay_and_no_driver_merges(code: str, text: str, sandbox: Sandbox) -> None:
    assert {code for _, code in problems(sandbox, text)} == {code}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", ALLOWED)
def test_attributes_that_reach_no_file_of_sweeps_are_allowed(sandbox: Sandbox, text: str) -> None:
    assert problems(sandbox, text) == set()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", HIDING)
def test_no_attribute_hides_from_a_reviewer_what_runs(sandbox: Sandbox, text: str) -> None:
    sandbox.write(".github/workflows/check.yaml", "on: push\n")
    sandbox.write("clusters/extra/a.yaml", "a: 1\n")

    assert {code for _, code in problems(sandbox, text)} & {"diff-hidden", "side-file"}


def test_new_code_where_diffs_were_hidden_before_is_refused(sandbox: Sandbox) -> None:
    sandbox.write(".gitattributes", "vendor/** -diff\n")
    sandbox.merged()
    sandbox.write("vendor/train.py", "print(1)\n")
    path = sandbox.spec("other")
    replace_in(path, "code/train.py", "vendor/train.py")
    replace_in(path, "path: code", "path: vendor")
    sandbox.commit("Train elsewhere")

    assert ("vendor/train.py", "diff-hidden") in sandbox.problems(base="origin/main")


@pytest.mark.parametrize("code", ["{path: vendor}", "{path: ., include: [vendor/*.py]}"])
def test_code_of_merged_sweeps_stays_visible_with_specs_unread(code: str, sandbox: Sandbox) -> None:
    sandbox.commit("Add a program", {"vendor/train.py": "print(1)\n"})
    path = sandbox.spec("other")
    replace_in(path, "code/train.py", "vendor/train.py")
    replace_in(path, "code: {path: code}", f"code: {code}")
    sandbox.publish_batches("Train elsewhere")
    sandbox.commit("Attributes", {".gitattributes": "vendor/** -diff\n"})

    assert sandbox.problems(base="origin/main") == [("vendor/train.py", "diff-hidden")]


def test_files_that_git_or_a_controller_obeys_are_refused_at_the_top_and_among_sweeps(
    sandbox: Sandbox,
) -> None:
    top = {".lfsconfig", ".LFSConfig", ".sourceignore", ".argocd-source-all.yaml"}
    among = {"sweeps/.gitattributes", "overlays/active/.argocd-source-a.yaml", "clusters/flux/.sourceignore"}
    among |= {"Base/.gitattributes", "base/trial/.krmignore"}
    elsewhere = {"vendor/lib/.gitattributes", "apps/web/.argocd-source-web.yaml", "apps/web/.sourceignore"}
    elsewhere |= {"apps/web/.krmignore", "code/lib/.lfsconfig"}
    for path in top | among | elsewhere:
        sandbox.write(path, "*.c diff=cpp\n")
    sandbox.git("add", "--all")

    refused = {file for file, code in sandbox.problems() if code == "side-file"}

    assert refused == top | among


def test_the_hint_of_a_refused_line_works(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.commit("Attributes", {".gitattributes": "*.csv filter=lfs\n"})
    problem, *_ = sandbox.check(base="origin/main").problems
    assert problem.hint is not None
    lines = problem.hint.partition("below it: ")[2].split("; ")
    sandbox.commit("Lines", {".gitattributes": "\n".join(["*.csv filter=lfs", *lines, ""])})

    assert not sandbox.check(base="origin/main").problems
