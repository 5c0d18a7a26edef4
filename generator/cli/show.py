"""Outcomes as tables and lines for people. Text from files is never taken for markup."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from generator.cli import domains, rounds
from generator.cli.fitting import Fitting
from generator.cli.values import assignment, counted, value
from generator.formats.summary import METRIC_PREFIX, PARAMETER_PREFIX
from generator.repo.batches import ACTIVE
from generator.structs.names import split_batch_name
from generator.structs.record import Status
from generator.structs.sweep import Block

if TYPE_CHECKING:  # a command pays only for what it runs
    from generator.commands.collect import Collected
    from generator.commands.generate import Generated
    from generator.commands.logs import Logs
    from generator.commands.reached import Reached
    from generator.commands.results import Listed
    from generator.commands.show import Shown
    from generator.commands.status import Tally
    from generator.commands.try_ import Tried
    from generator.formats.summary import SummaryRow

STATUS_STYLES = {
    "ok": "green",
    "diverged": "yellow",
    "pruned": "cyan",
    "missing": "dim",
    **dict.fromkeys(("failed", "timeout", "oom", "evicted", "corrupt", "foreign"), "red"),
}
SHORT_ID = 8
NO_BATCH = "no batch yet"

COLUMNS = frozenset({"", "trial", "front", "not ranked", "status", "reason", "seed", "seconds", "batch"})
"""Of the table of results, whatever the parameters and metrics are called."""

WHOLE = frozenset({"", "trial"})
"""What is folded last: ids are there to be copied."""


def number(value: float | None) -> str:
    """Show a number shortly; tables align them."""
    return "" if value is None else f"{value:.6g}"


def status(found: str) -> Text:
    """Show a status in its colour."""
    return Text(found, STATUS_STYLES.get(found, ""))


def ending(found: str, reason: str | None) -> Text:
    """Show a status, and why it is none better where it does not say so itself."""
    return status(found).append(f" ({_harmless(reason)})" if reason and reason != found else "", "default")


def grid(*headings: str) -> Table:
    """Begin a table in the one style."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(Text(heading), overflow="fold", no_wrap=heading in WHOLE)
    return table


def generated(found: Iterable[Generated], *, check: bool) -> tuple[RenderableType, ...]:
    """Show what each sweep needs, and what was written for it."""
    return tuple(part for one in found for part in _generated(one, check=check))


def _generated(one: Generated, *, check: bool) -> Iterator[RenderableType]:
    new = one.trials - one.known - one.retried
    again = f", {one.retried} once more" if one.retried else ""
    yield Text(f"{one.sweep.name}: {one.trials} trials, {one.known} known, {new} new{again}", "bold")
    if one.batch is None:
        later = f"; rounds are asked for by `sweep next {one.sweep.name}`" if one.sweep.search else ""
        yield Text(f"  nothing to write: every trial is in a batch{later}")
    else:
        yield blocks(one.sweep.blocks)
        verb = "unchanged" if one.is_written else "missing" if check else "wrote"
        lock = one.batch.lock
        yield Text(f"  {verb} {ACTIVE}/{one.batch.name}/ ({lock.trials} trials, shape {lock.shape})")
    for stale in one.stale:
        yield Text(f"  {'stale' if check else 'removed'} {stale.folder}/")


def blocks(found: tuple[Block, ...]) -> Table:
    """Show the search space, a parameter a line."""
    table = grid("  parameter", "values")
    for number, block in enumerate(found, start=1):
        if len(found) > 1:
            table.add_row(Text(f"  block {number}", "bold"), Text(domains.heading(block)))
        for name, text in domains.rows(block):
            table.add_row(Text(f"  {name}"), Text(text))
    return table


def tried(found: Tried) -> tuple[RenderableType, ...]:
    """Show what a tried trial left."""
    record = found.record
    told = ending(record.status, record.reason) if record else status(Status.MISSING)
    head = Text.assemble((f"trial {found.number} of {found.of}: ", "bold"), told)
    table = grid("metric", "value")
    for name, measured in (record.metrics if record else {}).items():
        table.add_row(Text(name), number(measured))
    return head, Text(assignment(found.trial.assignment)), *([table] if table.row_count else [])


