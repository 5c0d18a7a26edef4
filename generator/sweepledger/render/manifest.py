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


def merge(base: Mapping[str, Any], *partials: Mapping[str, Any]) -> Manifest:
    """Return the base with partials merged over it in turn; later values win, and no argument changes.

    A null removes a key that the base has.
    """
    merged = dict(base)
    for partial in partials:
        # In the order of the base, which its author chose.
        kept = {
            key: _values(key, value, partial[key]) if key in partial else copy.deepcopy(value)
            for key, value in merged.items()
            if key not in partial or partial[key] is not None
        }
        # A null stays where the base is itself a partial, for what that is merged over later.
        added = {key: copy.deepcopy(value) for key, value in partial.items() if key not in merged}
        merged = kept | added
    return merged


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
