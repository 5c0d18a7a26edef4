"""The program that a sweep's next batch runs, and whether its code has the files that the spec names.

The locked program is kept if it satisfies the spec; otherwise the current one is locked.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from posixpath import join, normpath
from typing import TYPE_CHECKING

from msgspec import structs

from sweepledger.errors import GeneratorError, RepositoryError, SpecError
from sweepledger.formats import config_file, environment_lock
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.outside_imports import follow_imports
from sweepledger.operations.repository.program_options import (
    ARGS,
    SWITCH_MACROS,
    OptionKind,
    ProgramOptions,
    read_options,
)
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.problems import Problem, Severity, list_names
from sweepledger.reader import safe_repr
from sweepledger.repo import git
from sweepledger.repo.files import read_input
from sweepledger.spec import ParsedSpec
from sweepledger.spec.rules.program import CONFIG_BASE, DATA_PLACE, WORKDIR
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.program import (
    LOCAL_IMAGE,
    REPOSITORY,
    Code,
    ConfigFile,
    ConfigFormat,
    Data,
    EnvironmentLock,
    Macro,
    Program,
    parse_element,
)
from sweepledger.structs.quantities import format_bytes
from sweepledger.structs.settings import TrialSettings
from sweepledger.structs.sweep import Script, Sweep
from sweepledger.structs.values import bytes_digest, canonical_json

if TYPE_CHECKING:
    from sweepledger.plan.review import FileChange

UNKNOWN_TREE = ""
"""A placeholder for the code tree if only the rest of a program matters."""


def requested_program(trials: TrialSettings, sweep: Sweep, *, tree: str = UNKNOWN_TREE) -> Program:
    """Return the program that spec and settings require, given its code tree."""
    run = sweep.run
    dataset = trials.dataset_named(run.data)
    assert run.data is None or dataset is not None, "the spec's checks refuse unknown datasets"
    return Program(
        image=trials.image_of(run.image),
        command=sweep.command,
        code=requested_code(sweep, tree=tree),
        data=None if dataset is None else Data(dataset.name, dataset.identity, run.data_places),
        environment=None if run.environment_lock is None else EnvironmentLock(run.environment_lock, ""),
        workdir=run.workdir,
        config=run.config,
    )


def requested_code(sweep: Sweep, *, tree: str = UNKNOWN_TREE) -> Code:
    """Return the code that a spec requires, given its tree."""
    run = sweep.run
    return Code(run.code_path if run.code_selection is None else REPOSITORY, tree, run.code_selection)


def code_tree_at(repository: git.Repository, commit: str, sweep: Sweep) -> str | None:
    """Return the tree of a sweep's code at a commit; None if it has none."""
    return git.code_tree(repository, commit, sweep.run.code_path, sweep.run.code_selection)


LISTED_FILES = 5
"""Files that a warning names; `sweep plan` lists more."""


def file_changes(repository: git.Repository, old: Code, new: Code) -> "tuple[FileChange, ...] | None":
    """Return the differences between two versions of the code at one path; None if this clone lacks a version."""
    from sweepledger.plan.review import FileChange  # noqa: PLC0415 - most commands compare no code, and plan nothing

    try:
        for code in (old, new):
            git.store_code(repository, code, ["HEAD"])
        changed = git.changed_lines(repository, old.tree, new.tree)
    except RepositoryError:
        return None
    prefix = "" if new.path == "." else f"{new.path}/"
    return tuple(FileChange(f"{prefix}{path}", *(lines or (None, None))) for path, lines in changed.items())


NEIGHBOURS = frozenset({".ipynb", ".log", ".md"})
"""Ends of names of files that no program needs; `run.code.exclude` leaves others out."""
PAGES = "site.json"
"""The file by which a folder is one of `sweep site`."""


def uncommitted_code(repository: git.Repository, sweep: Sweep) -> tuple[str, ...]:
    """Return the paths of a sweep's code that differ from HEAD, including untracked files, without notes and pages."""
    return _without_neighbours(repository, git.uncommitted_code(repository, requested_code(sweep)))


def _without_neighbours(repository: git.Repository, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        path
        for path in paths
        if PurePosixPath(path).suffix not in NEIGHBOURS
        and not any((repository.folder / parent / PAGES).is_file() for parent in PurePosixPath(path).parents)
    )


