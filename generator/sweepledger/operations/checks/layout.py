"""What may be in git: plain files with plain names, and no file that a controller would interpret.

`.gitattributes` must not hide the diff of code and batches, or let a change merge automatically.
"""

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping

from sweepledger.controllers import GITOPS
from sweepledger.operations.checks.context import FOLDERS, CheckContext
from sweepledger.operations.repository.programs import REWRITES
from sweepledger.operations.repository.workspace import SPEC_LIKE
from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.repo import batches
from sweepledger.repo.base_files import ATTRIBUTE_LINES
from sweepledger.repo.files import PYTHON_CACHE, base_folder
from sweepledger.repo.git import (
    EXECUTABLE_MODE,
    FILE_MODE,
    FILE_MODES,
    LINK_MODE,
    SUBMODULE_MODE,
    Entry,
    index_attributes,
)
from sweepledger.repo.state import STATE, leads_into_state, may_lead_into_state
from sweepledger.spec import ParsedSpec
from sweepledger.structs.names import RESULTS, SPECS, SUFFIX, file_system_name
from sweepledger.structs.platform import GIT_HOSTS
from sweepledger.structs.program import SWEEP_NAMES, CodeSelection

GENERATED_FOLDERS = tuple(f"{folder}/" for folder in FOLDERS)
PLACES = frozenset({"sweepledger.yaml", *FOLDERS})
KINDS = {LINK_MODE: "a symbolic link", SUBMODULE_MODE: "a submodule", EXECUTABLE_MODE: "an executable file"}

LARGEST_CHANGE = 96 * 2**20
"""Maximum total size in bytes of the changed files that are read; the largest batch is smaller."""
READ = (".gitattributes", "sweepledger.yaml", "overlays/", "base/", "sweeps/", "clusters/")

SIDE_FILES = (
    r"\.gitmodules|\.krmignore|\.lfsconfig|\.gitattributes",
    *(own.side_files for own in GITOPS.values()),
)
SIDE_FILE = re.compile("|".join(SIDE_FILES), re.IGNORECASE)
"""A controller may read parameters from files of its own and fetch submodules, git changes file content according to
`.gitattributes`, and git-lfs takes addresses from `.lfsconfig`.
Each concerns its own folder, so in those of other projects they are theirs.
"""
AT_THE_ROOT = frozenset({".gitattributes", ".gitmodules"})
"""Those that a repository may have at its root: attributes and submodules are judged by the paths that they concern."""

SIDE = "side-file"
ATTRIBUTES = ".gitattributes"
REWRITING = REWRITES | {"export-subst", "export-ignore"}
"""Attributes that make a checkout or an archive differ from the reviewed content."""
MACRO = b"[attr]"
BLANKS = b" \t\r"
QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
LINE_ENDS = frozenset({("eol", "crlf"), ("crlf", "set"), ("crlf", "input")})
"""Attributes, with their values, by which a checkout changes the ends of lines."""

READ_NAMES = {
    "base": frozenset(path.name for path in base_folder().iterdir()),
    "overlays": frozenset({"active", "archive"}),
    "clusters": frozenset({"platform", *GITOPS}),
}
"""Names below a place that commands write and controllers read, whether or not they are there."""

LONGEST_TARGET = 4096
"""Bytes of a link's target that an operating system follows."""


def check_state(context: CheckContext) -> Iterator[Problem]:
    """Refuse every path of the next commit that is, or leads into, the state folder of a clone."""
    repository = context.workspace.repository
    links = {path: entry.id for path, entry in context.index.items() if entry.is_link}
    sizes = repository.sizes(links.values())
    short = {path: blob for path, blob in links.items() if 0 < sizes.get(blob, 0) <= LONGEST_TARGET}
    blobs = repository.blobs(short.values())
    targets = {path: os.fsdecode(blobs[blob]) for path, blob in short.items()}
    for path in sorted({*may_lead_into_state(context.index), *targets}):
        if leads_into_state(path):
            message = f"must not be in git: a clone keeps what it runs and records in {STATE}"
        elif leads_into_state(targets.get(path, "")):
            message = f"must not be a link into {STATE}, got {targets[path]!r}"
        else:
            continue
        hint = f"`git rm --cached {shlex.quote(path)}`, and commit the removal"
        yield Problem(path, 0, 0, "", message, "state-in-git", hint)


