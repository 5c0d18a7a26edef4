"""What an audit found, for people. Text from files is never taken for markup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from generator.cli.answer import visible
from generator.cli.show import SHORT_ID, grid

if TYPE_CHECKING:  # a command pays only for what it runs
    from generator.commands.verify import Verdict, Verified

STYLES = {"verified": "green", "differs": "red", "unsigned": "yellow"}
MOST_UNSIGNED = 10
"""Commits without a signature that are named: where nobody signs, all are."""
NO_SIGNERS = (
    "no signers are listed: who wrote these results nobody can tell",
    "list the collector's key under `signers` in sweepledger.yaml, or name keys that you know by --signers",
)


def verified(found: Verdict) -> tuple[RenderableType, ...]:
    """Show what was found of each sweep, and where it differs."""
    if not found.sweeps:
        return (Text("nothing is recorded yet"),)
    return tuple(_verified(found))


def _verified(found: Verdict) -> Iterator[RenderableType]:
    table = grid("sweep", "state", "batches", "trials", "commits", "signed", "differences")
    for one in found.sweeps:
        counts = (one.batches, one.trials, one.vouched.commits, one.vouched.signed, len(one.differences))
        table.add_row(Text(one.sweep), Text(one.state, STYLES[one.state]), *map(str, counts))
    yield table
    for one in found.sweeps:
        yield from (Text(visible(str(difference))) for difference in one.differences)
        if any("/results/" in f"/{difference.path}" for difference in one.differences):
            yield Text(
                f"  hint: `git log -- results/{one.sweep}` says who changed it; the collector alone may"
            )
        if found.signers:
            yield from _unsigned(one)
    if not found.signers:
        yield from (Text(NO_SIGNERS[0], "yellow"), Text(f"  hint: {NO_SIGNERS[1]}"))


def _unsigned(one: Verified) -> Iterator[RenderableType]:
    listed = one.vouched.unsigned
    for unsigned in listed[:MOST_UNSIGNED]:
        commit = f"commit {unsigned.commit[:SHORT_ID]}" if unsigned.commit else "no commit"
        yield Text(visible(f"{unsigned.path}: {commit} {unsigned.message}"))
    if len(listed) > MOST_UNSIGNED:
        yield Text(f"  and {len(listed) - MOST_UNSIGNED} more commits of {one.sweep}")
