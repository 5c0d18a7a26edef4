"""What `.gitattributes` does to a review and a merge: no diff of what runs is hidden, and no change merges itself."""

from collections.abc import Iterable, Iterator, Mapping

from sweepledger.commands.checks.context import CheckContext
from sweepledger.commands.checks.layout import ATTRIBUTES, LINE_ENDS, SIDE
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import index_attributes
from sweepledger.spec import ParsedSpec

REVIEWED = (".gitattributes", ".github/", "base/", "clusters/", "sweepledger.yaml", "sweeps/")
"""Places, beside the code, whose diff decides what runs. A check compares overlays and results byte by byte."""
MERGED = (*REVIEWED, "overlays/", "results/")

FOLDED = frozenset({"gitlab-generated", "linguist-generated", "linguist-vendored"})
"""Attributes by which hosts fold the diff of a file; any value but `false` turns them on."""
PLAIN_MERGES = frozenset({"binary", "set", "text", "unset"})
"""Values of `merge` with which a conflict is left to a person."""

Obeyed = Mapping[str, tuple[tuple[str, str], ...]]


def check_attributes(context: CheckContext, specs: Iterable[ParsedSpec]) -> Iterator[Problem]:
    """Refuse attributes that hide the diff of code or reviewed files, rewrite code, or merge either without a person.

    Git itself reads the attributes. Where none have changed, only changed files are looked at.
    """
    changed = context.changed_paths("")
    has_new_rules = any(path.rpartition("/")[2].lower() == ATTRIBUTES for path in changed)
    if not any(path.rpartition("/")[2].lower() == ATTRIBUTES for path in context.index):
        return
    code = {f"{parsed.sweep.run.code_path.rstrip('/')}/" for parsed in specs}
    if has_new_rules:  # otherwise the code of other sweeps is as visible as it was
        code |= _locked_code(context)
    paths = [
        path
        for path in (context.index if has_new_rules else changed & context.index.keys())
        if path.startswith((*MERGED, *sorted(code)))
    ]
    obeyed = index_attributes(context.workspace.repository, sorted(paths), with_unset=True)
    yield from _named(
        _hidden(obeyed, (*REVIEWED, *sorted(code))), "must be shown to reviewers", "diff-hidden"
    )
    yield from _named(_merged(obeyed), "must be merged by git or by a person", "merge-driver")
    yield from _named(_rewritten(obeyed, tuple(sorted(code))), "must be checked out as it was reviewed", SIDE)


def _locked_code(context: CheckContext) -> set[str]:
    """Return the code folders of the newest batch of every sweep."""
    newest: dict[str, StoredBatch] = {batch.sweep: batch for batch in context.present}
    return {f"{batch.lock.program.code.path}/" for batch in batches.readable(newest.values())}


def _hidden(obeyed: Obeyed, places: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for path, attributes in obeyed.items():
        for name, value in attributes if path.startswith(places) else ():
            if name in FOLDED and value not in {"false", "unset"}:
                yield path, name
            if (name, value) == ("diff", "unset"):
                yield path, "-diff"


def _merged(obeyed: Obeyed) -> Iterator[tuple[str, str]]:
    for path, attributes in obeyed.items():
        yield from (
            (path, f"merge={value}")
            for name, value in attributes
            if name == "merge" and value not in PLAIN_MERGES
        )


def _rewritten(obeyed: Obeyed, code: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for path, attributes in obeyed.items():
        if path.startswith(code):
            yield from ((path, f"{name}={value}") for name, value in attributes if (name, value) in LINE_ENDS)


def _named(places: Iterable[tuple[str, str]], must: str, code: str) -> Iterator[Problem]:
    """Yield one problem for each attribute: one path is enough to find its line."""
    first: dict[str, str] = {}
    for path, attribute in places:
        first.setdefault(attribute, path)
    for attribute, path in first.items():
        message = f"{must}, but {ATTRIBUTES} sets {attribute}"
        hint = "remove the attribute, or limit it to files that nothing runs, such as overlays/**"
        yield Problem(path, 0, 0, "", message, code, hint)