def collected(found: Iterable[Collected]) -> tuple[RenderableType, ...]:
    """Show each results commit."""
    return tuple(Text(recorded(one)) for one in found) or (Text("nothing to record"),)


def recorded(one: Collected) -> str:
    """Say what a results commit holds, and what it could not."""
    told = f"recorded {', '.join(one.batches)} in {one.commit[:SHORT_ID]}"
    reasons = ", ".join(sorted(set(one.corrupt)))
    passed = f"; {len(one.corrupt)} record(s) passed over: {reasons}" if one.corrupt else ""
    return f"{told}{passed}{rounds.onward(one.step)}"


COUNTED = ("planned", "pending", "running", "ok", "pruned", "diverged", "failed", "cancelled", "missing")
IN_CLUSTER = ("queued", "retrying", "node lost", "ended", "stalled")
"""What only a cluster can say."""
ORDER = (*COUNTED[:3], *IN_CLUSTER, *COUNTED[3:])
SELDOM = ("planned", "pending", "pruned", "cancelled", *IN_CLUSTER)
"""Columns that are shown where they say anything."""


def tallies(found: Iterable[Tally]) -> tuple[RenderableType, ...]:
    """Show where the sweeps stand, a line each; where a column a standing has no room, in words."""
    listed = tuple(found)
    counted = [name for name in ORDER if name not in SELDOM or any(one.counts[name] for one in listed)]
    named = grid("sweep", "trials", *counted, "best", "active")
    numbered = grid("sweep", "trials", *counted, "best", "active")
    narrow = grid("sweep", "trials", "best", "active")
    narrow.columns[0].no_wrap = narrow.columns[-1].no_wrap = True
    for one in listed:
        first = Text(one.sweep), str(one.trials)
        numbers, best = [str(one.counts[name]) for name in counted], Text(_best(one))
        active, count = Text(", ".join(one.active)), str(len(one.active))
        if not one.batches:
            active, count = Text(NO_BATCH), NO_BATCH
        named.add_row(*first, *numbers, best, active)
        numbered.add_row(*first, *numbers, best, count)
        standing = ", ".join(f"{one.counts[name]} {name}" for name in ORDER if one.counts[name])
        narrow.add_row(first[0], f"{one.trials}: {standing}" if standing else "0", best, count)
    if not listed:
        return (Text("there is no sweep yet"),)
    searches = [(one.sweep, one.search) for one in listed if one.search is not None]
    return (Fitting((named, numbered, narrow)), *([_reached(searches)] if searches else []))


def _reached(found: Iterable[tuple[str, Reached]]) -> Table:
    """Show how far searches have come."""
    table = grid("search", "round", "recorded", "next")
    table.columns[0].no_wrap = True
    for name, one in found:
        told = f"over ({one.reason}): {one.says}" if one.reason else one.says
        counts = (_of(one.round, one.rounds), _of(one.recorded, one.most))
        table.add_row(Text(name), *counts, Text(_harmless(told)))
    return table


def _of(number: int, most: int | None) -> str:
    return str(number) if most is None else f"{number} of {most}"


def _best(one: Tally) -> str:
    if one.front:
        return f"front of {counted(len(one.front), 'trial')}"
    return f"{one.metric} {number(one.best.metric(one.metric))} ({one.best.trial})" if one.best else ""


