"""Lock files of Python environments: the versions that they pin. Read only; other tools write them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from sweepledger.problems import TextError

FORMATS = "uv.lock, pylock.toml, conda-lock.yml, or requirements*.txt with hashes"
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*===?\s*(?P<version>[^\s;]+)(?P<rest>.*)"
)


Pin = tuple[str, str, bool]
"""A normalized name, a version that is allowed (several if platforms differ), and whether every platform has it."""


def differences(pins: Iterable[Pin], installed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted differences of installed distributions; packages missing in the file are ignored."""
    present = {_normalized(name): version for name, version in installed.items()}
    differing: list[str] = []
    for name, own in groupby(sorted(pins), key=lambda pin: pin[0]):
        _, versions, required = zip(*own, strict=True)
        pinned, version = " or ".join(dict.fromkeys(versions)), present.get(name)
        if version is None and any(required):
            differing.append(f"{name} is missing, and {pinned} is locked")
        elif version is not None:
            # As `==` in PEP 440 does: a local version counts only if the lock has one.
            releases = {_release(version), _release(version.partition("+")[0])}
            if releases.isdisjoint(map(_release, versions)):
                differing.append(f"{name} is {version}, and {pinned} is locked")
    return tuple(differing)


def _normalized(name: str) -> str:
    """Return the normalized name for comparing distributions, as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version.lower().removeprefix("v"))


def is_lock_name(path: str) -> bool:
    """Return whether a file has the name of a lock file in a known format."""
    return _reader(path) is not None


def read(path: str, content: bytes) -> tuple[Pin, ...]:
    """Return the versions that a lock file pins; its name determines the format. Raises ValueError with the reason."""
    reader = _reader(path)
    if reader is None:
        raise ValueError(f"is not {FORMATS}")
    try:
        pins = tuple(
            (_normalized(name), version, required) for name, version, required in reader(content.decode())
        )
    except (UnicodeDecodeError, TextError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cannot be read as {FORMATS}: {error}") from error
    if not pins:
        raise ValueError("pins no package")
    return pins


def _toml(text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - with its patterns, a fortieth of what `sweep validate` takes

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TextError(str(error)) from error


def _uv_lock(text: str) -> Iterator[Pin]:
    for package in _toml(text)["package"]:
        if (
            "version" in package
            and not {"editable", "virtual", "directory"} & package.get("source", {}).keys()
        ):
            yield package["name"], package["version"], False


def _pylock(text: str) -> Iterator[Pin]:
    for package in _toml(text)["packages"]:
        if "version" in package and "directory" not in package:
            yield package["name"], package["version"], "marker" not in package


def _conda_lock(text: str) -> Iterator[Pin]:
    from sweepledger.formats import yaml  # noqa: PLC0415 - likewise

    for package in yaml.load(text)["package"]:
        yield package["name"], str(package["version"]), False


def _requirements(text: str) -> Iterator[Pin]:
    for line in text.replace("\\\n", " ").splitlines():
        requirement = re.sub(r"(^|\s)#.*", "", line).strip()
        if not requirement or requirement.startswith("-"):
            continue
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or "--hash=" not in match["rest"]:
            raise ValueError(f"must pin every package by == and --hash, got {requirement[:80]!r}")
        yield match["name"], match["version"], ";" not in match["rest"]


_READERS: Mapping[str, Callable[[str], Iterator[Pin]]] = {
    "uv.lock": _uv_lock,
    "pylock.toml": _pylock,
    "pylock.*.toml": _pylock,
    "*conda-lock.yml": _conda_lock,
    "*conda-lock.yaml": _conda_lock,
    "requirements*.txt": _requirements,
}
"""By patterns of file names."""


def _reader(path: str) -> Callable[[str], Iterator[Pin]] | None:
    name = PurePosixPath(path).name
    return next((reader for pattern, reader in _READERS.items() if fnmatchcase(name, pattern)), None)
