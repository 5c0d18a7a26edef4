"""Values as people read them, and user text that stays text in Markdown."""

import json
import math
import re
import unicodedata

from generator.reader.scalars import Refusal, resolve
from generator.structs.values import Value, canonical, canonical_json

SIGNIFICANT_DIGITS = 6
ONE_PERCENT = 0.01
MOST_DECIMALS = 15
MINUTE = 60
HOUR = 3600

UNCLEAR = re.compile(r"::|##\[|[=×…]|^[\"'\[{]|, ")  # noqa: RUF001 - what stands between values
RISKY = re.compile(r"::+|##\[|(?<= ) +")
"""What begins a command to a CI runner once a line is folded there, and blanks that a reader would count."""

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]<>#|~$&@])")
_LINK = re.compile(r"(://|\bwww\.)", re.IGNORECASE)
_LIST = re.compile(r"^([-+=]|\d+(?=[.)](?: |$)))")
_ZERO_WIDTH_JOINER = "\u200d"
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NO_CHARACTERS = "\ufffe\uffff"
"""XML refuses them."""


def short(number: float) -> str:
    """Write a number with at most six significant digits, and no more than it has."""
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{number + 0.0:.{SIGNIFICANT_DIGITS}g}" if math.isfinite(number) else "infinite"


def fine(number: float, width: float) -> str:
    """Write a number of several that lie so far apart: what tells them apart, and no more."""
    if not (math.isfinite(number) and math.isfinite(width)) or width <= 0:
        return short(number)
    # Three digits of the distance.
    decimals = 2 - math.floor(math.log10(width))
    return short(round(number, decimals) if abs(decimals) <= MOST_DECIMALS else number)


def percent(part: float) -> str:
    """Write a part of one as people say it; what is not nothing is not written as nothing."""
    if 0 < part < ONE_PERCENT:
        return "< 1 %"
    return f"{part:.0%}".replace("%", " %")


def plain(value: Value) -> str:
    """Write a hyperparameter: numbers exactly, text as it is, all else as JSON; one printable line."""
    match value:
        case bool() | None:
            return canonical_json(value)
        case int() | float():
            return repr(canonical(value))
        case str():
            return value if _is_clear(value) else quoted(value)
        case _:
            return quoted(value)


def quoted(value: Value) -> str:
    """Write a value as JSON that shows each character, and that no CI runner takes for a command."""
    text = json.dumps(canonical(value), ensure_ascii=False, separators=(",", ":"))
    text = RISKY.sub(lambda found: "".join(f"\\u{ord(one):04x}" for one in found[0]), text)
    return "".join(one if one.isprintable() else canonical_json(one)[1:-1] for one in text)


def _is_clear(text: str) -> bool:
    """Tell whether text, bare on a line between others, is seen whole and can be nothing else."""
    if not text.isprintable() or text != " ".join(text.split()) or UNCLEAR.search(text):
        return False
    # Of what our reader refuses, `on` is how no value is shown; `010` a person takes for a number.
    found = resolve(text)
    return found == text or (isinstance(found, Refusal) and text[:1].isalpha())


def one_line(text: str) -> str:
    """Put text on one line and make what is invisible visible, so that nothing hides or reorders it."""
    line = "".join(_visible(character) for character in " ".join(text.split()))
    return line.replace("##[", "\\u0023#[")  # a CI runner would take what follows for a command


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in _HIDDEN or character in _NO_CHARACTERS
    if not hidden or character == _ZERO_WIDTH_JOINER:
        return character
    return f"\\u{ord(character):04x}"


def markdown(text: str) -> str:
    """Escape user text for one line of Markdown: no markup, link, HTML, table cell or list comes of it."""
    escaped = _PUNCTUATION.sub(r"\\\1", one_line(text))
    escaped = _LINK.sub(lambda link: link[0].replace(":", r"\:").replace(".", r"\."), escaped)
    return _LIST.sub(_without_list, escaped)


def _without_list(found: re.Match[str]) -> str:
    # A digit cannot be escaped, the point after it can.
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"


def code(text: str) -> str:
    """Show user text as code, in running text and in a table's cell alike."""
    line = one_line(text)
    if line and "`" not in line and "|" not in line:
        return f"`{line}`"
    # Renderers differ in how they split cells and find a span's end; an element has neither question.
    return f"<code>{markdown(line)}</code>"


def trials(count: int) -> str:
    """Count trials."""
    return "1 trial" if count == 1 else f"{count} trials"


def duration(seconds: float) -> str:
    """Write a time in the unit that people would."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.1f} min"
    return f"{seconds / HOUR:.1f} h"