def listed(found: Listed) -> tuple[RenderableType, ...]:
    """Show a summary, best first: what varies, what was sorted by; the rest is in the CSV.

    Only what may win has a place; of the others it says why they may not.
    """
    names = [name for name in found.table.parameters if _varies(name, found.table.rows)]
    several = ["batch"] * (len({row.batch for row in found.table.rows}) > 1)
    barred = ["not ranked"] * any(found.barred)
    failed = ["status"] * any(row.status is not Status.OK for row in found.rows)
    reasons = ["reason"] * any(row.reason for row in found.rows)
    seeds = ["seed"] * (len({row.replicate for row in found.table.rows}) > 1)
    headings = _headings((found.column, *found.others), names)
    fronts = ["front"] * bool(found.others)
    table = grid("", "trial", *fronts, *barred, *failed, *reasons, *headings, *seeds, "seconds", *several)
    places = itertools.count(1)
    for row, why in zip(found.rows, found.barred, strict=True):
        table.add_row(
            "" if why else str(next(places)),
            Text(row.trial),
            *("yes" if row.trial in found.front and not why else "" for _ in fronts),
            *(Text(why or "") for _ in barred),
            *(status(str(row.status)) for _ in failed),
            *(Text(_harmless(row.reason or "")) for _ in reasons),
            *(number(row.metrics.get(name)) for name in (found.column, *found.others)),
            *(Text(_value(row, name)) for name in names),
            *("" if row.seed is None else str(row.seed) for _ in seeds),
            number(row.seconds),
            *(Text(_short(row.batch)) for _ in several),
        )
    return (table,)


def _short(batch: str) -> str:
    """Name a batch of a known sweep: `b2` of `peak-b2-3f9a1c2e`."""
    name = split_batch_name(batch)
    return f"b{name[1]}" if name else batch


def _headings(metrics: Sequence[str], parameters: Iterable[str]) -> Iterator[str]:
    """Name the columns of metrics and those of parameters, no two columns alike."""
    yield from (f"{METRIC_PREFIX}{name}" if name in COLUMNS else name for name in metrics)
    taken = COLUMNS | {*metrics}
    yield from (f"{PARAMETER_PREFIX}{name}" if name in taken else name for name in parameters)


def _value(row: SummaryRow, name: str) -> str:
    return value(row.assignment[name]) if name in row.assignment else ""


def _varies(name: str, rows: Iterable[SummaryRow]) -> bool:
    return len({_value(row, name) for row in rows}) > 1


def shown(found: Shown) -> tuple[RenderableType, ...]:
    """Show one trial."""
    lock, result = found.batch.lock, found.result
    table = grid("", "")
    table.show_header = False
    # What a line is about stands whole; a digest can go on in the next.
    table.columns[1].no_wrap = False

    def add(name: str, told: object) -> None:
        table.add_row(Text(name, "bold"), told if isinstance(told, Text) else Text(str(told)))

    add("trial", f"{found.trial}, row {found.index} of {lock.name}")
    add("values", assignment(found.assignment))
    if lock.round is not None:
        add("round", f"{lock.round}, by {lock.method} ({lock.engine})")
    if found.parent:
        add("goes on from", found.parent)
    add("status", ending(result.status, result.reason) if result else status("missing"))
    if found.said:
        add("why", _harmless(found.said))
    if result:
        add("attempts", result.attempts)
    for name, measured in (result.metrics if result else {}).items():
        add(name, number(measured))
    add("spec", f"{lock.spec_path} {lock.spec_digest}")
    add("code", f"{lock.program.code.path} {lock.program.code.tree}")
    if lock.program.data:
        add("data", f"{lock.program.data.name} {lock.program.data.digest}")
    if result and result.ran:
        add("ran", f"{result.ran}, seed {result.seed}, {number(result.seconds)} s from {result.started}")
    for did, commit in found.commits:
        add(
            did,
            f"{commit.id[:SHORT_ID]} {commit.date[:10]} {_harmless(f'{commit.author}: {commit.subject}')}",
        )
    return (table,)


def kept(found: Logs) -> tuple[RenderableType, ...]:
    """Show what each attempt printed."""
    return tuple(part for one in found.attempts for part in _attempt(one.uid, one.out, one.err))


def _attempt(uid: str, out: str, err: str) -> Iterator[RenderableType]:
    if not (out or err):
        yield Text(f"-- {uid} printed nothing", "bold")
    for name, text in (("stdout", out), ("stderr", err)):
        if text:
            yield Text(f"-- {uid} {name}", "bold")
            yield Text(_harmless(text.rstrip("\n")))


def _harmless(text: str) -> str:
    """Show a stranger's control characters instead of obeying them."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)