def _uncommitted_program(
    repository: git.Repository, sweep: Sweep, uncommitted: Iterable[str]
) -> tuple[str, ...]:
    """Return the uncommitted paths of a sweep's code that affect its trials.

    A new file counts only if the program imports it or the command names it; for a program not in Python, every one.
    """
    paths = _without_neighbours(repository, uncommitted)
    if not paths:
        return ()
    new = git.untracked_paths(repository, *paths)
    folder = repository.folder / sweep.run.program_folder
    imported = {
        (folder / path).relative_to(repository.folder).as_posix()
        for path in follow_imports(folder, sweep.command, sweep.run.workdir or ".")[1]
    }
    command = " ".join(sweep.command)
    return tuple(
        path
        for path in paths
        if path not in new or not imported or path in imported or PurePosixPath(path).name in command
    )


def current_program(workspace: Workspace, sweep: Sweep) -> Program:
    """Return the current program. Raises RepositoryError if the code has uncommitted changes."""
    repository = workspace.repository
    code = git.committed_code(
        repository, "HEAD", requested_code(sweep), _named_files(sweep), is_compared=True
    )
    if code is None:
        raise RepositoryError(
            "nothing is committed yet, so no code can be locked", hint="commit the code first"
        )
    dirty = _uncommitted_program(repository, sweep, code.uncommitted)
    if dirty:
        path, commits = sweep.run.code_path, f"`sweep run {sweep.name} --commit-code`"
        hint = f"commit or stash them (`git status {path}`), or {commits}"
        if sweep.run.code_selection is not None:
            hint = f"commit them ({commits} does), or leave them out of the code by .gitignore or `run.code.exclude`"
        message = f"has uncommitted changes ({list_names(dirty)}): a batch runs committed code only"
        raise RepositoryError(f"{requested_code(sweep)} {message}", hint=hint)
    return _program_of(code, workspace.settings.trials, sweep, "the last commit")


def _named_files(sweep: Sweep) -> list[str]:
    """Return the files, besides its code, that identify a program."""
    config = sweep.run.config
    return [path for path in (sweep.run.environment_lock, config and config.base) if path]


def _program_of(at: git.CommittedCode, trials: TrialSettings, sweep: Sweep, described: str) -> Program:
    if at.tree is not None:
        program = requested_program(trials, sweep, tree=at.tree)
        # A power of two, so that few edits change a manifest.
        code = structs.replace(program.code, disk=max(LEAST_DISK, 1 << (at.disk - 1).bit_length()))
        lock, config = _environment_lock(at, sweep, described), sweep.run.config
        config = config and read_config(sweep, config, at.texts.get(config.base), described)
        return structs.replace(program, code=code, environment=lock, config=config)
    if sweep.run.code_selection is None:
        raise RepositoryError(
            f"{sweep.run.code_path}/ is not a folder in {described}, so no code can be locked",
            hint=f"commit it, or set the code's folder: `run: {{code: {{path: …}}}}` in {sweep.path}",
        )
    raise RepositoryError(
        f"run.code selects no file of {described}, so no code can be locked",
        hint=f"commit the code, or change paths, include and exclude under run.code in {sweep.path}",
    )


LEAST_DISK = 1 << 24
"""Bytes that are reserved for any code."""
MOST_CODE_FILES, LARGEST_CODE = 100_000, 1 << 30
"""Files and folders that the launcher copies for each trial, and the bytes that they may take."""


def _named_file(sweep: Sweep, key: str, path: str, content: bytes | None, described: str) -> bytes:
    """Return the content of a file of the code that a key of a spec names. Raises RepositoryError if it has none."""
    selection = sweep.run.code_selection
    if content is None or (selection is not None and not selection.selector()(path)):
        raise RepositoryError(
            f"{key} must name a file of the code in {described}, got {safe_repr(path)}",
            hint=f"commit it, and select it by run.code in {sweep.path}",
        )
    return content


