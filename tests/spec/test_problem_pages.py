"""Every problem code has a page entry, and every code of specs, settings and searches an example file."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import yaml

from sweepledger.render.platform.manual_setup import HOOK_BASE

ROOT = Path(__file__).parent.parent.parent
GENERATOR = ROOT / "generator/sweepledger"
INVALID = ROOT / "tests/specs/invalid"
PAGE = (ROOT / "docs/problems.md").read_text(encoding="utf-8")
ENTRY = re.compile(
    r"### `(?P<code>[a-z0-9-]+)`\n\n"
    r".+\n\n(?:Example: .+\\\n)?Instead: (?P<fix>.+)\n"
)
ENTRIES = [item["code"] for item in ENTRY.finditer(PAGE)]

CODE_POSITION = 5
"""Of `code` among the fields of Problem, for calls that name no field."""
METHODS_OF_DRAFTS = {"at_key", "problem", "warning", "wrong", "wrong_key"}
CODE_OF_DRAFTS = 2
"""Of `code` among what the methods of a draft take that make a problem."""


RULES = (GENERATOR / "contract", GENERATOR / "operations/checks")
"""Where a code is any text of its form, as rules there pass theirs on as an argument or in a tuple."""

NO_CODES = {
    "clone-credentials",
    "cluster-admin",
    "code",
    "ephemeral-storage",
    "export-ignore",
    "export-subst",
    "gitlab-generated",
    "linguist-generated",
    "linguist-vendored",
    "ref",
    "shared-memory",
    "spec-digest",
    "sweep-trial",
    "update-ref",
    "utf-8",
}
"""Texts of that form that are none: of folders, resources, roles, accounts, annotations, volumes and attributes."""

NEVER_SHOWN = {
    "generator-error",
    "idle-error",
    "several-error",
    "spec-error",
    "unreadable-error",
    "unrecorded-error",
}
"""The root of all failures, those that are shown as what they hold, and the one that is an answer."""

FORM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

HOOK = (ROOT / "base" / HOOK_BASE).read_text(encoding="utf-8")
OF_THE_HOOK = frozenset(re.findall(r" \[([a-z-]+)\]", HOOK))
"""Codes that a git server prints, where no Python runs."""

RULES_OF_PODS = [
    rule
    for path in sorted((ROOT / "base/platform/admission/v1").glob("*.yaml"))
    for rule in next(yaml.safe_load_all(path.read_text(encoding="utf-8")))["spec"]["validations"]
]
OF_POLICIES = frozenset(
    re.findall(r" \[([a-z-]+)\]$", "\n".join(rule["message"] for rule in RULES_OF_PODS), re.MULTILINE)
)
"""Codes of what the API server refuses."""


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def codes(folder: Path) -> frozenset[str]:
    """Return the codes: `code="…"` of calls, the sixth argument of Problem, constants CODE, and the texts of rules."""
    return frozenset(code for path in folder.rglob("*.py") for code in codes_of(path)) - NO_CODES


def codes_of(path: Path) -> Iterator[str]:
    values = (value for node in nodes(path) for value in given(node))
    yield from (text for value in values if isinstance(value, ast.Constant) for text in texts([value]))
    if any(path.is_relative_to(folder) for folder in RULES):
        named = {text for text in texts(nodes(path)) if "-" in text and FORM.fullmatch(text)}
        yield from named


def failures() -> frozenset[str]:
    """Name the codes of the exceptions, which the command line makes of their names."""
    paths = GENERATOR.rglob("*.py")
    classes = [node for path in paths for node in nodes(path) if isinstance(node, ast.ClassDef)]
    kinds = ["GeneratorError"]
    for parent in kinds:  # grows while it is walked: the children of children
        kinds += [node.name for node in classes if parent in {ast.unparse(base) for base in node.bases}]
    return frozenset(re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in kinds) - NEVER_SHOWN


def given(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func, arguments, keywords):
            yield from (word.value for word in keywords if word.arg == "code")
            match func:
                case ast.Name("Problem"):
                    yield from arguments[CODE_POSITION : CODE_POSITION + 1]
                case ast.Attribute(ast.Name("draft"), name) if name in METHODS_OF_DRAFTS:
                    yield from arguments[CODE_OF_DRAFTS : CODE_OF_DRAFTS + 1]
        case ast.Assign([ast.Name("CODE" | "PROBLEM_CODE")], value):
            yield value


def texts(tree: Iterable[ast.AST]) -> Iterator[str]:
    for node in tree:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


SPOKEN = ("reader", "spec", "search")
"""Where it is said what is wrong with specs and settings."""

WITHOUT_EXAMPLE = {"trial-id-collision"}
"""Known of sweeps only that are far too large for an example."""


def test_every_code_has_an_entry() -> None:
    assert sorted((codes(GENERATOR) | failures() | OF_THE_HOOK | OF_POLICIES) - set(ENTRIES)) == []


def test_every_entry_is_whole_stands_once_and_has_a_code_in_the_source() -> None:
    literals = {text for path in GENERATOR.rglob("*.py") for text in texts(nodes(path))}

    assert re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE) == ENTRIES
    assert len(set(ENTRIES)) == len(ENTRIES)
    assert sorted(set(ENTRIES) - literals - failures() - OF_THE_HOOK - OF_POLICIES) == []


def test_no_two_codes_have_the_same_way_out() -> None:
    fixes = Counter(item["fix"] for item in ENTRY.finditer(PAGE))

    assert [fix for fix, count in fixes.items() if count > 1] == []


def test_every_code_of_specs_and_settings_has_an_example_with_its_message() -> None:
    spoken = frozenset(code for room in SPOKEN for code in codes(GENERATOR / room)) - WITHOUT_EXAMPLE

    missing = [
        code
        for code in sorted(spoken)
        if not any(f"[{code}]" in path.read_text(encoding="utf-8") for path in INVALID.glob(f"{code}*.txt"))
    ]

    assert missing == []


def test_codes_are_found_however_they_are_passed_on() -> None:
    assert {"batch-moved", "gitops-unsafe", "base-changed", "needs-cluster"} <= codes(GENERATOR)
    assert frozenset({"push-not-allowed"}) == OF_THE_HOOK
    assert [rule for rule in RULES_OF_PODS if re.search(r" \[[a-z-]+\]$", rule["message"]) is None] == []
