"""Names that people know from other tools or from the plan of this language, and that none can use yet."""

from generator.reader import Path

RUN_KEYS = frozenset({"artifacts"})

FOREIGN_KEYS = frozenset({"entity", "project"})
"""What only W&B's own sweep files have."""


def later_keys(schema: str, path: Path) -> frozenset[str]:
    """List the keys that a mapping at this path will have one day."""
    match (schema, *path):
        case ("sweep", "run"):
            return RUN_KEYS
        case _:
            return frozenset()


def foreign_hint(schema: str, path: Path, key: str) -> str | None:
    """Say how a file of another tool that has this key becomes a spec."""
    if (schema, *path) == ("sweep",) and key in FOREIGN_KEYS:
        return "this is a key of W&B: `sweep import wandb FILE` makes a spec of its file"
    return None