def _environment_lock(at: git.CommittedCode, sweep: Sweep, described: str) -> EnvironmentLock | None:
    """Return the lock file of the environment at a commit. Raises RepositoryError if trials could not use it."""
    path = sweep.run.environment_lock
    if path is None:
        return None
    content = _named_file(sweep, "run.environment_lock", path, at.texts.get(path), described)
    try:
        environment_lock.read(path, content)
    except ValueError as error:
        raise RepositoryError(
            f"{path} {error}", hint=f"run.environment_lock in {sweep.path} takes {environment_lock.FORMATS}"
        ) from error
    return EnvironmentLock(path, bytes_digest(content))


def read_config(sweep: Sweep, config: ConfigFile, content: bytes | None, described: str) -> ConfigFile:
    """Return a configuration file with its content. Raises RepositoryError if it cannot be read."""
    content = _named_file(sweep, "run.config.base", config.base, content, described)
    try:
        return structs.replace(config, text=config_file.read(content, config.format))
    except ValueError as error:
        raise RepositoryError(
            f"{config.base}: {error}", hint=f"it is run.config.base of {sweep.path}"
        ) from error


def unfit_parameters(parsed: ParsedSpec, config: ConfigFile | None) -> Iterator[Problem]:
    """Yield a problem for each parameter that is not in the configuration file of the trials."""
    if config is None or not config.text:
        return
    data, space = json.loads(config.text), parsed.sweep.design.space
    listed = {parameter.name: parameter.domain.listed for parameter in space.parameters}
    for name in parsed.sweep.columns:
        message, hint = "", "write `add: true` beside base if the program reads it"
        try:
            config_file.value_at(data, name)
        except KeyError:
            if not config.add:
                message = f"must be a name in {config.base}, got {name!r}"
                hint = did_you_mean(name, config_file.names_in(data)) or hint
        except TypeError as error:
            message, hint = f"must be a name in {config.base}, and {error}", f"change {config.base}"
        if any(other.startswith(f"{name}.") for other in parsed.sweep.columns):
            message, hint = f"must not contain another parameter in {config.base}, got {name!r}", "rename it"
        elif config.format is ConfigFormat.TOML and None in listed.get(name, ()):
            message, hint = f"must not be null in {config.base}, because TOML has none", "remove the value"
        if message:
            place = ("search", "parameters", name) if name in listed else ("run", "config")
            yield parsed.source.problem(message, *place, code=CONFIG_BASE, hint=hint)


def config_changes(sweep: Sweep, program: Program) -> str:
    """Return how trials differ from their configuration file; an empty text if they have none."""
    config = program.config
    if config is None or not config.text:
        return ""
    data, changes = json.loads(config.text), []
    for parameter in sweep.design.space.parameters:
        with suppress(TypeError):
            try:
                before = json.dumps(config_file.value_at(data, parameter.name))
            except KeyError:
                before = "nothing"
            values = ", ".join(map(canonical_json, parameter.domain.listed)) or parameter.domain.text
            changes.append(f"{parameter.name} {before} → {values}")
    return f"{config.base}: {'; '.join(changes)}"


def locked_program(workspace: Workspace, sweep: Sweep, newest: Program | None) -> Program:
    """Return the newest batch's program if it satisfies the spec, else the current one."""
    return _reusable_program(workspace.settings.trials, sweep, newest) or current_program(workspace, sweep)


def locked_program_at(
    repository: git.Repository, commit: str, trials: TrialSettings, sweep: Sweep, newest: Program | None
) -> Program:
    """Return the newest batch's program if it satisfies the spec, else one with the code of a commit.

    Raises RepositoryError.
    """
    kept = _reusable_program(trials, sweep, newest)
    if kept is not None:
        return kept
    code = git.committed_code(repository, commit, requested_code(sweep), _named_files(sweep))
    assert code is not None, "the commit exists"
    return _program_of(code, trials, sweep, commit[:12])


def ranked_program(repository: git.Repository, commit: str | None, locks: Sequence[BatchLock]) -> str | None:
    """Return the digest of the program that a commit's spec and code describe; the locks are sorted by number.

    None if no lock has it, if all locks have one program, or if the spec cannot be read. After `git revert`, it is an
    earlier program. Programs that only retries of failed trials ran do not count.
    """
    locks = [lock for lock in locks if not lock.repairs]
    if commit is None or len({lock.program.digest for lock in locks}) < 2:  # noqa: PLR2004 - a choice
        return None
    specs = at_commit.SpecReader.at(repository, commit)
    sweep = specs.sweep(commit, locks[-1].spec.path)
    if sweep is None:
        return None
    requested = requested_program(
        specs.settings.trials, sweep, tree=code_tree_at(repository, commit, sweep) or UNKNOWN_TREE
    )
    named = sweep.run.image is not None
    return next(
        (
            lock.program.digest
            for lock in reversed(locks)
            if lock.program.code.tree == requested.code.tree
            and lock.program.answers(requested, image_named=named)
        ),
        None,
    )


