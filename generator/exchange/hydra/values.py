"""Values of ours as Hydra's text, such that the app gets what a trial's program gets."""

from collections.abc import Sequence
from typing import Any

from generator.exchange.hydra.functions import Glob, Interval, Range, value
from generator.exchange.hydra.grammar import Choices
from generator.exchange.hydra.overrides import in_hydra
from generator.exchange.loss import ForeignError, Loss
from generator.structs.values import Value, canonical_json

QUOTES = ("'", '"')


class Unread:
    """Stands for what is no single value to Hydra."""


def choice(name: str, values: Sequence[Value], losses: list[Loss], *, is_hydra: bool) -> str | None:
    """Separate values by commas, each once; `choice(…)` would take their quotes off and refuse null."""
    if not values:
        losses.append(Loss(f"parameters.{name}", "no trial has it; left out"))
        return None
    are_overrides = is_hydra and any(isinstance(each, str) and _is_override(each) for each in values)
    texts = [_bare(each) if are_overrides else in_hydra(_plain(each)) for each in values]
    kept = list(dict.fromkeys(texts))
    if len({canonical_json(each) for each in values}) > len(kept):
        losses.append(Loss(f"parameters.{name}", "several of its values are one to Hydra"))
    return ",".join(kept)


def _is_override(text: str) -> bool:
    """Tell a text that was written for Hydra to read, such as `null` or `'1'`: an import writes these."""
    found = _read(text)
    return found is None or isinstance(found, dict | list) or (text.startswith(QUOTES) and found != text)


def _bare(given: Value) -> str:
    """Leave a text as a trial's command line has it, if Hydra takes that for one value."""
    if isinstance(given, str) and given.strip() == given != "" and not isinstance(_read(given), Unread):
        return given
    return in_hydra(_plain(given))


def _read(text: str) -> Any:
    """Read what Hydra takes for one value."""
    try:
        found = value(text)
    except ForeignError:
        return Unread()
    return Unread() if isinstance(found, Choices | Range | Interval | Glob) else found


def _plain(given: Value) -> Any:
    return list(given) if isinstance(given, tuple) else given
