"""What `.gitattributes` does to a review and a merge: no diff of what runs is hidden, and no change merges itself."""

import re
from collections.abc import Iterable, Iterator, Mapping

from sweepledger.commands.checks.context import CheckContext
from sweepledger.commands.checks.layout import ATTRIBUTES, LINE_ENDS, SIDE
from sweepledger.commands.repository.programs import REWRITES
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.spec import ParsedSpec
from sweepledger.structs.names import LOCK_FILE
from sweepledger.structs.program import SWEEP_NAMES, CodeSelection

REVIEWED = (
    ".gitattributes",
    ".github/",
    ".gitlab-ci.yml",
    ".gitlab/",
    "base/",
    "clusters/",
    "sweepledger.yaml",
    "sweeps/",
)
"""Places, beside the code, whose diff decides what runs. A check compares overlays and results byte by byte."""
MERGED = (*REVIEWED, "overlays/", "results/")

FOLDED = frozenset({"gitlab-generated", "linguist-generated", "linguist-vendored"})
"""Attributes by which hosts fold the diff of a file; any value but `false` turns them on."""
PLAIN_MERGES = frozenset({"binary", "set", "text", "unset"})
"""Values of `merge` with which a conflict is left to a person."""

CODE_IN_LOCK = re.compile(
    rb'^  code:\n    path: "([A-Za-z0-9_./-]+)"\n    tree: "[0-9a-f]+"\n  data:', re.MULTILINE
)
"""Code that is a folder, in a lock as the generator writes it."""

Obeyed = Mapping[str, tuple[tuple[str, str], ...]]


def check_attributes(context: CheckContext, specs: Iterable[ParsedSpec]) -> Iterator[Problem]:
    """Refuse attributes that hide the diff of code or reviewed files, rewrite code, or merge either without a person.

    Git itself reads the attributes. Where none have changed, only changed files are looked at.
    """
    changed = context.changed_paths("")
    has_new_rules = any(path.rpartition("/")[2].lower() == ATTRIBUTES for path in changed)
    if not any(path.rpartition("/")[2].lower() == ATTRIBUTES for path in context.index):
        return
    code = {run.code_selection or CodeSelection((run.code_path,)) for run in (one.sweep.run for one in specs)}
    if has_new_rules:  # otherwise the code of other sweeps is as visible as it was
        code |= _locked_code(context)
    selectors = [selection.selector() for selection in code]

    def is_code(path: str) -> bool:
        return path.partition("/")[0] not in SWEEP_NAMES and any(select(path) for select in selectors)

    paths = [
        path
        for path in (context.index if has_new_rules else changed & context.index.keys())
        if path.startswith(MERGED) or is_code(path)
    ]
    obeyed = context.attributes(paths)
    shown = {path: found for path, found in obeyed.items() if path.startswith(REVIEWED) or is_code(path)}
    run = {path: found for path, found in obeyed.items() if is_code(path)}
    yield from _named(_hidden(shown), "must be shown to reviewers", "diff-hidden")
    yield from _named(_merged(obeyed), "must be merged by git or by a person", "merge-driver")
    yield from _named(_rewritten(run), "must be checked out as it was reviewed", SIDE)


def _locked_code(context: CheckContext) -> set[CodeSelection]:
    newest: dict[str, StoredBatch] = {batch.sweep: batch for batch in context.present}
    read, folders = [], set()
    for batch in newest.values():
        # What is merged was checked; hundreds of its locks have the code in the same place.
        merged = batch.folder in context.unchanged and LOCK_FILE in batch.contents.paths()
        named = CODE_IN_LOCK.findall(batch.contents.read(LOCK_FILE)) if merged else []
        folders.update(named) if len(named) == 1 else read.append(batch)
    codes = [batch.lock.program.code for batch in batches.readable(read)]
    return {
        *(CodeSelection((folder.decode(),)) for folder in folders),
        *(code.selection or CodeSelection((code.path,)) for code in codes),
    }


def _hidden(obeyed: Obeyed) -> Iterator[tuple[str, str]]:
    for path, attributes in obeyed.items():
        for name, value in attributes:
            if name in FOLDED and value not in {"false", "unset"}:
                yield path, name
            if (name, value) == ("diff", "unset"):
                yield path, "-diff"


def _merged(obeyed: Obeyed) -> Iterator[tuple[str, str]]:
    for path, attributes in obeyed.items():
        values = (value for name, value in attributes if name == "merge")
        yield from ((path, f"merge={value}") for value in values if value not in PLAIN_MERGES)


def _rewritten(obeyed: Obeyed) -> Iterator[tuple[str, str]]:
    for path, attributes in obeyed.items():
        yield from (
            (path, f"{name}={value}")
            for name, value in attributes
            if (name, value) in LINE_ENDS or (name in REWRITES and value != "unset")
        )


def _named(places: Iterable[tuple[str, str]], must: str, code: str) -> Iterator[Problem]:
    """Yield one problem for each attribute: one path is enough to find its line."""
    first: dict[str, str] = {}
    for path, attribute in places:
        first.setdefault(attribute, path)
    for attribute, path in first.items():
        message = f"{must}, but {ATTRIBUTES} sets {attribute}"
        hint = "remove the attribute, or limit it to files that nothing runs, such as overlays/**"
        yield Problem(path, 0, 0, "", message, code, hint)
