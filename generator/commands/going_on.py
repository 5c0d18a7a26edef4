"""Rounds that are due while nothing is recorded: a spec was changed, or nobody could ask for them before."""

from collections.abc import Iterator

from generator.commands import onward
from generator.commands.collect import Target
from generator.commands.searching import Blocked
from generator.errors import RepositoryError


def go_on(target: Target) -> Iterator[onward.Pushed | Blocked]:
    """Ask for the round of every search that waits for nothing else, where settings leave that to us.

    It is due by itself after a change of the spec, or where a collector of before could not draw it. What
    keeps one search from its round is told, and keeps no other. Raises RepositoryError.
    """
    tip = target.tip()
    for sweep in () if tip is None else onward.idle(target.repository, tip):
        try:
            made = onward.push(
                target.repository, target.remote, target.branch, sweep, is_reviewed=target.is_reviewed
            )
        except RepositoryError as error:
            made = Blocked(sweep, str(error), error.hint)
        if isinstance(made, onward.Pushed | Blocked):
            yield made
