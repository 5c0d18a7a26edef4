"""The JSON Schemas of specs and settings, also for editors. Only this module reads these package files."""

import json
from functools import cache
from pathlib import Path
from typing import Any

SCHEMA_FOLDER = Path(__file__).parent.parent / "schemas"


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the schema of `sweep` or `settings`."""
    loaded: dict[str, Any] = json.loads(schema_text(name))
    return loaded


def schema_text(name: str) -> str:
    """Return the schema of `sweep` or `settings` as editors read it."""
    return (SCHEMA_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