def _reusable_program(trials: TrialSettings, sweep: Sweep, newest: Program | None) -> Program | None:
    named = sweep.run.image is not None
    requested = requested_program(trials, sweep)
    return newest if newest is not None and newest.answers(requested, image_named=named) else None


NOT_FOUND = re.compile(
    r"No such file or directory: '([^'\0]{1,500})'"
    r"|the command '\./([^'\0]{1,500})' cannot be started: No such file or directory"
)
"""How Python, many programs and the launcher say which file they did not find."""


def left_out_files(workspace: Workspace, errors: Iterable[str]) -> tuple[str, ...]:
    """Return the files of the work tree, sorted, that trials did not find because their code lacks them."""
    from sweepledger.engine.local.launcher_worker import WORK  # noqa: PLC0415 - only after a failure

    # Programs name files of a trial's own copy of the code by the path of their script.
    copy_of_code = re.compile(rf"/.*/trial-[0-9a-f]+/{WORK}/")
    matches = [found for error in errors for found in NOT_FOUND.finditer(error)]
    named = {
        normpath(copy_of_code.sub("", found[1] or found[2], count=1)): bool(found[2]) for found in matches
    }
    # os.path.exists is false where Path.exists raises, such as for a name that is too long.
    return tuple(
        path
        for path, is_command in sorted(named.items())
        if not path.startswith(("/", "../"))
        if os.path.exists(workspace.root / path)  # noqa: PTH110
        # A script in the code cannot be started either if its interpreter is not installed.
        and not (is_command and git.work_tree_files(workspace.repository, path))
    )


LEFT_OUT = (
    "{}: here, but not in the committed code that run.code selects, which trials run in a copy: "
    "commit it there, select its folder, too, or pass its absolute path"
)
"""What is said of such files."""
MISSING_SCRIPT_CODE = "program-missing"
START_FILE = "__main__.py"
"""A folder with it can be started as if it were a file."""

ListFolder = Callable[[PurePosixPath], frozenset[str] | None]
"""Returns the files in a folder of the code; None if unknown."""


def missing_scripts(repository: git.Repository, parsed: ParsedSpec, program: Program) -> Iterator[Problem]:
    """Yield a problem for each script that a program's code lacks: an error if the sweep cannot run without it.

    Also for a working directory that the code lacks, for paths of datasets that the code occupies, and for files
    whose checked-out content differs from git's.
    """
    run, code = parsed.sweep.run, program.code
    files = _committed_files(repository, code)
    if files is not None:
        yield from _rewritten_code(repository, parsed, files)
        yield from _escaping_links(repository, parsed, files, program)
        yield from _too_large(repository, parsed, files, program)
    yield from unfit_parameters(parsed, program.config)
    if not (parsed.sweep.scripts or run.workdir or run.data_places):
        return
    list_folder: ListFolder = lambda _folder: None  # noqa: E731 - a clone may lack the code
    if files is not None:
        links = {path for path, entry in files.items() if entry.is_link}
        if run.workdir is not None:
            above = {run.workdir, *map(str, PurePosixPath(run.workdir).parents)}
            is_there = any(path.startswith(f"{run.workdir}/") for path in files)
            if above.isdisjoint(links) and not is_there:  # a link may lead to it
                yield _missing_workdir(repository.folder, parsed, files)
                return
        yield from _taken_places(parsed, files)
        start = run.program_folder if code.selection or run.workdir else code.path
        list_folder = _list_committed(files, links, start)
    yield from _missing_scripts(repository.folder, parsed, list_folder, "committed file")


