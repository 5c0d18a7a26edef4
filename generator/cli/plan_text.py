"""`sweep plan` for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from generator.cli import plan_summary
from generator.cli import plan_words as words
from generator.cli.show import blocks, grid
from generator.commands.plan import Planned
from generator.plan import Binned, Covered, Difference, Review
from generator.structs.trial import Trial


def planned(found: Planned) -> tuple[RenderableType, ...]:
    """Show every review, then what needs none."""
    shown = [part for review in found.reviews for part in _review(review, found)]
    if found.settled:
        shown.append(Text(f"nothing changes: {', '.join(found.settled)}"))
    return tuple(shown) or (() if found.problems else (Text("there is no sweep yet"),))


def _review(review: Review, found: Planned) -> Iterator[RenderableType]:
    batch = f" · {review.batch}" if review.batch else ""
    yield Text(f"{review.sweep.name}: {words.size(review)}: {words.standing(review)}{batch}", "bold")
    for label, told in plan_summary.rows(review, found):
        yield Text(f"  {label:6} {told}")
    if review.unlocked:
        yield Text(f"  trials count as new and ids may change: {words.cut(review.unlocked)}", "yellow")
    if review.outdated:
        yield Text(f"  {words.outdated(review)}", "yellow")
    if review.ahead is not None:
        yield blocks(review.sweep.blocks)
        yield from _constraints(review)
    else:
        yield from _expanded(review)
    if found.base is not None and words.is_telling(review):
        change = words.change(review)
        yield Text(f"  spec here versus spec at {found.base[: words.SHORT_COMMIT]}: {change}")
    if isinstance(review.difference, Difference) and review.difference.former is not None:
        yield from _changes(review.difference)


def _expanded(review: Review) -> Iterator[RenderableType]:
    """Tell what comes of a spec whose trials are known; of a search they are not, before its records."""
    yield _blocks(review)
    yield from _constraints(review)
    if review.coverage.parameters:
        yield _parameters(review.coverage.parameters)
    if review.coverage.constants:
        yield Text(f"  fixed  {words.assignment(review.coverage.constants)}")
    yield _trials([("first", review.first), ("last", review.last)])


def _blocks(review: Review) -> Table:
    table = grid("  block", "method", "candidates", "rejected", "duplicates", "kept", "accepted")
    for number, block in enumerate(review.blocks, start=1):
        counts = (block.candidates, block.rejected, block.duplicates, block.kept)
        table.add_row(
            f"  {number}", block.method, *(f"{count:,}" for count in counts), words.percent(block.acceptance)
        )
    return table


def _constraints(review: Review) -> Iterator[Text]:
    for number, block in enumerate(review.blocks, start=1):
        for one in block.constraints:
            yield Text(f"  block {number}: {words.rejected(one)} {words.cut(one.text)}")
        if block.discrepancy:
            yield Text(f"  block {number}: {words.evenness(block.discrepancy)}")


def _parameters(found: Iterable[Covered]) -> Table:
    table = grid("  parameter", "has it", "values", "")
    for one in found:
        table.add_row(
            Text(f"  {words.name(one)}"),
            f"{one.present:,}",
            _values(one),
            Text(words.notes(one), "dim"),
        )
    return table


def _values(one: Covered) -> Text:
    if isinstance(one.values, Binned):
        return Text(f"{words.histogram(one.values)}  {words.span(one.values)}")
    return Text("  ".join(words.levels(one.values)))


def _trials(groups: Iterable[tuple[str, Iterable[Trial]]]) -> Table:
    table = grid("", "", "")
    table.show_header = False
    for label, trials in groups:
        for place, trial in enumerate(trials):
            table.add_row(f"  {label:5}" if not place else "", trial.id, Text(words.trial(trial)))
    return table


def _changes(found: Difference) -> Iterator[RenderableType]:
    for sign, trials in (("+", found.added), ("-", found.removed)):
        if trials:
            yield _trials((f"  {sign}", (trial,)) for trial in trials[: words.FEW_TRIALS])
        if len(trials) > words.FEW_TRIALS:
            yield Text(f"    {sign} … {len(trials) - words.FEW_TRIALS:,} more")
