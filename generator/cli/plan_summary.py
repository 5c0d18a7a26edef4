"""A sweep's plan at a glance: what is asked, how long, for how much, of whose budget. A line each."""

from collections.abc import Iterator

from generator.cli import forecast_words
from generator.cli import plan_words as words
from generator.commands.plan import Planned
from generator.plan import Review


def rows(review: Review, found: Planned) -> Iterator[tuple[str, str]]:
    """Give what a reviewer reads first."""
    yield "asks", words.asks(review)
    yield from forecast_words.lines(review, found.currency)
    yield "cost", words.cost(review)
    if room := words.room(review.room):
        yield "pool", room
    yield from (("budget", told) for told in forecast_words.budgets(review, found.month, found.currency))
    if allowed := words.budget(review):
        yield "limit", allowed
    yield from (("note", words.cut(one.text)) for one in review.notes)