def _escaping_links(
    repository: git.Repository, parsed: ParsedSpec, files: Mapping[str, git.Entry], program: Program
) -> Iterator[Problem]:
    """Yield a warning for links to outside the code: all trials share their targets, and no digest covers them."""
    links = {path: entry.id for path, entry in files.items() if entry.is_link}
    contents, root = repository.blobs(links.values()), normpath(program.code.path)
    left = []
    for path, identity in links.items():
        target = os.fsdecode(contents[identity])
        if target.startswith("/"):
            leaves = program.image == LOCAL_IMAGE  # else the digest of the image covers it
        else:
            place = normpath(join(path, "..", target))
            leaves = place.split("/")[0] in {"..", ".git"} or not (
                root == REPOSITORY or f"{place}/".startswith(f"{root}/")
            )
        if leaves:
            left.append(f"{path} -> {target}")
    if left:
        message = (
            f"has links out of the code, to what all trials share and no digest covers: {list_names(left)}"
        )
        hint = "commit the files in their place, or name the folder under datasets and run.data"
        yield parsed.source.problem(
            message, "run", "code_path", code="path-outside", hint=hint, severity=Severity.WARNING
        )


CODE_TOO_LARGE = "code-too-large"
LARGEST_NAMED = 3


def _too_large(
    repository: git.Repository, parsed: ParsedSpec, files: Mapping[str, git.Entry], program: Program
) -> Iterator[Problem]:
    """Yield a problem if the code is larger than the launcher accepts: every pod would fail."""
    folders = {parent for path in files for parent in PurePosixPath(path).parents}
    count = len(files) + len(folders)
    if program.code.disk <= LARGEST_CODE and count <= MOST_CODE_FILES:
        return
    disk = git.disk_by_file(repository, files)
    largest = sorted(files, key=lambda path: (-disk[path], path))[:LARGEST_NAMED]
    size = f"{sum(disk.values()) / (1 << 20):,.1f} MiB"
    message = (
        f"each trial has a copy of the code, which must have at most {MOST_CODE_FILES:,} files and folders and take"
        f" at most {format_bytes(LARGEST_CODE)}B, got {count:,} and {size}; the largest: {list_names(largest)}"
    )
    hint = (
        "leave files out by run.code.exclude, or choose them by run.code.include or path (run.workdir: where trials"
        " start in them), and put data into a dataset (run.data); then commit"
    )
    yield parsed.source.problem(message, "run", "code_path", code=CODE_TOO_LARGE, hint=hint)


CODE_BYTES = "code-bytes"
REWRITES = frozenset({"filter", "ident", "working-tree-encoding"})
"""Attributes by which a check-out has other bytes than git; ends of lines follow from the bytes."""
POINTER = re.compile(
    rb"version \S+\n(?:ext-\S+ \S+\n)*oid sha256:[0-9a-f]{64}\nsize [0-9]+\n?|/annex/objects/\S+\n?"
)
"""The text that git-lfs or git-annex commits instead of a file."""
LARGEST_POINTER = 1023
ENCRYPTED = b"\0GITCRYPT\0"
UNDO = "add the line `/{path} -filter -ident -working-tree-encoding` to .gitattributes, `git add --renormalize {path}`"
STATES = {
    "filter=lfs": ("is kept by git-lfs, so git has a pointer", f"`git lfs pull`, {UNDO}"),
    "pointer": ("is a pointer of git-lfs or git-annex", f"`git lfs pull`, {UNDO}"),
    "encrypted": ("is encrypted by git-crypt", UNDO),
    "submodule": ("is a submodule, whose files git does not have", "commit its files in its place"),
    "unwatched": (
        "has others here, which git was told not to compare",
        "`git update-index --no-assume-unchanged {path}`, `git update-index --no-skip-worktree {path}`",
    ),
}
"""The words of the message, and a way out besides excluding the file, by attribute or kind."""


def refuse_rewritten_code(repository: git.Repository, parsed: ParsedSpec) -> None:
    """Raise SpecError if files of the work tree's code would differ in a commit."""
    run = parsed.sweep.run
    entries = git.Checkout(repository, *run.code_roots).entries
    paths = git.work_tree_files(repository, *run.code_roots)
    chosen = paths if run.code_selection is None else filter(run.code_selection.selector(), paths)
    problems = [*_rewritten_code(repository, parsed, {path: entries.get(path) for path in chosen})]
    if problems:
        raise SpecError(problems)


