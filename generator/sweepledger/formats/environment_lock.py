"""Lock files of Python environments: the versions that they pin. Read only; other tools write them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sweepledger.problems import TextError

FORMATS = "uv.lock, pylock.toml, conda-lock.yml, or requirements*.txt with hashes"
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*===?\s*(?P<version>[^\s;]+)(?P<rest>.*)"
)
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class PinnedVersions:
    """What a lock file allows."""

    versions: Mapping[str, frozenset[str]]
    """By normalized name; several if platforms differ."""
    required: frozenset[str]
    """Names that every platform must have."""

    def differences(self, installed: Mapping[str, str]) -> tuple[str, ...]:
        """Return how installed distributions differ, sorted; packages that the file does not name are ignored."""
        present = {normalized_name(name): version for name, version in installed.items()}
        return tuple(sorted(self._differences(present)))

    def _differences(self, present: Mapping[str, str]) -> Iterator[str]:
        for name, versions in self.versions.items():
            pinned = " or ".join(sorted(versions))
            if name not in present:
                if name in self.required:
                    yield f"{name} is missing, and {pinned} is locked"
            elif not any(_is_same(present[name], version) for version in versions):
                yield f"{name} is {present[name]}, and {pinned} is locked"


def normalized_name(name: str) -> str:
    """Return the name by which distributions are compared, as in PEP 503."""
    return _SEPARATORS.sub("-", name).lower()


def _is_same(installed: str, locked: str) -> bool:
    """Compare as `==` in PEP 440 does: a local version counts only if the lock has one."""
    candidates = {installed, installed.partition("+")[0]} if "+" not in locked else {installed}
    return _release(locked) in {_release(version) for version in candidates}


def _release(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version.lower().removeprefix("v"))


def is_lock_name(path: str) -> bool:
    """Return whether a file is named like a lock file of a known format."""
    return _reader(PurePosixPath(path).name) is not None


def read(path: str, content: bytes) -> PinnedVersions:
    """Return what a lock file pins; its name tells the format. Raises ValueError with the reason."""
    reader = _reader(PurePosixPath(path).name)
    if reader is None:
        raise ValueError(f"is not {FORMATS}")
    try:
        pins = tuple(reader(content.decode()))
    except (UnicodeDecodeError, TextError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cannot be read as {FORMATS}: {error}") from error
    if not pins:
        raise ValueError("pins no package")
    versions: dict[str, frozenset[str]] = {}
    for name, version, _ in pins:
        key = normalized_name(name)
        versions[key] = versions.get(key, frozenset()) | {version}
    return PinnedVersions(
        versions, frozenset(normalized_name(name) for name, _, required in pins if required)
    )


_Pin = tuple[str, str, bool]


def _reader(name: str) -> Any:
    if name == "uv.lock":
        return _uv_lock
    if name == "pylock.toml" or (name.startswith("pylock.") and name.endswith(".toml")):
        return _pylock
    if name.endswith(("conda-lock.yml", "conda-lock.yaml")):
        return _conda_lock
    return _requirements if name.startswith("requirements") and name.endswith(".txt") else None


def _toml(text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - with its patterns, a fortieth of what `sweep validate` takes

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TextError(str(error)) from error


def _uv_lock(text: str) -> Iterator[_Pin]:
    for package in _toml(text)["package"]:
        if (
            "version" in package
            and not {"editable", "virtual", "directory"} & package.get("source", {}).keys()
        ):
            yield package["name"], package["version"], False


def _pylock(text: str) -> Iterator[_Pin]:
    for package in _toml(text)["packages"]:
        if "version" in package and "directory" not in package:
            yield package["name"], package["version"], "marker" not in package


def _conda_lock(text: str) -> Iterator[_Pin]:
    from sweepledger.formats import yaml  # noqa: PLC0415 - likewise

    for package in yaml.load(text)["package"]:
        yield package["name"], str(package["version"]), False


def _requirements(text: str) -> Iterator[_Pin]:
    for line in text.replace("\\\n", " ").splitlines():
        requirement = re.sub(r"(^|\s)#.*", "", line).strip()
        if not requirement or requirement.startswith("-"):
            continue
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or "--hash=" not in match["rest"]:
            raise ValueError(f"must pin every package by == and --hash, got {requirement[:80]!r}")
        yield match["name"], match["version"], ";" not in match["rest"]
