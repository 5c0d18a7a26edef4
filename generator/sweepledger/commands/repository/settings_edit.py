"""Edits of sweepledger.yaml that preserve comments."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweepledger import spec
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.reader.yaml_edit import remove_key, set_value
from sweepledger.repo import files
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.settings import Settings

EMPTY_SETTINGS = "version: 1\n"


@dataclass(frozen=True)
class SettingsEdit:
    """The text of the settings after a change, and the settings read from it."""

    text: str
    settings: Settings
    changes: tuple[str, ...]
    """The keys that changed, each as `key.key: value`."""


def read_settings_text(root: Path) -> str:
    """Return the text of a repository's settings; that of empty settings if there is no file."""
    path = root / SETTINGS_FILE
    return files.read_input(path).decode() if path.exists() else EMPTY_SETTINGS


def edit_settings(
    text: str, values: Mapping[tuple[str, ...], Any], *, unpinned: bool = False
) -> SettingsEdit:
    """Set values by the path of their keys; None removes a key of the document.

    With `unpinned` an image may lack a digest.

    Raises RepositoryError if the text cannot be changed safely, SpecError if the result is wrong.
    """
    changes = []
    for keys, value in values.items():
        before = text
        try:
            text = remove_key(text, keys[0]) if value is None else set_value(text, keys, value)
        except ValueError as error:
            raise RepositoryError(
                f"{SETTINGS_FILE} cannot be changed automatically: {error}",
                hint=f"set {'.'.join(keys)}: {value} by hand",
            ) from error
        if text != before:
            shown = str(value).lower() if isinstance(value, bool) else value
            changes.append(f"{'.'.join(keys)}: {shown}")
    settings = spec.parse_settings(text.encode(), SETTINGS_FILE, unpinned=unpinned)
    if isinstance(settings, tuple):
        raise SpecError(settings)
    return SettingsEdit(text, settings, tuple(changes))
