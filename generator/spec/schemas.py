"""The JSON Schemas of the files people write, also for editors. Package data, read here only."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "schemas"


@cache
def schema(name: str) -> dict[str, Any]:
    """Give the schema of `sweep` or `settings`."""
    loaded: dict[str, Any] = json.loads(schema_text(name))
    return loaded


def schema_text(name: str) -> str:
    """Give the schema of `sweep` or `settings` as editors read it."""
    return (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