def _rewritten_code(
    repository: git.Repository, parsed: ParsedSpec, files: Mapping[str, git.Entry | None]
) -> Iterator[Problem]:
    """Yield a problem for each reason why files of the code differ here from those in git, which trials run."""
    ways: dict[str, list[str]] = {}
    for path, attributes in git.index_attributes(repository, files).items():
        for name, value in attributes:
            if name in REWRITES:
                ways.setdefault(name if value == "set" else f"{name}={value}", []).append(path)
    code = {path: entry for path, entry in files.items() if entry and entry.mode != git.SUBMODULE_MODE}
    for path, content in _small_contents(repository, code).items():
        if POINTER.fullmatch(content):
            ways.setdefault("pointer", []).append(path)
        elif content.startswith(ENCRYPTED):
            ways.setdefault("encrypted", []).append(path)
    checkout = git.Checkout(repository, *parsed.sweep.run.code_roots)
    modules = [path for path, entry in checkout.entries.items() if entry.mode == git.SUBMODULE_MODE]
    ways |= {"submodule": held} if (held := [path for path in modules if _holds(parsed, path)]) else {}
    ways |= {"unwatched": sorted(edited)} if (edited := checkout.unwatched & files.keys()) else {}
    selection = parsed.sweep.run.code_selection
    exclude = "list what trials need by run.code.path" if selection is None else "add it to run.code.exclude"
    for way, paths in ways.items():
        state, instead = STATES.get(way, (f"has the attribute {way}, which changes it here", UNDO))
        hint = f"{exclude}, or put it into a dataset (run.data), or {instead}; then commit"
        message = f"trials run the bytes that git has, and {list_names(paths)} {state}"
        hint = hint.replace("{path}", paths[0])
        yield parsed.source.problem(message, "run", "code_path", code=CODE_BYTES, hint=hint)


def _small_contents(repository: git.Repository, code: Mapping[str, git.Entry]) -> dict[str, bytes]:
    """Return the contents of files that may be pointers; none in a partial clone, which would fetch each file."""
    if repository.promisor is not None:
        return {}
    sizes = repository.sizes(entry.id for entry in code.values())
    contents = repository.blobs(identity for identity, size in sizes.items() if size <= LARGEST_POINTER)
    return {path: contents[entry.id] for path, entry in code.items() if entry.id in contents}


def _holds(parsed: ParsedSpec, folder: str) -> bool:
    """Return whether a sweep's code may have files of a folder, judged only by the folder's name."""
    run = parsed.sweep.run
    if run.code_selection is None:
        return f"{folder}/".startswith(f"{run.code_path.rstrip('/')}/")
    select = run.code_selection.selector()
    names = ("x", *(pattern.rpartition("/")[2].replace("*", "x") for pattern in run.code_selection.include))
    return any(select(f"{folder}/{name}") for name in names)


def _missing_workdir(root: Path, parsed: ParsedSpec, paths: Collection[str]) -> Problem:
    folder = parsed.sweep.run.workdir or REPOSITORY
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {REPOSITORY}
    is_here = os.path.isdir(root / folder)  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
    hint = (
        f"it exists here: commit its files, and select them by run.code; `sweep generate {parsed.sweep.name} "
        "--update` locks them"
        if is_here
        else did_you_mean(folder, folders)
    )
    message = f"must be a folder of the committed code, got {safe_repr(folder)}"
    return parsed.source.problem(message, "run", "workdir", code=WORKDIR, hint=hint)


