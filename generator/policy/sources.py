"""What a kustomization may make kustomize do: nothing that leaves the repository or runs a program."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from generator.formats import yaml
from generator.problems import Problem

CODE = "kustomization-unsafe"

KEYS = frozenset(
    {
        "apiVersion",
        "kind",
        "namespace",
        "resources",
        "labels",
        "patches",
        "images",
        "configMapGenerator",
        "generatorOptions",
    }
)
"""Those the generator writes. Others fetch, run plug-ins or read files from anywhere."""

BASE = re.compile(r"\.\./\.\./\.\./base/[a-z0-9-]+/v[0-9]+", re.ASCII)


def vet(content: bytes, files: Collection[str], *, place: str) -> tuple[Problem, ...]:
    """Read a kustomization.yaml before kustomize does; `files` are those of its own folder.

    Kustomize follows a URL with a request, and an alias bomb with gigabytes, before anything can be checked.
    """
    file = f"{place}/kustomization.yaml"
    if b"&" in content or b"*" in content:
        return (Problem(file, 0, 0, "", "must hold no anchor or alias", CODE),)
    try:
        listed = yaml.load(content)
    except (ValueError, RecursionError) as error:
        return (Problem(file, 0, 0, "", str(error), CODE),)
    if not isinstance(listed, dict):
        return (Problem(file, 0, 0, "", "must be a mapping", CODE),)
    return tuple(Problem(file, 0, 0, path, message, CODE) for path, message in _findings(listed, files))


def _findings(listed: dict[str, Any], files: Collection[str]) -> Iterator[tuple[str, str]]:
    for key in sorted(set(listed) - KEYS, key=str):
        yield str(key), f"must be one of {', '.join(sorted(KEYS))}, got {key!r}"
    for entry in _list(listed.get("resources")):
        if not isinstance(entry, str) or (entry not in files and BASE.fullmatch(entry) is None):
            yield "resources", f"must be a file beside it or a base of the repository, got {entry!r}"
    for entry in _list(listed.get("patches")):
        path = entry.get("path") if isinstance(entry, dict) else None
        if path not in files:
            yield "patches", f"must be a file beside it, got {path!r}"
    for entry in _list(listed.get("configMapGenerator")):
        names = _list(entry.get("files")) if isinstance(entry, dict) else [entry]
        if (
            not isinstance(entry, dict)
            or set(entry) - {"name", "namespace", "files"}
            or not set(names) <= set(files)
        ):
            yield "configMapGenerator", f"must name files beside it, got {names!r}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
