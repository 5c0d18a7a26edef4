"""`sweep bootstrap`: the platform's files into the repository, and what is left for a person to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator import spec
from generator.commands import foundation
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.errors import RepositoryError, SpecError, UsageError
from generator.formats import bootstrap as file
from generator.formats.bootstrap import BOOTSTRAP_FILE, Bootstrap
from generator.reader.edits import with_value
from generator.render import platform
from generator.render.platform import Needed, Source, flux
from generator.repo import batches, files
from generator.structs.settings import Controller, ResultsMode, Settings
from generator.structs.sweep import Shape
from generator.structs.tree import FileTree
from generator.structs.values import bytes_digest

FOLDER = "clusters"
EMPTY_SETTINGS = "version: 1\n"


@dataclass(frozen=True)
class Asked:
    """What a person said; None: as it was asked for before, else what the repository says."""

    controller: Controller
    url: str | None = None
    branch: str | None = None
    shapes: tuple[Shape, ...] | None = None
    is_public: bool | None = None
    mode: ResultsMode | None = None
    force: bool = False


@dataclass(frozen=True)
class Bootstrapped:
    """What was written, and what no file can do."""

    settings: Settings
    source: Source
    written: tuple[str, ...]
    removed: tuple[str, ...]
    changed_settings: tuple[str, ...]
    secrets: tuple[Needed, ...]
    gaps: tuple[str, ...]
    """What the settings do not say, and what the platform lacks because of it."""

    @property
    def results_folder(self) -> tuple[str, ...]:
        """Give the commands that make the root of the results export."""
        return platform.results_folder(self.settings)

    @property
    def ruleset(self) -> str:
        """Say how a server without hooks confines the collector."""
        return platform.ruleset(self.settings, self.source)


def bootstrap(workspace: Workspace, asked: Asked) -> Bootstrapped:
    """Write the platform's files and set `controller:` and `results.mode:`; twice changes nothing.

    What a person edited is overwritten with `force` only. Raises UsageError, RepositoryError, SpecError.
    """
    files.refuse_links(workspace.root, FOLDER, flux.ACTIVE, SETTINGS_FILE)
    before = _before(workspace)
    source = _source(workspace, asked, before)
    edited = _edited(workspace, _edits(workspace.settings, asked, source))
    settings = edited.settings
    active = [batch.name for batch in batches.in_work_tree(workspace.root) if batch.is_active]
    wanted = platform.platform(settings, source, foundation.bases(workspace.root).files, active)
    tree = FileTree({**wanted.files, BOOTSTRAP_FILE: _record(settings, source, wanted)})
    found = _found(workspace)
    owned = _owned(settings, before, found)
    if not asked.force:
        _refuse_edited(tree, found, owned)
    written = tuple(path for path, content in tree if _write(workspace, path, content, found))
    stale = tuple(sorted(path for path in owned if path in found and path not in tree.files))
    for path in stale:
        with files.storage(workspace.root / path):
            (workspace.root / path).unlink()
    if edited.changes:
        files.write_file(workspace.root / SETTINGS_FILE, edited.text.encode())
    needed = platform.secrets(settings, source)
    return Bootstrapped(settings, source, written, stale, edited.changes, needed, gaps(settings))


def gaps(settings: Settings) -> tuple[str, ...]:
    """Say what the settings leave open."""
    found = []
    names = platform.Names.of(settings)
    if "collector" not in settings.images:
        found.append(
            "images.collector: not set, so the collector is suspended; `sweep pin collector` sets it"
        )
    if settings.results.nfs is None:
        found.append(
            f"results.nfs: not set, so no volume is written; make the claim "
            f"{settings.results.claim!r} in {names.trials} (ReadWriteMany) and in {names.collector} "
            "(ReadOnlyMany) over the same data"
        )
    if not settings.pools or any(pool.max_nodes is None for pool in settings.pools.values()):
        found.append("pools: without max_nodes for each, the quota bounds no cpu, memory or GPUs")
    return tuple(found)


def _before(workspace: Workspace) -> Bootstrap | None:
    path = workspace.root / BOOTSTRAP_FILE
    if not path.exists():
        return None
    try:
        return file.read(files.read_input(path))
    except ValueError as error:
        raise RepositoryError(
            f"{BOOTSTRAP_FILE}: {error}", hint="remove it and run `sweep bootstrap` with --force"
        ) from error


def _source(workspace: Workspace, asked: Asked, before: Bootstrap | None) -> Source:
    """Take what was asked for, else what was asked for last time, else what the repository says."""
    url = asked.url or (before.url if before else workspace.remote_url())
    branch = asked.branch or (before.branch if before else workspace.settings.branch)
    shapes = asked.shapes if asked.shapes is not None else (before.shapes if before else ())
    public = asked.is_public if asked.is_public is not None else bool(before and before.is_public)
    try:
        source = Source(url, branch, tuple(sorted(set(shapes))), is_public=public)
    except ValueError as error:
        raise UsageError(
            str(error), hint="--repo https://git.example/team/sweeps.git --branch main"
        ) from error
    if asked.controller is Controller.FLUX and source.scheme == "file":
        raise UsageError("Flux reads no file:// URL", hint="serve the repository by https or ssh")
    if not all(shape.is_distributed for shape in source.shapes):
        raise UsageError("--shape is for distributed shapes; plain Jobs are always allowed")
    return source


def _edits(settings: Settings, asked: Asked, source: Source) -> Mapping[tuple[str, ...], str]:
    """List what the settings must say, by key."""
    mode = asked.mode or settings.results.mode
    edits = {("controller",): asked.controller.value, ("results", "mode"): mode.value}
    if settings.branch != source.branch:
        edits["branch",] = source.branch
    return edits


@dataclass(frozen=True)
class _Edited:
    text: str
    settings: Settings
    changes: tuple[str, ...]


def _edited(workspace: Workspace, edits: Mapping[tuple[str, ...], str]) -> _Edited:
    """Change the settings in their text, so that comments stay, and read the result as everybody will."""
    path = workspace.root / SETTINGS_FILE
    text = files.read_input(path).decode() if path.exists() else EMPTY_SETTINGS
    changes = []
    for place, value in edits.items():
        try:
            before, text = text, with_value(text, place, value)
        except ValueError as error:
            raise RepositoryError(
                f"{SETTINGS_FILE}: {error}", hint=f"set {'.'.join(place)}: {value} by hand"
            ) from error
        if text != before:
            changes.append(f"{'.'.join(place)}: {value}")
    read = spec.parse_settings(text.encode(), SETTINGS_FILE)
    if isinstance(read, tuple):
        raise SpecError(read)
    return _Edited(text, read, tuple(changes))


def _record(settings: Settings, source: Source, wanted: FileTree) -> bytes:
    """Batches' Kustomizations are not in it: they come and go with the batches."""
    digests = {path: digest for path, digest in wanted.digests.items() if not _is_of_batch(path)}
    made = Bootstrap(settings.controller, source.url, source.branch, source.shapes, source.is_public, digests)
    return file.write(made, banner=platform.BANNER).encode()


