"""Values in human-readable form, and user text escaped for Markdown."""

import json
import math
import re
import unicodedata
from collections.abc import Mapping

from sweepledger.reader.scalars import Refusal, resolve_scalar
from sweepledger.structs.values import Value, canonical, canonical_json

SIGNIFICANT_DIGITS = 6
ONE_PERCENT = 0.01
MOST_DECIMALS = 15
MINUTE = 60
HOUR = 3600

UNCLEAR = re.compile(r"::|##\[|[=×…]|^[\"'\[{]|, ")  # noqa: RUF001 - separators of values
RISKY = re.compile(r"::+|##\[|(?<= ) +")
"""What a CI runner may execute after a line break, and repeated blanks."""

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]<>#|~$&@])")
_LINK = re.compile(r"(://|\bwww\.)", re.IGNORECASE)
_LIST = re.compile(r"^([-+=]|\d+(?=[.)](?: |$)))")
_ZERO_WIDTH_JOINER = "\u200d"
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NO_CHARACTERS = "\ufffe\uffff"
"""Not allowed in XML."""


def format_number(number: float) -> str:
    """Return a number with at most six significant digits."""
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{number + 0.0:.{SIGNIFICANT_DIGITS}g}" if math.isfinite(number) else "infinite"


def format_within(number: float, width: float) -> str:
    """Return a number with the digits that distinguish numbers which differ by `width`."""
    if not (math.isfinite(number) and math.isfinite(width)) or width <= 0:
        return format_number(number)
    # Three digits of the distance.
    decimals = 2 - math.floor(math.log10(width))
    return format_number(round(number, decimals) if abs(decimals) <= MOST_DECIMALS else number)


def format_percent(part: float) -> str:
    """Return a fraction in percent; a small fraction is `< 1 %`, never 0 %."""
    if 0 < part < ONE_PERCENT:
        return "< 1 %"
    return f"{part:.0%}".replace("%", " %")


def format_value(value: Value) -> str:
    """Return a hyperparameter as one printable line: exact numbers, plain text, everything else as JSON."""
    match value:
        case bool() | None:
            return canonical_json(value)
        case int() | float():
            return repr(canonical(value))
        case str():
            return value if _is_clear(value) else quote_value(value)
        case _:
            return quote_value(value)


def format_values(values: Mapping[str, Value]) -> str:
    """Return hyperparameters with their names on one line."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in values.items())


def quote_value(value: Value) -> str:
    """Return a value as JSON that shows every character, and that no CI runner executes."""
    text = json.dumps(canonical(value), ensure_ascii=False, separators=(",", ":"))
    text = RISKY.sub(lambda match: "".join(f"\\u{ord(character):04x}" for character in match[0]), text)
    return "".join(
        character if character.isprintable() else canonical_json(character)[1:-1] for character in text
    )


def _is_clear(text: str) -> bool:
    """Return whether text without quotes is visible as a whole and cannot be read as anything else."""
    if not text.isprintable() or text != " ".join(text.split()) or UNCLEAR.search(text):
        return False
    # Text that the reader refuses is clear if it begins with a letter: `on` is, and `010` looks like a number.
    resolved = resolve_scalar(text)
    return resolved == text or (isinstance(resolved, Refusal) and text[:1].isalpha())


def one_line(text: str) -> str:
    """Return text on one line with escapes for invisible characters, which could hide or reorder it."""
    shown = []
    for character in " ".join(text.split()):
        is_hidden = unicodedata.category(character) in _HIDDEN or character in _NO_CHARACTERS
        is_escaped = is_hidden and character != _ZERO_WIDTH_JOINER
        shown.append(f"\\u{ord(character):04x}" if is_escaped else character)
    return "".join(shown).replace("##[", "\\u0023#[")  # a CI runner would run what follows as a command


def escape_markdown(text: str) -> str:
    """Return user text escaped for one line of Markdown: without markup, link, HTML, table cell or list."""
    escaped = _PUNCTUATION.sub(r"\\\1", one_line(text))
    escaped = _LINK.sub(lambda link: link[0].replace(":", r"\:").replace(".", r"\."), escaped)
    # A digit cannot be escaped, but the point after it can.
    return _LIST.sub(lambda mark: f"{mark[0]}\\" if mark[0].isdigit() else f"\\{mark[0]}", escaped)


def markdown_code(text: str) -> str:
    """Return user text as Markdown code, for running text and table cells."""
    line = one_line(text)
    if line and "`" not in line and "|" not in line:
        return f"`{line}`"
    # Renderers differ in how they split cells and find a span's end; an element has neither question.
    return f"<code>{escape_markdown(line)}</code>"


def count_trials(count: int) -> str:
    """Return a number of trials with its noun: `1 trial`, `2 trials`."""
    return "1 trial" if count == 1 else f"{count} trials"


def format_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.1f} min"
    return f"{seconds / HOUR:.1f} h"
