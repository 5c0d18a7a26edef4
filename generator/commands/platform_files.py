"""`clusters/` as it stands and as the settings have it: `sweep bootstrap` writes it, `sweep check` compares.

One rule for edits: a file that a person changed is that person's, kept and said to be so, until `--force`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from generator.commands import foundation
from generator.commands.workspace import Workspace
from generator.errors import RepositoryError
from generator.formats import bootstrap as file
from generator.formats.bootstrap import BOOTSTRAP_FILE, Bootstrap
from generator.render import platform
from generator.render.platform import Source, flux
from generator.repo import batches, files
from generator.structs.settings import Settings
from generator.structs.sweep import Shape, Sweep
from generator.structs.tree import FileTree
from generator.structs.values import bytes_digest

FOLDER = "clusters"


@dataclass(frozen=True)
class Comparison:
    """The files that settings and record give, and those that are there."""

    wanted: FileTree
    found: Mapping[str, bytes]
    recorded: frozenset[str]
    """What was written last time."""
    owned: frozenset[str]
    """What is still as it was written."""

    @property
    def missing(self) -> tuple[str, ...]:
        """List what is not there."""
        return tuple(path for path, _ in self.wanted if path not in self.found)

    @property
    def changed(self) -> tuple[str, ...]:
        """List what the settings give otherwise by now; a batch that stands is never written anew."""
        return tuple(
            path
            for path, content in self.wanted
            if self.found.get(path, content) != content
            and (path in self.owned or path == BOOTSTRAP_FILE)
            and not is_of_batch(path)
        )

    @property
    def stale(self) -> tuple[str, ...]:
        """List what the settings no longer give."""
        return tuple(sorted(path for path in self.owned if path not in self.wanted.files))

    @property
    def edited(self) -> tuple[str, ...]:
        """List what a person changed."""
        ours = {*self.wanted.files, *self.recorded} - self.owned - {BOOTSTRAP_FILE}
        return tuple(
            path
            for path in sorted(ours & self.found.keys())
            if self.found[path] != self.wanted.files.get(path) and not is_of_batch(path)
        )


def record(workspace: Workspace) -> Bootstrap | None:
    """Read what was asked for last time. Raises RepositoryError."""
    path = workspace.root / BOOTSTRAP_FILE
    if not path.exists():
        return None
    try:
        return file.read(files.read_input(path))
    except ValueError as error:
        raise RepositoryError(
            f"{BOOTSTRAP_FILE}: {error}", hint="remove it and run `sweep bootstrap` with --force"
        ) from error


def compare(workspace: Workspace, settings: Settings, source: Source, before: Bootstrap | None) -> Comparison:
    """Hold `clusters/` against what these settings give. Raises StorageError for links."""
    active = [batch.name for batch in batches.in_work_tree(workspace.root) if batch.is_active]
    made = platform.platform(settings, source, foundation.bases(workspace.root).files, active)
    wanted = FileTree({**made.files, BOOTSTRAP_FILE: _record(settings, source, made)})
    tree = files.read_folder(workspace.root / FOLDER)
    found = {f"{FOLDER}/{path}": content for path, content in tree}
    recorded = before.files if before else {}
    return Comparison(wanted, found, frozenset(recorded), _owned(settings, recorded, found))


def shapes_in_use(workspace: Workspace) -> frozenset[Shape]:
    """List the distributed shapes of active batches and of specs; a spec that is wrong asks for none."""
    active = (batch.lock.shape for batch in batches.in_work_tree(workspace.root) if batch.is_active)
    read = (workspace.parse(path) for path in workspace.spec_paths())
    asked = (sweep.run.shape for sweep in read if isinstance(sweep, Sweep))
    return frozenset(shape for shape in (*active, *asked) if shape is not None and shape.is_distributed)


def is_of_batch(path: str) -> bool:
    """Tell whether a file comes and goes with a batch: `sweep generate` writes it, no record has it."""
    return path.startswith(f"{flux.ACTIVE}/") and path.endswith(".yaml")


def _record(settings: Settings, source: Source, made: FileTree) -> bytes:
    digests = {path: digest for path, digest in made.digests.items() if not is_of_batch(path)}
    asked = Bootstrap(
        settings.controller, source.url, source.branch, source.shapes, source.is_public, digests
    )
    return file.write(asked, banner=platform.BANNER).encode()


def _owned(settings: Settings, recorded: Mapping[str, str], found: Mapping[str, bytes]) -> frozenset[str]:
    """List the files that are as this command, or `sweep generate`, once wrote them."""
    owned = {path for path, content in found.items() if recorded.get(path) == bytes_digest(content)}
    for path in filter(is_of_batch, found):
        name = path.removeprefix(f"{flux.ACTIVE}/").removesuffix(".yaml")
        if found[path] == flux.batch_kustomization(name, settings):
            owned.add(path)
    return frozenset(owned)
