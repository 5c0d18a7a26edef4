"""Which files of the repository are the code of a trial: paths, and patterns in a strict dialect of .gitignore."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

SWEEP_NAMES = frozenset(
    {".github", ".sweepledger", "base", "clusters", "overlays", "results", "sweepledger.yaml", "sweeps"}
)
"""Names at the root of a repository that a selection never contains: what sweeps are made of, and what they change."""

REPOSITORY = "."
"""The path of the whole repository."""
MAX_PATTERN = 200
_PATTERN = re.compile(r"(?:[^\[\]\\!#\x00-\x1f\x7f]|\[!?[A-Za-z0-9_.-]+\])+")
_SEVERAL_FOLDERS = "**"


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern for paths of the repository, with the meaning that git gives it in a .gitignore at the root.

    Unlike there, no pattern starts with `!` or `#`, and no character is escaped: what git reads differently from
    what it looks like is an error.
    """

    parts: tuple[str, ...]
    """Patterns of names; `**` stands for any number of folders."""
    only_folders: bool

    @classmethod
    def parse(cls, text: str) -> "PathPattern":
        """Return the pattern of a text. Raises ValueError with the rule that the text breaks."""
        if len(text) > MAX_PATTERN:
            raise ValueError(f"must have at most {MAX_PATTERN} characters")
        if not _PATTERN.fullmatch(text) or text != text.strip():
            raise ValueError(
                "must have no '!', '#', '\\' or space around it, and '[…]' of plain characters only"
            )
        inner = text.removeprefix("/").removesuffix("/")
        parts = tuple(inner.split("/"))
        if any(part in {"", ".", ".."} or (_SEVERAL_FOLDERS in part and part != "**") for part in parts):
            raise ValueError("must have names between slashes, without '.' and '..', and '**' alone")
        is_anchored = "/" in text.removesuffix("/")
        return cls(parts if is_anchored else (_SEVERAL_FOLDERS, *parts), text.endswith("/"))

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the pattern matches this path itself, not only a folder above it."""
        if self.only_folders and not is_folder:
            return False
        names = path.split("/")
        # Positions that the parts so far can reach: linear, unlike a regular expression with several `**`.
        reached = {0}
        for number, part in enumerate(self.parts, start=1):
            if part == _SEVERAL_FOLDERS:
                # At the end it stands for everything inside a folder, not for the folder itself.
                least = min(reached, default=len(names)) + (number == len(self.parts))
                reached = set(range(least, len(names) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
        return len(names) in reached


@dataclass(frozen=True, slots=True)
class CodeSelection:
    """Files below some paths that match a pattern of `include`, if there is one, and none of `exclude`."""

    paths: tuple[str, ...]
    """Files and folders; `.` is the repository."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "the repository" if REPOSITORY in self.paths else ", ".join(self.paths)

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths to list files below; none if the whole repository must be listed."""
        return () if REPOSITORY in self.paths else self.paths

    def selector(self) -> Callable[[str], bool]:
        """Return a function that tells whether a file, given by its path, is selected."""
        choose = self.walk()
        return lambda path: choose(path, is_folder=False)

    def walk(self) -> "Walk":
        """Return a walk over paths, which remembers what it knows about folders."""
        return Walk(self)

    def as_data(self) -> dict[str, Any]:
        """Return the selection as in batch.yaml; patterns that it does not have are left out."""
        patterns = {"include": self.include, "exclude": self.exclude}
        return {"paths": list(self.paths)} | {key: list(value) for key, value in patterns.items() if value}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "CodeSelection":
        """Return the selection from the data of `as_data`. Raises KeyError, TypeError or ValueError."""
        selection = cls(tuple(data["paths"]), tuple(data.get("include", ())), tuple(data.get("exclude", ())))
        selection.walk()
        return selection


class Walk:
    """Decides about the paths of one tree; a folder that matches a pattern decides for everything in it."""

    def __init__(self, selection: CodeSelection) -> None:
        self._places = tuple((path, f"{path}/") for path in selection.roots)
        self._include = tuple(map(PathPattern.parse, selection.include))
        self._exclude = tuple(map(PathPattern.parse, selection.exclude))
        self._folders: dict[str, tuple[bool, bool]] = {"": (not self._include, False)}

    def __call__(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a file is selected, or whether a folder may contain a selected file."""
        if path.partition("/")[0] in SWEEP_NAMES:
            return False
        if self._places and not any(
            path == place or path.startswith(below) or (is_folder and place.startswith(f"{path}/"))
            for place, below in self._places
        ):
            return False
        is_included, is_excluded = self._state(path, is_folder=is_folder)
        return (is_included or is_folder) and not is_excluded

    def _state(self, path: str, *, is_folder: bool) -> tuple[bool, bool]:
        known = self._folders.get(path) if is_folder else None
        if known is not None:
            return known
        is_included, is_excluded = self._state(path.rpartition("/")[0], is_folder=True)
        state = (
            is_included or any(pattern.matches(path, is_folder=is_folder) for pattern in self._include),
            is_excluded or any(pattern.matches(path, is_folder=is_folder) for pattern in self._exclude),
        )
        if is_folder:
            self._folders[path] = state
        return state