def check_layout(context: CheckContext) -> Iterator[Problem]:
    """Check every entry of the next commit that differs from the base commit."""
    changed = {path: context.index[path] for path in sorted(context.changed & context.index.keys())}
    yield from _size_problems(context, changed)
    for path in FOLDERS:  # what a link, submodule or file in the place of a folder shows is checked nowhere
        if path in context.index:
            message = f"must be a folder, got {KINDS.get(context.index[path].mode, 'a file')}"
            hint = f"`git rm --cached {path}`, and commit a folder in its place"
            yield Problem(path, 0, 0, "", message, "file-mode", hint)
    yield from _twins(context, changed)
    yield from _look_alikes(context, changed)
    for path, entry in changed.items():
        if _is_guarded(path):
            yield from _entry_problems(path, entry)
        if _is_side_file(path):
            message = "must not exist: git or a controller would interpret it"
            yield Problem(path, 0, 0, "", message, SIDE, "remove it, and commit the removal")
        if path.lower() == ATTRIBUTES:
            if entry.mode != FILE_MODE:
                yield from _entry_problems(path, entry)
            is_file = entry.mode in FILE_MODES
            content = context.workspace.repository.blobs([entry.id])[entry.id] if is_file else b""
            if rewriting := _rewriting_line(content):
                number, line = rewriting
                message = f"must not change the content of files of sweeps, got {safe_repr(line)}"
                hint = "begin its pattern with another folder, `/data/**`; or add these lines below it: "
                yield Problem(path, number, 1, "", message, SIDE, hint + "; ".join(ATTRIBUTE_LINES))


def _is_side_file(path: str) -> bool:
    """Return whether git or a controller would interpret a file for the whole repository, or a place of sweeps."""
    folder, _, name = path.rpartition("/")
    if not SIDE_FILE.fullmatch(name):
        return False
    if not folder:
        return name.lower() not in AT_THE_ROOT
    return file_system_name(folder.partition("/")[0]) in PLACES


def _look_alikes(context: CheckContext, changed: Collection[str]) -> Iterator[Problem]:
    """Refuse a name that some file systems confuse with a name that sweepledger or git reads.

    Folders of other projects may look like those of sweeps if no tool reads the paths that such a system would show.
    """
    for path in changed:
        last = path.rpartition("/")[2]
        if file_system_name(last) == ATTRIBUTES != last:
            yield _look_alike(path, ATTRIBUTES, last)
    firsts = {path.partition("/")[0] for path in context.index}
    odd = {first: meant for first in firsts if (meant := file_system_name(first)) in PLACES - {first}}
    if not odd:  # as in nearly every repository
        return
    begun = ("/".join(path.split("/", 2)[:2]) for path in context.index if path.partition("/")[0] not in odd)
    entries = set(map(_on_some_file_systems, begun))
    for path in sorted(context.index):
        first, _, rest = path.partition("/")
        if first in odd and _is_read(odd[first], file_system_name(rest.partition("/")[0]), entries):
            yield _look_alike(path, odd[first], first)


def _look_alike(path: str, meant: str, name: str) -> Problem:
    message = f"must not be a name that some file systems take for {meant}, got {name!r}"
    return Problem(path, 0, 0, "", message, "file-name", "rename it")


