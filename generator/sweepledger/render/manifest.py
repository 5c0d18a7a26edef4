"""Manifests as data, and strategic merge as in Kustomize: one description of an option serves all shapes."""

import copy
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]


MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
}
"""Lists of named things, and what names them (Kubernetes calls it the patch merge key); others are atomic."""


def merge(base: Mapping[str, Any], partial: Mapping[str, Any]) -> Manifest:
    """Return the base with the partial merged over it; neither is changed.

    A null removes a key that the base has.
    """
    merged = {key: copy.deepcopy(value) for key, value in base.items() if key not in partial}
    removed = {key for key, value in partial.items() if value is None}
    changed = {
        key: _values(key, base[key], value)
        for key, value in partial.items()
        if key in base and key not in removed
    }
    # A null stays where the base is itself a partial, for what that is merged over later.
    added = {key: copy.deepcopy(value) for key, value in partial.items() if key not in base}
    # Keeps the order of the base, which its author chose.
    kept = (key for key in base if key not in removed)
    return {key: changed[key] if key in changed else merged[key] for key in kept} | added


def merge_all(base: Manifest, *partials: Manifest) -> Manifest:
    """Merge several, one after the other: the last word counts."""
    for partial in partials:
        base = merge(base, partial)
    return base


def _values(key: str, base: Any, partial: Any) -> Any:
    match base, partial:
        case Mapping(), Mapping():
            return merge(base, partial)
        case list(), list() if key in MERGE_KEYS:
            by = MERGE_KEYS[key]
            wanted, known = {item[by]: item for item in partial}, {item[by] for item in base}
            kept = [merge(item, wanted.get(item[by], {})) for item in base]
            return kept + [copy.deepcopy(item) for name, item in wanted.items() if name not in known]
        case _:
            return copy.deepcopy(partial)
