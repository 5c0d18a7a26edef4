"""Where a sweep's files lie, as lines and as data."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

    from generator.commands.origins import Origin


def shown(found: "Iterable[Origin | None]") -> "Iterator[Text]":
    """Name the files of sweeps, and the pull requests that brought their batches."""
    from rich.text import Text

    for origin in (one for one in found if one is not None):
        numbered = (f"{folder} (#{number})" if number else folder for folder, number in origin.batches)
        yield from (Text(f"  {path}") for path in (origin.spec, *numbered, origin.results) if path)


def links(origin: "Origin") -> dict[str, Any]:
    """Give the files of a sweep as the envelope shows them."""
    return {
        "spec": origin.spec,
        "batches": [{"folder": folder, "pull_request": number} for folder, number in origin.batches],
        "results": origin.results,
    }