def _is_read(place: str, name: str, entries: Collection[str]) -> bool:
    """Return whether any tool reads a file of this name below a folder, or in place of a file."""
    if not name or f"{place}/{name}" in entries or name in READ_NAMES.get(place, ()):
        return True
    if place == SPECS:
        return SPEC_LIKE.fullmatch(name) is not None
    return place == RESULTS and f"{SPECS}/{name}{SUFFIX}" in entries


def _twins(context: CheckContext, changed: Iterable[str]) -> Iterator[Problem]:
    """Refuse a path in a checked folder whose file, on some file systems, would be in another one, or replace it."""
    odd = {path: _on_some_file_systems(path) for path in changed if _is_guarded(path)}
    odd = {path: meant for path, meant in odd.items() if meant != path}
    if not odd:  # as in nearly every change
        return
    places = set(context.index)
    for path in context.index:
        places.update(_folders(path))
    for path, meant in odd.items():
        named = zip((*_folders(path), path), (*_folders(meant), meant), strict=True)
        twin = next((plain for name, plain in named if name != plain and plain in places), None)
        if twin is not None:
            message = f"must not be a name that some file systems take for {twin}"
            yield Problem(path, 0, 0, "", message, "file-name", "rename it")


def _on_some_file_systems(path: str) -> str:
    return "/".join(map(file_system_name, path.split("/")))


def _folders(path: str) -> tuple[str, ...]:
    """Return the folders that contain a file, outermost first."""
    return tuple(path[:end] for end, character in enumerate(path) if character == "/")


def _size_problems(context: CheckContext, changed: Mapping[str, Entry]) -> Iterator[Problem]:
    read = {path: entry.id for path, entry in changed.items() if path.lower().startswith(READ)}
    sizes = context.workspace.repository.sizes(read.values())
    total = sum(sizes.get(identity, 0) for identity in read.values())
    if total > LARGEST_CHANGE:
        largest = max(read, key=lambda path: (sizes.get(read[path], 0), path))
        message = f"is the largest in {total >> 20} MiB of changes; at most {LARGEST_CHANGE >> 20} are read"
        hint = "split the change, or keep data elsewhere"
        yield Problem(largest, 0, 0, "", message, "change-too-large", hint)


def _is_guarded(path: str) -> bool:
    return path == "sweepledger.yaml" or path.startswith(GENERATED_FOLDERS)


def _rewriting_line(content: bytes) -> tuple[int, str] | None:
    """Return the first line, with its number, whose attributes may change files of sweeps, also future ones.

    Such a line sets an attribute, or defines a macro with one, unless its pattern begins with a
    plain name of another folder, or all lines for the files of sweeps come after it. As in git, `#` starts a
    comment only at the start of a line, and nothing needs to separate a quoted pattern from its attributes. To git a
    NUL ends the line, or the file if it reads the index.
    """
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"\n")
    lines = [line.strip(BLANKS) for line in text.split(b"\n")]
    last = [len(lines) - 1 - lines[::-1].index(line) for line in _PROTECTING if line in lines]
    protected = min(last) if len(last) == len(_PROTECTING) else -1
    for number, line in enumerate(lines):
        words = line.split()
        if not words or line.startswith(b"#"):
            continue
        quoted = QUOTED.match(line)
        attributes = [*words[1:], *(line[quoted.end() :].split() if quoted else ())]
        is_macro, folder = MACRO in words[0], _FIRST_FOLDER.match(line)
        is_apart = folder and file_system_name((folder[1] or folder[2]).decode()) not in PLACES
        if not is_macro and b"\0" not in content and (number < protected or is_apart):
            continue
        if is_macro or any(
            word.partition(b"=")[0].decode(errors="replace") in REWRITING for word in attributes
        ):
            return number + 1, line.decode(errors="replace")
    return None


_PROTECTING = tuple(line.encode() for line in ATTRIBUTE_LINES)
_FIRST_FOLDER = re.compile(rb"(?:/([A-Za-z0-9_.-]+)/\S*|([A-Za-z0-9_.-]+)/\S+)(?=[ \t])")
"""The folder of a pattern that matches only paths below it."""


