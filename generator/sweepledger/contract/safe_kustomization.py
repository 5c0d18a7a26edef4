"""Checks kustomizations before a build: they must not read outside the repository or run programs.

The overlay and its bases are checked before kustomize starts: a URL would cause a request, and a YAML alias
could expand to gigabytes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sweepledger.formats import yaml
from sweepledger.problems import Problem

CODE = "kustomization-unsafe"
FILE = "kustomization.yaml"

API = {"Kustomization": "kustomize.config.k8s.io/v1beta1", "Component": "kustomize.config.k8s.io/v1alpha1"}
KEYS = frozenset(
    {
        "apiVersion",
        "kind",
        "namespace",
        "resources",
        "components",
        "labels",
        "patches",
        "images",
        "configMapGenerator",
        "generatorOptions",
    }
)
"""Keys that the generator writes. Others download, run plug-ins or read files from anywhere."""

BASE_KEYS = frozenset({"apiVersion", "kind", "resources", "patches", "labels", "generatorOptions"})
"""Keys of a base or component, which refers only to files in its own folder."""
LAUNCHER_KEYS = frozenset({"apiVersion", "kind", "configMapGenerator", "generatorOptions"})
"""Keys of the launcher's base, which is one ConfigMap."""
PACK, PACK_PROGRAM = "components/pack/", "pack.py"
"""The component that adds a program to the launcher's ConfigMap, and its file; it also changes the pod."""

PATCH_KEYS = frozenset({"path", "target", "options"})
"""Without `patch`, because only patches in files can be checked; the one below is the exception."""
RENAMED = re.compile(r"- op: replace\n  path: /metadata/name\n  value: [a-z0-9-]+\n?", re.ASCII)
"""The patch that gives the launcher's ConfigMap the batch's name."""
RENAMING: Mapping[str, Any] = MappingProxyType(
    {"target": {"kind": "ConfigMap", "name": "launcher"}, "options": {"allowNameChange": True}}
)
TARGET_KEYS = frozenset({"group", "version", "kind", "name"})
PATCH_OPTIONS = frozenset({"allowNameChange", "allowKindChange"})
LABEL_KEYS = frozenset({"pairs", "includeTemplates"})
"""Without `includeSelectors`, because the cluster sets the selector of a Job."""
IMAGE_KEYS = frozenset({"name", "newName", "newTag", "digest"})
GENERATOR_KEYS = frozenset({"name", "namespace", "files", "behavior"})
BEHAVIOR = "merge"
INSTRUCTIONS = "launch.json"
"""The only behavior, and the only file that an overlay adds to the launcher's ConfigMap: programs come from bases."""