def _is_of_batch(path: str) -> bool:
    return path.startswith(f"{flux.ACTIVE}/") and path.endswith(".yaml")


def _found(workspace: Workspace) -> dict[str, bytes]:
    tree = files.read_folder(workspace.root / FOLDER)
    return {f"{FOLDER}/{path}": content for path, content in tree}


def _owned(settings: Settings, before: Bootstrap | None, found: Mapping[str, bytes]) -> set[str]:
    """List the files that are as this command, or `sweep generate`, once wrote them."""
    digests = before.files if before else {}
    owned = {path for path, content in found.items() if digests.get(path) == bytes_digest(content)}
    for path in filter(_is_of_batch, found):
        name = path.removeprefix(f"{flux.ACTIVE}/").removesuffix(".yaml")
        if found[path] == flux.batch_kustomization(name, settings):
            owned.add(path)
    return owned


def _refuse_edited(tree: FileTree, found: Mapping[str, bytes], owned: set[str]) -> None:
    edited = [
        path
        for path, content in tree
        if path in found and found[path] != content and path not in owned and path != BOOTSTRAP_FILE
    ]
    if edited:
        raise RepositoryError(
            "edited by hand, so not overwritten: " + ", ".join(edited),
            hint=f"say it in {SETTINGS_FILE} instead, or drop the edits with --force",
        )


def _write(workspace: Workspace, path: str, content: bytes, found: Mapping[str, bytes]) -> bool:
    if _is_of_batch(path) and path in found:
        return False  # a batch that stands is never written anew
    return files.write_file(workspace.root / path, content)