def _entry_problems(path: str, entry: Entry) -> Iterator[Problem]:
    if entry.mode != FILE_MODE:
        message = f"must be a plain file of mode {FILE_MODE}, got {KINDS.get(entry.mode, entry.mode)}"
        yield Problem(
            path, 0, 0, "", message, "file-mode", f"`git rm --cached` it, or `chmod 644` ({FILE_MODE})"
        )
    if PYTHON_CACHE in path.split("/"):
        message = "must not exist: it is a cache of Python"
        yield Problem(path, 0, 0, "", message, SIDE, "`git rm` it, and name __pycache__/ in .gitignore")
    if not path.isprintable() or any(part.startswith("-") for part in path.split("/")):
        message = f"must have a printable name without a leading dash, got {path!r}"
        yield Problem(path, 0, 0, "", message, "file-name", "rename it")


REVIEWED = (
    ".gitattributes",
    *(path for host in GIT_HOSTS for path in host.workflows),
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


def check_attributes(context: CheckContext, specs: Iterable[ParsedSpec]) -> Iterator[Problem]:
    """Refuse attributes that hide the diff of code or reviewed files, rewrite code, or merge either automatically.

    Git itself reads the attributes. Where none have changed, only changed files are looked at.
    """
    changed = context.changed_paths("")
    has_new_rules = any(path.rpartition("/")[2].lower() == ATTRIBUTES for path in changed)
    if not any(path.rpartition("/")[2].lower() == ATTRIBUTES for path in context.index):
        return
    code = {run.code_selection or CodeSelection((run.code_path,)) for run in (one.sweep.run for one in specs)}
    if has_new_rules:  # otherwise the code of other sweeps is as visible as it was
        newest = {batch.sweep: batch for batch in context.present}.values()
        locked = (batch.lock.program.code for batch in batches.readable(newest))
        code |= {each.selection or CodeSelection((each.path,)) for each in locked}
    selectors = [selection.selector() for selection in code]

    def is_code(path: str) -> bool:
        return path.partition("/")[0] not in SWEEP_NAMES and any(select(path) for select in selectors)

    paths = [
        path
        for path in (context.index if has_new_rules else changed & context.index.keys())
        if path.startswith(MERGED) or is_code(path)
    ]
    refused: dict[tuple[str, str, str], str] = {}
    for path, attributes in index_attributes(
        context.workspace.repository, sorted(paths), with_unset=True
    ).items():
        runs = is_code(path)
        rewriting = REWRITING if has_new_rules and _is_guarded(path) else REWRITES if runs else frozenset()
        for name, value in attributes:
            is_read = runs or path.startswith(REVIEWED)
            for refusal in _refusals(name, value, is_read=is_read, rewriting=rewriting):
                refused.setdefault(refusal, path)  # one path is enough to find the line of each
    hint = "remove the attribute, or limit it to files that nothing runs, such as overlays/**"
    for (must, attribute, word), path in refused.items():
        yield Problem(path, 0, 0, "", f"{must}, but {ATTRIBUTES} sets {attribute}", word, hint)


def _refusals(
    name: str, value: str, *, is_read: bool, rewriting: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the requirement that a path with an attribute breaks, the attribute, and the code of the problem.

    `is_read`: a person reviews the path; `rewriting`: the attributes that would change files for trials or commands.
    """
    given = f"{name}={value}"
    hides = (name in FOLDED and value not in {"false", "unset"}) or (name, value) == ("diff", "unset")
    if is_read and hides:
        yield "must be shown to reviewers", name if name in FOLDED else "-diff", "diff-hidden"
    if name == "merge" and value not in PLAIN_MERGES:
        yield "must be merged by git or by a person", given, "merge-driver"
    if rewriting and ((name, value) in LINE_ENDS or (name in rewriting and value != "unset")):
        yield "must be checked out as it was reviewed", given, SIDE
