"""The repository a command works in: its root, settings, specs, and the commit that stands."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from generator import spec
from generator.errors import RepositoryError, SpecError, UsageError
from generator.problems import Problem
from generator.reader.assignments import BYTES
from generator.repo.files import clear_staging, read_input, refuse_links, storage, write_file
from generator.repo.git import Repository
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep
from generator.untrusted import read_regular

SETTINGS_FILE = "sweepledger.yaml"
SPECS = "sweeps"
SUFFIX = ".yaml"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*", re.ASCII)
"""File names that a line can hold as they are; no sweep is called otherwise."""

STATE = ".sweepledger"
"""Where this machine keeps what is not the repository's: the engine's state, and folders being written."""


@dataclass(frozen=True)
class Workspace:
    """A repository with a work tree, ready to be read."""

    repository: Repository
    settings: Settings

    @property
    def root(self) -> Path:
        """The work tree's root."""
        return self.repository.folder

    @classmethod
    def find(cls, start: Path, *, unpinned: bool = False) -> "Workspace":
        """Open the repository around a folder. Raises RepositoryError, SpecError for bad settings.

        With `unpinned` an image without a digest is none.
        """
        repository = Repository.find(start)
        path = repository.folder / SETTINGS_FILE
        if not os.path.lexists(path):
            return cls(repository, Settings())
        return cls(repository, parse_settings(path, unpinned=unpinned))

    def standing(self, base: str | None) -> str | None:
        """Resolve the commit whose batches stand: `base`, else the remote's branch, else HEAD.

        None while nothing was ever committed. Raises UsageError for a revision that does not exist.
        """
        if base is not None:
            found = self.repository.commit(base)
            if found is None:
                raise UsageError(f"--base {base} names no commit", hint="try a branch, a tag or HEAD~1")
            return found
        upstream = f"refs/remotes/{self.settings.remote}/{self.settings.branch}"
        return self.repository.commit(upstream) or self.repository.commit("HEAD")

    def spec_paths(self, names: Iterable[str] = ()) -> tuple[Path, ...]:
        """Find specs by sweep name or by path; all of `sweeps/` if none is named.

        Raises UsageError, StorageError where a link leads to them.
        """
        refuse_links(self.root, SPECS)
        chosen = tuple(names)
        if not chosen:
            return tuple(sorted((self.root / SPECS).glob("*.y*ml")))
        return tuple(self._spec_path(name) for name in chosen)

    def _spec_path(self, name: str) -> Path:
        by_name = self.root / SPECS / f"{name}.yaml"
        for candidate in (by_name, Path(name)):
            if os.path.lexists(candidate) and not candidate.is_dir():
                path = candidate.absolute()
                if path.is_relative_to(self.root):
                    refuse_links(self.root, path.parent.relative_to(self.root))
                return path
        known = ", ".join(path.stem for path in sorted((self.root / SPECS).glob("*.yaml"))) or "none yet"
        raise UsageError(
            f"no sweep {name!r}: neither {SPECS}/{name}.yaml nor a file", hint=f"sweeps: {known}"
        )

    def parse(self, path: Path) -> Sweep | tuple[Problem, ...]:
        """Read one spec, and what it names beside itself. Raises StorageError."""
        if not PLAIN_NAME.fullmatch(path.name) or not self.shown(path).isprintable():
            message = f"must have a name of letters, digits and dashes, got {path.name!r}"
            hint = "rename it like the sweep"
            return (Problem(self.shown(path), 0, 0, "", message, "name-mismatch", hint),)
        if path.suffix != SUFFIX:
            message = f"must have a name that ends in {SUFFIX}, got {path.name!r}"
            hint = f"rename it {path.stem}{SUFFIX}"
            return (Problem(self.shown(path), 0, 0, "", message, "name-mismatch", hint),)
        return spec.parse(read_input(path), self.shown(path), self.settings, beside=self.beside(path))

    def beside(self, path: Path) -> Callable[[str], bytes | None]:
        """Give what reads the files that a spec names beside itself. It raises StorageError."""

        def read(name: str) -> bytes | None:
            with storage(path.parent / name):
                return read_regular(path.parent / name, BYTES)

        return read

    def sweeps(self, names: Iterable[str] = ()) -> tuple[Sweep, ...]:
        """Read specs; every problem of every file at once. Raises SpecError."""
        return self.read(self.spec_paths(names))

    def read(self, paths: Iterable[Path]) -> tuple[Sweep, ...]:
        """Read the specs at some paths, at none as well; problems as for `sweeps`. Raises SpecError."""
        read = [self.parse(path) for path in paths]
        problems = [problem for found in read if isinstance(found, tuple) for problem in found]
        if problems:
            raise SpecError(problems)
        return tuple(found for found in read if isinstance(found, Sweep))

    def shown(self, path: Path) -> str:
        """Give a path as a person would type it at the root."""
        try:
            return path.absolute().relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def remote_url(self, remote: str | None = None) -> str:
        """Give the URL of the remote that controllers follow. Raises RepositoryError if there is none."""
        name = remote or self.settings.remote
        url = self.repository.remote_url(name)
        if url is None:
            raise RepositoryError(
                f"no remote {name!r}",
                hint=f"`git remote add {name} URL`, or name another by `remote:` in {SETTINGS_FILE}",
            )
        if "://" not in url and not url.startswith("/") and (self.root / url).exists():
            return str((self.root / url).resolve())
        return url


def parse_settings(path: Path, *, unpinned: bool = False) -> Settings:
    """Read sweepledger.yaml. Raises SpecError with every problem."""
    found = spec.parse_settings(read_input(path), path.name, unpinned=unpinned)
    if isinstance(found, tuple):
        raise SpecError(found)
    return found


def staging_folder(workspace: Workspace) -> Path:
    """Give a folder on the repository's file system that git and controllers never read."""
    folder = workspace.root / STATE
    refuse_links(workspace.root, Path(STATE, "staging"))
    write_file(folder / ".gitignore", b"*\n")
    clear_staging(folder / "staging")
    return folder / "staging"
