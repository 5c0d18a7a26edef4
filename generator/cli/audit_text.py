"""What an audit found, for people. Text from files is never taken for markup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from generator.cli.answer import visible
from generator.cli.show import SHORT_ID, grid, number
from generator.cli.values import assignment

if TYPE_CHECKING:  # a command pays only for what it runs
    from generator.commands.compare import Compared
    from generator.commands.fetch import Fetched
    from generator.commands.reproduce import Measured, Recipe, Reproduced
    from generator.commands.verify import Verdict, Verified

STYLES = {"verified": "green", "differs": "red", "unsigned": "yellow"}
MOST_UNSIGNED = 10
"""Commits without a signature that are named: where nobody signs, all are."""
MOST_UNMATCHED = 10
NO_SIGNERS = (
    "no signers are listed: who wrote these results nobody can tell",
    "list the collector's key under `signers` in sweepledger.yaml, or name keys that you know by --signers",
)


def verified(found: Verdict) -> tuple[RenderableType, ...]:
    """Show what was found of each sweep, and where it differs."""
    stray = tuple(Text(visible(str(one)), "red") for one in found.stray)
    if not found.sweeps:
        return stray or (Text("no results to verify"),)
    return (*_verified(found), *stray)


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


def recipe(found: Recipe) -> tuple[RenderableType, ...]:
    """Show all that a trial was, and how to run it."""
    program = found.lock.program
    table = grid("", "")
    table.show_header = False
    rows = {
        "trial": f"{found.trial}, row {found.index} of {found.lock.name}",
        "values": assignment(found.assignment),
        "seed": str(found.seed),
        "code": f"{program.code.path} {program.code.tree}",
        "commit": found.commit or "none here holds this code: fetch the branch that does",
        "image": program.image,
        "ran": found.ran or "not recorded",
        "data": f"{program.data.name} {program.data.digest}" if program.data else "none",
    }
    for name, told in rows.items():
        table.add_row(Text(name, "bold"), Text(visible(told)))
    again = Text(f"  sweep reproduce {found.lock.sweep}/{found.trial} --run")
    lines = (Text(f"  {visible(line)}") for line in found.lines)
    return (table, Text("here, under its launcher:", "bold"), again, Text("by hand:", "bold"), *lines)


def reproduced(found: Reproduced) -> tuple[RenderableType, ...]:
    """Show what came out, beside what is recorded."""
    return tuple(_reproduced(found))


def _reproduced(found: Reproduced) -> Iterator[RenderableType]:
    ended = str(found.record.status) if found.record else "missing"
    table = grid("metric", "recorded", "here", "")
    table.add_row("status", found.recorded, ended, _verdict(equal=ended == found.recorded))
    for one in found.metrics:
        cells = (visible(one.name), _exact(one.recorded), _exact(one.found))
        told = Text("timing", "dim") if one.is_timing else _verdict(equal=one.is_equal)
        table.add_row(*map(Text, cells), told)
    yield table
    yield from (Text(f"{one.where}: {_said(one)}", "red") for one in found.metrics if one.differs)
    if found.recipe.ran not in {None, "process"}:
        yield Text(f"it was recorded in {found.recipe.ran}; here it ran as a process, in no image", "yellow")
    if ended != found.recorded:
        yield from (Text(visible(text[-2000:].rstrip())) for text in found.output.values() if text)
    yield (
        Text("equal to the last bit, but for timings", "green") if found.is_equal else Text("differs", "red")
    )


def _verdict(*, equal: bool) -> Text:
    return Text("equal", "green") if equal else Text("differs", "red")


def _exact(value: float | None) -> str:
    return "none" if value is None else repr(value)


def _said(one: Measured) -> str:
    if one.recorded is None or one.found is None:
        return f"{visible(one.name)} must be {_exact(one.recorded)}, got {_exact(one.found)}"
    away = one.found - one.recorded
    return f"{visible(one.name)} must be {_exact(one.recorded)}, got {_exact(one.found)} ({away:+.3g})"


def compared(found: Compared) -> tuple[RenderableType, ...]:
    """Show what two sweeps share, and what only one of them has."""
    return tuple(_compared(found))


def _compared(found: Compared) -> Iterator[RenderableType]:
    a, b = found.a, found.b
    metric = a.lock.metric.name if a.lock.metric.name == b.lock.metric.name else "objective"
    seeds = ["replicate"] * any(one.replicate for one in found.pairs)
    table = grid("values", *seeds, visible(a.asked), visible(b.asked), *["difference"] * (not found.refused))
    for one in found.pairs:
        cells = [assignment(one.assignment), *(str(one.replicate) for _ in seeds)]
        for row, value in zip((one.a, one.b), one.values, strict=True):
            cells.append(str(row.status) if value is None else number(value))
        if not found.refused:
            cells.append("" if one.difference is None else f"{one.difference:+.6g}")
        table.add_row(*(Text(visible(cell)) for cell in cells))
    shared = f"{len(found.pairs)} trials of both, {visible(metric)}"
    yield Text(f"{shared}, {a.lock.metric.goal}" if not found.refused else shared, "bold")
    if found.pairs:
        yield table
    for side, rows in ((a, found.only_a), (b, found.only_b)):
        if rows:
            more = " …" if len(rows) > MOST_UNMATCHED else ""
            yield Text(f"only {visible(side.asked)}: {len(rows)} trials")
            shown = (f"  {one.trial}  {assignment(one.assignment)}" for one in rows[:MOST_UNMATCHED])
            yield from (Text(visible(line)) for line in (*shown, *([more] if more else [])))
    yield from (Text(f"not ranked: {visible(why)}", "red") for why in found.refused)
    yield from (Text(f"warning: {visible(why)}", "yellow") for why in found.warnings)
    if found.pairs and not found.refused:
        better, worse, equal = found.counts
        yield Text(
            f"{visible(b.asked)} is better in {better}, {visible(a.asked)} in {worse}, equal in {equal}"
        )


def fetched(found: Fetched) -> tuple[RenderableType, ...]:
    """Show what was brought."""
    table = grid("file", "bytes", "sha256")
    for one in found.files:
        table.add_row(Text(visible(one.path)), str(one.bytes), one.sha256[:12])
    more = f"; {found.left_out} files more are not in its record" if found.left_out else ""
    return (table, Text(visible(f"{len(found.files)} files of {found.trial} lie in {found.folder}{more}")))