BASE = re.compile(r"\.\./\.\./\.\./base/(?P<folder>[a-z0-9-]+/v[0-9]+)", re.ASCII)
COMPONENT = re.compile(r"\.\./\.\./\.\./base/(?P<folder>components/[a-z0-9-]+/v[0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Folder:
    files: Mapping[str, bytes]
    """Files of its own folder."""
    bases: Mapping[str, bytes]
    """Files below `base/`; empty if the kustomization must not refer to bases."""
    keys: frozenset[str]
    kind: str
    merged: str = INSTRUCTIONS
    """The file that it may add to the launcher's ConfigMap."""


def check_kustomization(
    files: Mapping[str, bytes], bases: Mapping[str, bytes], *, place: str
) -> tuple[Problem, ...]:
    """Return the problems of the files that kustomize reads: those of an overlay and of its bases."""
    problems, folders = _check_folder(_Folder(files, bases, KEYS, "Kustomization"), place)
    for folder in folders:
        start = f"{folder}/"
        own = {path.removeprefix(start): content for path, content in bases.items() if path.startswith(start)}
        kind = "Component" if folder.startswith("components/") else "Kustomization"
        keys = LAUNCHER_KEYS if folder.startswith("launcher/") else BASE_KEYS
        keys |= LAUNCHER_KEYS if folder.startswith(PACK) else set()
        merged = PACK_PROGRAM if folder.startswith(PACK) else INSTRUCTIONS
        problems += _check_folder(_Folder(own, {}, keys, kind, merged), f"base/{folder}")[0]
    return tuple(problems)


def base_folders(content: bytes) -> tuple[str, ...]:
    """Return the folders below `base/` that an overlay's kustomization builds on; empty if it cannot be read."""
    try:
        listed = yaml.load(content)
    except ValueError:
        return ()
    return tuple(_folders(listed)) if isinstance(listed, dict) else ()


def _folders(listed: dict[str, Any]) -> Iterator[str]:
    for entry in (*_list(listed.get("resources")), *_list(listed.get("components"))):
        match = (BASE.fullmatch(entry) or COMPONENT.fullmatch(entry)) if isinstance(entry, str) else None
        if match:
            yield match["folder"]


def _check_folder(folder: _Folder, place: str) -> tuple[list[Problem], list[str]]:
    """Return the problems of a folder's kustomization, and the folders below `base/` that it builds on."""
    content = folder.files.get(FILE, b"")
    reason, listed = "", None
    try:
        listed = yaml.load(content)
    except ValueError as error:
        reason = str(error)
    if not isinstance(listed, dict):
        message = reason or f"must be a mapping, got {listed!r}"
        return [Problem(f"{place}/{FILE}", 0, 0, "", message, CODE)], []
    findings = [(FILE, path, message) for path, message in _findings(listed, folder)]
    for name in sorted(set(_own_files(listed)) & folder.files.keys()):
        hazard = yaml.find_hazard(folder.files[name])
        findings += [(name, "", str(hazard))] if hazard else []
    problems = [Problem(f"{place}/{file}", 0, 0, path, message, CODE) for file, path, message in findings]
    return problems, [base for base in _folders(listed) if f"{base}/{FILE}" in folder.bases]


def _findings(listed: dict[str, Any], folder: _Folder) -> Iterator[tuple[str, str]]:
    for key in sorted(set(listed) - folder.keys, key=str):
        yield str(key), f"must be one of {', '.join(sorted(folder.keys))}, got {key!r}"
    for key, wanted in (("kind", folder.kind), ("apiVersion", API[folder.kind])):
        if listed.get(key) != wanted:
            yield key, f"must be {wanted!r}, got {listed.get(key)!r}"
    for name in sorted(folder.files.keys() & {"kustomization.yml", "Kustomization"}):
        yield "", f"must be the folder's only kustomization, got {name!r} beside it"
    yield from _references(listed, folder)
    yield from _patches(listed, folder)
    yield from _config_maps(listed, folder)
    for key, allowed in (("labels", LABEL_KEYS), ("images", IMAGE_KEYS)):
        for entry in _list(listed.get(key)):
            if not isinstance(entry, dict) or set(entry) - allowed:
                yield key, f"must be mappings of {', '.join(sorted(allowed))}, got {entry!r}"


def _references(listed: dict[str, Any], folder: _Folder) -> Iterator[tuple[str, str]]:
    for entry in _list(listed.get("resources")):
        if entry not in _files(folder) and not _base_exists(entry, BASE, folder):
            yield "resources", f"must be a file beside it or a base of the repository, got {entry!r}"
    for entry in _list(listed.get("components")):
        if not _base_exists(entry, COMPONENT, folder):
            yield "components", f"must be a component of the repository, got {entry!r}"


def _patches(listed: dict[str, Any], folder: _Folder) -> Iterator[tuple[str, str]]:
    for entry in _list(listed.get("patches")):
        if _is_renaming(entry):
            continue
        if not isinstance(entry, dict) or set(entry) - PATCH_KEYS:
            yield "patches", f"must be mappings of {', '.join(sorted(PATCH_KEYS))}, got {entry!r}"
            continue
        if entry.get("path") not in _files(folder):
            yield "patches", f"must be a file beside it, got {entry.get('path')!r}"
        for key, allowed in (("target", TARGET_KEYS), ("options", PATCH_OPTIONS)):
            value = entry.get(key, {})
            if not isinstance(value, dict) or set(value) - allowed:
                yield f"patches.{key}", f"must hold {', '.join(sorted(allowed))} only, got {value!r}"


def _is_renaming(entry: Any) -> bool:
    """Return whether a patch changes nothing but the name of the launcher's ConfigMap."""
    if not isinstance(entry, dict) or not isinstance(entry.get("patch"), str):
        return False
    others = {key: value for key, value in entry.items() if key != "patch"}
    return RENAMED.fullmatch(entry["patch"]) is not None and others == RENAMING


def _config_maps(listed: dict[str, Any], folder: _Folder) -> Iterator[tuple[str, str]]:
    for entry in _list(listed.get("configMapGenerator")):
        names = _list(entry.get("files")) if isinstance(entry, dict) else [entry]
        is_known = isinstance(entry, dict) and not set(entry) - GENERATOR_KEYS
        if not is_known or not all(name in _files(folder) for name in names):
            yield "configMapGenerator", f"must name files beside it, got {names!r}"
        elif entry.get("behavior", BEHAVIOR) != BEHAVIOR:
            yield "configMapGenerator", f"must have the behavior {BEHAVIOR}, got {entry['behavior']!r}"
        elif "behavior" in entry and names != [folder.merged]:
            yield "configMapGenerator", f"must add {folder.merged} alone to the launcher, got {names!r}"


def _own_files(listed: dict[str, Any]) -> Iterator[str]:
    """Yield the files that kustomize reads as YAML; files of ConfigMaps are text."""
    yield from (entry for entry in _list(listed.get("resources")) if isinstance(entry, str))
    for entry in _list(listed.get("patches")):
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            yield entry["path"]


def _files(folder: _Folder) -> tuple[str, ...]:
    """Return the files next to a kustomization, as a tuple because an untrusted entry may not be hashable."""
    return tuple(name for name in folder.files if "/" not in name and name != FILE)


def _base_exists(entry: Any, form: re.Pattern[str], folder: _Folder) -> bool:
    """Return whether a base exists: kustomize would treat any other path as a remote URL."""
    match = form.fullmatch(entry) if isinstance(entry, str) else None
    return match is not None and f"{match['folder']}/{FILE}" in folder.bases


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