def _taken_places(parsed: ParsedSpec, paths: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each dataset at whose path the code has a file or folder."""
    run = parsed.sweep.run
    for name, written in run.data_places.items():
        place = normpath(join(run.workdir or REPOSITORY, written))
        taken = next(
            (path for path in paths if f"{path}/".startswith(f"{place}/") or place.startswith(f"{path}/")),
            None,
        )
        if taken is not None:
            message = (
                f"must be at a path that the code does not have, got {safe_repr(written)}: there is {taken}"
            )
            hint = f"exclude {taken} with `run.code.exclude`, or choose another path"
            yield parsed.source.problem(message, "run", "data", name, code=DATA_PLACE, hint=hint)


def missing_scripts_here(repository: git.Repository, parsed: ParsedSpec) -> Iterator[Problem]:
    """Yield warnings for scripts that the work tree lacks, as these may still be written, and for changed bytes."""
    sweep, root, problems = parsed.sweep, repository.folder, list[Problem]()
    if (config := sweep.run.config) is not None:
        content = None
        with suppress(GeneratorError, OSError):
            content = read_input(root / config.base)
        try:
            yield from unfit_parameters(parsed, read_config(sweep, config, content, "the work tree"))
        except RepositoryError as error:
            message = str(error).removeprefix("run.config.base ")
            place = ("run", "config", "base")
            problems.append(parsed.source.problem(message, *place, code=CONFIG_BASE, hint=error.hint))
    run, head = sweep.run, repository.commit("HEAD")
    if head is not None and (tree := code_tree_at(repository, head, sweep)) is not None:
        code = _committed_files(repository, requested_code(sweep, tree=tree)) or {}
        problems += _rewritten_code(repository, parsed, code)
    if os.path.isdir(root / run.program_folder):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        problems += _missing_scripts(root, parsed, _list_work_tree(root / run.program_folder), "file")
    elif run.workdir is not None:
        message = f"must be a folder of the code, and there is none here, got {safe_repr(run.workdir)}"
        problems.append(parsed.source.problem(message, "run", "workdir", code=WORKDIR))
    else:
        message = f"{run.code_path}/ is not a folder here, and it should contain the code"
        hint = "set the code's folder: `run: {code: {path: …}}`; the default is trainer"
        problems.append(
            parsed.source.problem(message, "run", "code_path", code=MISSING_SCRIPT_CODE, hint=hint)
        )
    yield from (replace(problem, severity=Severity.WARNING) for problem in problems)


ARGUMENT_ERROR = re.compile(
    r"unrecognized arguments|no such option|unrecognized options|unexpected (?:extra )?argument"
    r"|unknown (?:option|flag)|ambiguous option|expected (?:one|at least one) argument|ignored explicit argument"
    r"|takes no value",
    re.IGNORECASE,
)
"""How parsers of command lines say that an argument is none of theirs."""


def argument_advice(root: Path, sweep: Sweep, error: str) -> Iterator[str]:
    """Yield advice if the program refused its arguments: names and a macro that fit the options in its source."""
    if not ARGUMENT_ERROR.search(error):
        return
    for _, script, options in _script_options(root, sweep):
        names = [parameter.name for parameter in sweep.design.space.parameters]
        for name in names:
            spelling = options.spelling(name)
            if spelling not in {name, None}:
                yield f"rename the parameter {name} to {spelling}, as {script.path} calls it"
            elif options.is_complete and spelling is None:
                meant = did_you_mean(name, options.kinds) or "remove the parameter"
                yield f"{script.path} has no option --{name}: {meant}"
        macros = options.macros(dict.fromkeys(names))
        if macros != (ARGS,) and not {*macros} & {*sweep.command}:
            texts = " ".join(f'"{macro}"' for macro in macros)
            yield f'write {texts} in place of "{ARGS}"'


def _script_options(root: Path, sweep: Sweep) -> Iterator[tuple[int, Script, ProgramOptions]]:
    """Yield each readable script of the work tree, with its number and the arguments that its source declares."""
    for number, script in enumerate(sweep.scripts):
        with suppress(GeneratorError, OSError):
            yield number, script, read_options(read_input(root / sweep.run.program_folder / script.path))


MISREAD_BOOLEAN_CODE = "boolean-argument"
BOOLEAN_HINTS = {
    OptionKind.TRUTH: (
        "takes the text False for true, by type=bool",
        "write type=lambda text: text == 'True'",
    ),
    OptionKind.ON_OFF: ("takes no value", 'add "${{args_switches:{}}}" to the command'),
    OptionKind.SWITCH: ("takes no value", 'add "${{args_no_boolean_flags:{}}}" to the command'),
}


def misread_booleans(root: Path, parsed: ParsedSpec) -> Iterator[Problem]:
    """Yield a warning for each option, of a script of the work tree, that misreads true and false."""
    sweep = parsed.sweep
    booleans = {
        parameter.name
        for parameter in sweep.design.space.parameters
        if not parameter.domain.is_constant
        and any(isinstance(each, bool) for each in parameter.domain.listed)
    }
    lists = [part for text in sweep.command for part in parse_element(text) if isinstance(part, Macro)]
    macros = {name: str(Macro(part.name)) for part in lists for name in (part.argument or "").split(",")}
    for number, script, options in _script_options(root, sweep):
        for name, kind in options.kinds.items():
            macro = macros.get(name, macros.get(""))
            misread = {ARGS, *SWITCH_MACROS.values()} - {SWITCH_MACROS.get(kind)}
            if name not in booleans or kind not in BOOLEAN_HINTS or macro not in misread:
                continue
            message, hint = BOOLEAN_HINTS[kind]
            yield parsed.source.problem(
                f"{name} is true or false, and the option --{name} of {safe_repr(script.path)} {message}",
                *("scripts", number),
                code=MISREAD_BOOLEAN_CODE,
                hint=hint.format(name),
                severity=Severity.WARNING,
            )


def _missing_scripts(
    root: Path, parsed: ParsedSpec, list_folder: ListFolder, description: str
) -> Iterator[Problem]:
    sweep, folder = parsed.sweep, parsed.sweep.run.program_folder
    code = requested_code(sweep) if sweep.run.workdir is None else f"{folder}/, where trials start"
    for number, script in enumerate(sweep.scripts):
        if not script.is_inside:  # only an image could contain it
            shown = safe_repr(script.path)
            message = f"must begin with {folder}/, since a trial starts beside that folder, got {shown}"
            is_below = _has_script(list_folder, script.path)
            image = f"of the repository a trial has {folder}/ alone; what only the image holds has an absolute path"
            hint: str | None = f"write {folder}/{script.path}" if is_below else image
        elif not _has_script(list_folder, script.path):
            message = f"must name a {description} of {code}, got {safe_repr(script.path)}"
            hint = _missing_script_hint(root, sweep, script, list_folder)
        else:
            continue
        yield parsed.source.problem(
            message, "scripts", number, code=MISSING_SCRIPT_CODE, hint=hint, severity=script.severity
        )


def _has_script(list_folder: ListFolder, script: str) -> bool:
    path = PurePosixPath(script)
    names = list_folder(path.parent)
    return names is None or path.name in names or START_FILE in (list_folder(path) or ())


def _missing_script_hint(root: Path, sweep: Sweep, script: Script, list_folder: ListFolder) -> str | None:
    folder, selection = sweep.run.program_folder, sweep.run.code_selection
    if _has_script(_list_work_tree(root / folder), script.path):
        if selection is not None and not selection.selector()(str(PurePosixPath(folder, script.path))):
            return "it exists here, but run.code does not select it: change paths, include or exclude"
        return (
            f"it exists here: commit it; `sweep generate {sweep.name} --update` locks the new code for a batch that "
            "exists"
        )
    inside = script.path.removeprefix(f"{folder}/")
    if inside != script.path and _has_script(list_folder, inside):
        return f"the path begins inside {folder}/: write {inside}"
    path = PurePosixPath(script.path)
    return did_you_mean(path.name, list_folder(path.parent) or ())


def _committed_files(repository: git.Repository, code: Code) -> Mapping[str, git.Entry] | None:
    """Return the files of some code, by their paths in the repository; None if a shallow clone lacks them."""
    try:
        git.store_code(repository, code, ["HEAD"])
        entries = repository.files(code.tree)
    except RepositoryError:
        return None
    return {normpath(join(code.path, path)): entry for path, entry in entries.items()}


def _list_committed(files: Iterable[str], links: Collection[str], start: str) -> ListFolder:
    """Return a function that lists folders of some code; scripts are relative to one of these folders."""
    folder = PurePosixPath(start)
    folders: dict[str, set[str]] = {}
    for file in files:
        parent, _, name = file.rpartition("/")
        folders.setdefault(parent or ".", set()).add(name)

    def look(below: PurePosixPath) -> frozenset[str] | None:
        path = folder / below
        if not {str(path), *map(str, path.parents)}.isdisjoint(links):
            return None
        return frozenset(folders.get(str(path), ()))

    return look


def _list_work_tree(root: Path) -> ListFolder:
    def look(folder: PurePosixPath) -> frozenset[str] | None:
        try:
            return frozenset(entry.name for entry in (root / folder).iterdir() if not entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError:
            return None

    return look
