"""Secrets that SOPS has encrypted: their values are sealed, and no API server sees what SOPS adds to them."""

import re
from collections.abc import Mapping
from typing import Any

from sweepledger.structs.kubernetes import Manifest

ADDED = "sops"
"""The key with the recipients of the encrypted values, which is removed when these are decrypted."""
_LETTERS = r"[A-Za-z0-9+/]*={0,2}"
_SEALED = re.compile(rf"ENC\[AES256_GCM,data:{_LETTERS},iv:{_LETTERS},tag:{_LETTERS},type:str\]", re.ASCII)


def without_sealed(data: Manifest) -> Manifest:
    """Return a manifest without what SOPS has encrypted and added, if it is a Secret with no value in the clear."""
    if data.get("kind") != "Secret" or not _is_sealed(data):
        return data
    return {key: value for key, value in data.items() if key not in {ADDED, "data", "stringData"}}


def _is_sealed(data: Manifest) -> bool:
    added = data.get(ADDED)
    values = [value for key in ("data", "stringData") for value in _values(data.get(key))]
    return (
        isinstance(added, Mapping)
        and bool(values)
        and all(isinstance(value, str) and _SEALED.fullmatch(value) for value in [added.get("mac"), *values])
    )


def _values(table: Any) -> list[Any]:
    """Return the values of a table; anything else is a value itself, unless there is none."""
    return [*table.values()] if isinstance(table, Mapping) else [] if table is None else [table]
