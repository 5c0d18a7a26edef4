"""A hyperparameter as a person reads it in an answer: as YAML shows it, and no text as anything but text."""

import re
from collections.abc import Mapping

from generator.structs.values import Value

LOOKS_TYPED = re.compile(r"(?i:null|true|false|~)|[-+.\d\[{\"'].*|", re.DOTALL)
"""Text that could be read as another kind of value, or overlooked, is shown in quotes."""


def value(found: Value) -> str:
    """Show a value in full, on one line."""
    from generator.results.words import plain, quoted

    if isinstance(found, str) and LOOKS_TYPED.fullmatch(found):
        return quoted(found)
    return plain(found)


def assignment(values: Mapping[str, Value]) -> str:
    """Show a trial's values in a line."""
    return "  ".join(f"{name}={value(one)}" for name, one in values.items())


def counted(count: int, noun: str) -> str:
    """Count things."""
    return f"{count:,} {noun}" + "s" * (count != 1)
