"""What differs between two versions of a sweep's code, and whether the version that runs is the current one."""

from collections.abc import Iterator

from sweepledger.commands.repository import programs
from sweepledger.errors import RepositoryError
from sweepledger.plan import FileChange
from sweepledger.problems import Problem, Severity, list_names
from sweepledger.repo.git import Repository, changed_lines, store_code
from sweepledger.spec import ParsedSpec
from sweepledger.structs.program import Code

CHANGED_CODE = "code-changed"
LISTED_FILES = 5
"""Files that a warning names; `sweep plan` lists more."""


def file_changes(repository: Repository, old: Code, new: Code) -> tuple[FileChange, ...] | None:
    """Return what differs between two versions of the code at one path; None if this clone lacks one of them."""
    try:
        for code in (old, new):
            store_code(repository, code, ["HEAD"])
        changed = changed_lines(repository, old.tree, new.tree)
    except RepositoryError:
        return None
    prefix = "" if new.path == "." else f"{new.path}/"
    return tuple(FileChange(f"{prefix}{path}", *(lines or (None, None))) for path, lines in changed.items())


def newer_code(
    repository: Repository, parsed: ParsedSpec, locked: Code, *, trials: str = "new trials"
) -> Iterator[Problem]:
    """Yield a warning if trials run the locked code although the last commit, or the work tree, has newer code."""
    sweep, head = parsed.sweep, repository.commit("HEAD")
    requested = programs.requested_code(sweep)
    if head is None or (requested.path, requested.selection) != (locked.path, locked.selection):
        return
    tree = programs.code_tree_at(repository, head, sweep)
    edited = programs.uncommitted_code(repository, sweep)
    if tree is not None and tree != locked.tree:
        changes = file_changes(repository, locked, programs.requested_code(sweep, tree=tree))
        names = ["files that this clone lacks"] if changes is None else [change.path for change in changes]
        state = "changed since it was locked"
    else:
        names, state = [], "has uncommitted changes"
    names = list(dict.fromkeys([*names, *edited]))
    if not names:
        return
    yield parsed.source.problem(
        f"{state}, and {trials} run the locked version at {locked.tree[:12]}: {list_names(names, LISTED_FILES)}",
        "run",
        "code_path",
        code=CHANGED_CODE,
        hint=f"{'commit, then ' if edited else ''}`sweep generate {sweep.name} --update` requests all trials with "
        f"the new code; `sweep run {sweep.name} --update` also runs them here",
        severity=Severity.WARNING,
    )
