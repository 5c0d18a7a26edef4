"""What formats have in common that hold assignments only: the spec around them, checked values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator.exchange.loss import ForeignError, Loss
from generator.exchange.names import PLACEHOLDER_METRIC
from generator.exchange.programs import FOLDER
from generator.reader import shown
from generator.structs.names import PARAMETER_NAME
from generator.structs.sweep import Sweep
from generator.structs.values import Value, canonical_json

PROGRAM = "train.py"

UNSAID = (
    Loss(
        "metric",
        f"the file names none; {PLACEHOLDER_METRIC}, the more the better, stands there: put what is measured",
    ),
    Loss("program", f"the file names none; {FOLDER}/{PROGRAM} stands there: put yours, or a command"),
)
"""What no file of assignments says; a spec needs both."""

SPEC_VALUES = 9_500
"""Keys and values that fit into a spec beside everything else; the reader takes 10,000."""
SPEC_BYTES = 200 * 1024
"""Likewise: the reader takes 256 KiB."""


def frame(name: str, method: str, **search: Any) -> dict[str, Any]:
    """Make the spec around what is searched."""
    metric = {"name": PLACEHOLDER_METRIC, "goal": "maximize"}
    run = {"code": {"path": FOLDER}}
    return {"name": name, "method": method, "metric": metric, **search, "program": PROGRAM, "run": run}


def fits(assignments: Sequence[Mapping[str, Value]]) -> bool:
    """Tell whether a spec can hold the assignments itself."""
    count = sum(1 + 2 * len(values) + _items(values) for values in assignments)
    size = sum(len(canonical_json(values)) + 6 + 2 * len(values) for values in assignments)
    return count <= SPEC_VALUES and size <= SPEC_BYTES


def _items(values: Mapping[str, Value]) -> int:
    return sum(len(value) for value in values.values() if isinstance(value, list | tuple))


def inline(assignments: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
    """Give the assignments as a spec holds them. Raises ForeignError where they are too many for one."""
    if not fits(assignments):
        raise ForeignError(
            f"{len(assignments)} assignments are more than a spec can hold",
            hint="import them as CSV: the spec then names the file",
        )
    return [dict(values) for values in assignments]


def once(assignments: Iterable[Mapping[str, Value]]) -> tuple[list[Mapping[str, Value]], tuple[Loss, ...]]:
    """Keep the first of equal assignments, and tell how many were left out."""
    kept: dict[str, Mapping[str, Value]] = {}
    total = 0
    for total, values in enumerate(assignments, start=1):  # noqa: B007 - how many there were
        kept.setdefault(canonical_json(values), values)
    repeated = total - len(kept)
    why = "equal to one before; repeat trials with `replicates`, each with a seed of its own"
    return list(kept.values()), (Loss(f"{repeated} assignment(s)", why),) if repeated else ()


def checked(values: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Take an assignment from a stranger. Raises ForeignError for what no parameter can be called or be."""
    return {_name(name, where): _value(value, f"{where}: {name}") for name, value in values.items()}


def _name(name: str, where: str) -> str:
    if not PARAMETER_NAME.fullmatch(name):
        raise ForeignError(
            f"{where}: a parameter must begin with a letter and hold at most 63 letters, digits and any of "
            f"_ . -, got {shown(name)}"
        )
    return name


def _value(value: Any, where: str) -> Value:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return _text(value, where)
        case list():
            for item in value:
                if isinstance(item, list | dict):
                    raise ForeignError(f"{where}: a list must hold single values, got {item!r}"[:200])
            return list(value)
        case _:
            raise ForeignError(
                f"{where}: must be a number, text, true, false, null or a list, got {value!r}"[:200]
            )


def _text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ForeignError(f"{where}: must be whole characters, got half of a surrogate pair") from error
    return text


def left_behind(sweep: Sweep) -> tuple[Loss, ...]:
    """Say what a file of assignments has no place for."""
    replicates = Loss(
        "replicates", f"each assignment stands there once, not {sweep.replicates} times with a seed each"
    )
    rest = Loss("metric, command, run", "the file holds values and nothing else")
    return (replicates, rest) if sweep.replicates > 1 else (rest,)


def texts(assignments: Iterable[Mapping[str, Value]]) -> Iterator[tuple[str, str]]:
    """Find every text among the values, with its parameter's name."""
    for values in assignments:
        for name, value in values.items():
            if isinstance(value, str):
                yield name, value
