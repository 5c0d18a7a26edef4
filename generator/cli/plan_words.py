"""What text and Markdown of `sweep plan` have in common: values, numbers and sentences, a line each."""

import re
from collections.abc import Iterable
from typing import assert_never

from generator.cli import sizes
from generator.cli.values import counted
from generator.plan import (
    Binned,
    Cost,
    Counted,
    Covered,
    Difference,
    Discrepancy,
    Rejection,
    Review,
    Room,
    Scale,
    Unreadable,
)
from generator.results.words import one_line, plain, quoted, short
from generator.structs.adaptive import Search
from generator.structs.domain import Choice, Constant
from generator.structs.sweep import Block, Draw, Grid, Listing
from generator.structs.trial import Trial
from generator.structs.values import Value

BLOCKS = "▁▂▃▄▅▆▇█"
EMPTY = "·"
"""A bin that nothing fell into; the lowest block would look like something."""

TIMES = "\N{MULTIPLICATION SIGN}"

LONGEST_VALUE = 40
LONGEST_LINE = 500
SHORT_COMMIT = 8

EXACT_ENOUGH = 100
"""From here on whole hours will do."""

MOST_VALUES = 12
"""Shown of a parameter; JSON has all."""
FEW_TRIALS = 5
"""Shown of those added and of those removed."""

LOOKS_TYPED = re.compile(r"null|true|false|[-+.\d\[\"'].*", re.DOTALL)
"""Text that could be read as another kind of value is shown in quotes."""


def cut(text: str, most: int = LONGEST_LINE) -> str:
    """Bring a text onto one line of bounded length."""
    return _short(one_line(text[: 2 * most]), most)


def _short(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def value(found: Value) -> str:
    """Show a value shortly, and no text as anything but text."""
    if isinstance(found, str) and LOOKS_TYPED.fullmatch(found):
        return cut(quoted(found), LONGEST_VALUE)
    return cut(plain(found), LONGEST_VALUE)


def assignment(values: Iterable[tuple[str, Value]], *further: str) -> str:
    """Show names with their values."""
    shown = [f"{cut(name, LONGEST_VALUE)}={value(one)}" for name, one in values]
    return _short("  ".join([*shown, *further]), LONGEST_LINE)


def trial(found: Trial) -> str:
    """Show a trial's values."""
    replicate = [f"(replicate {found.replicate})"] if found.replicate else []
    return assignment(found.assignment.items(), *replicate)


def size(review: Review) -> str:
    """Say how many trials there are, and why."""
    if review.ahead is not None:
        begun = review.standing.running + review.standing.recorded
        return sizes.rounds(review.ahead, further=begun > 0)
    trials = counted(len(review.trials), "trial")
    if review.sweep.replicates == 1:
        return trials
    assignments = counted(review.coverage.assignments, "assignment")
    return f"{trials} ({assignments} {TIMES} {review.sweep.replicates} replicates)"


def rejected(found: Rejection) -> str:
    """Say what a constraint keeps out, and what it has no say in."""
    unasked = f", {found.unasked:,} not asked," if found.unasked else ""
    return f"{found.rejected:,} rejected{unasked} by"


def asks(review: Review) -> str:
    """Say what is searched and how, and what for, on one line."""
    goals = ", ".join(f"{one.goal} {cut(one.name, LONGEST_VALUE)}" for one in review.sweep.metrics)
    parts = [*map(_block, review.sweep.blocks), f"goal {goals}"]
    return cut(" · ".join(parts))


def _block(block: Block) -> str:
    sizes = [
        cut(one.name, LONGEST_VALUE)
        + (f" {len(one.domain.values)}" if isinstance(one.domain, Choice) else "")
        for one in block.space.parameters
        if not isinstance(one.domain, Constant)
    ]
    spanned = f" {TIMES} ".join(sizes) or "one assignment"
    match block:
        case Grid(seed=None):
            return f"{block.method}: {spanned}"
        case Grid(cap=cap, seed=seed) | Draw(cap=cap, seed=seed):
            return f"{block.method}: {cap or 'all'} of {spanned}, seed {seed}"
        case Listing(assignments=listed):
            return f"{block.method}: {counted(len(listed), 'assignment')}"
        case Search(rounds=rounds, seed=seed):
            return f"{block.method}: rounds of {rounds.size} over {spanned}, seed {seed}"
        case _:
            assert_never(block)


def standing(review: Review) -> str:
    """Say what is known of the trials."""
    found = review.standing
    return f"{found.new:,} new, {found.running:,} running, {found.recorded:,} recorded"


def cost(review: Review) -> str:
    """Bound the cost, as hours of single trials and on the clock."""
    new, whole, run = review.new_cost, review.whole_cost, review.sweep.run
    if not new.trials:
        return f"nothing new; at most {_hours(whole)} for all {whole.trials:,}"
    factors = (
        counted(new.trials, "new trial"),
        _duration(run.timeout_seconds),
        counted(run.retries + 1, "attempt"),
    )
    told = f"at most {_hours(new)} ({f' {TIMES} '.join(factors)}), "
    told += f"about {_spoken(new.wall_hours, 'hour')} at parallelism {run.parallelism:,}"
    return told if new == whole else f"{told}; {_hours(whole)} for all {whole.trials:,}"


def _hours(found: Cost) -> str:
    gpu = f", {_spoken(found.gpu_hours, 'GPU hour')}" if found.gpu_hours else ""
    return f"{_spoken(found.hours, 'trial hour')}{gpu}"


def _spoken(amount: float, noun: str) -> str:
    return f"{_number(amount)} {noun}" + "s" * (_number(amount) != "1")


def _duration(seconds: int) -> str:
    """Write a timeout as a spec would."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length:,}{unit}"
    return f"{seconds:,}s"


def outdated(review: Review) -> str:
    """Say what new trials will not run, and how they would."""
    parts = " and ".join(one.part for one in review.outdated)
    shown = [
        f"{one.name} {_short_id(one.locked)} → {_short_id(one.current) or 'none'}".strip()
        for one in review.outdated
    ]
    way = f"`sweep update {review.sweep.name}` would ask for everything anew"
    return f"{parts} changed since the lock ({', '.join(shown)}): {way}"


def _short_id(text: str) -> str:
    """Shorten a digest; an image is its digest."""
    return text.rpartition("@")[2].removeprefix("sha256:")[:SHORT_COMMIT]


def _number(found: float) -> str:
    return f"{found:,.0f}" if found >= EXACT_ENOUGH else f"{found:.3g}"


def budget(review: Review) -> str:
    """Say what the spec allows; nothing where it sets no limit."""
    found = review.sweep.budget
    trials = [] if found.max_trials is None else [counted(found.max_trials, "trial")]
    hours = [] if found.max_gpu_hours is None else [f"{short(found.max_gpu_hours)} GPU hours"]
    return ", ".join(trials + hours)


def room(found: Room | None) -> str:
    """Say what new trials take of their pool; nothing where they name none."""
    if found is None:
        return ""
    asked, nodes = found.run.resources, found.run.nodes
    gpus = [counted(asked.gpu, "GPU")] if asked.gpu else []
    needs = ", ".join([f"{asked.cpu} CPU", _bytes(asked.memory), *gpus])
    pods = f" {TIMES} {nodes} pods" if nodes > 1 else ""
    most = "" if found.pool.max_nodes is None else f" of at most {found.pool.max_nodes:,}"
    parts = [
        f"{found.trials:,}{pods} {TIMES} {found.pool.name} ({needs})",
        f"{found.at_once:,} at once",
        f"{counted(found.nodes, 'node')}{most}",
    ]
    if found.price is not None:
        parts.append(f"at most {_number(found.price)} at {short(found.pool.price or 0)} a node and hour")
    return " · ".join(parts)


def _bytes(quantity: str) -> str:
    """Write an amount of memory with the unit's name."""
    amount = quantity.rstrip("kKMGTi")
    return f"{amount} {quantity.removeprefix(amount)}B"


def percent(share: float) -> str:
    """Show a share."""
    return f"{100 * share:.3g} %"


def evenness(found: Discrepancy) -> str:
    """Compare a discrepancy with what chance would give."""
    points = f"{counted(found.points, 'point')} in {counted(found.dimensions, 'continuous dimension')}"
    return f"discrepancy of {points}: {found.value:.3g}, of random points {found.random:.3g}"


def histogram(found: Binned) -> str:
    """Draw ten bins."""
    most = max(found.counts)
    return "".join(BLOCKS[-(-count * len(BLOCKS) // most) - 1] if count else EMPTY for count in found.counts)


def span(found: Binned) -> str:
    """Say from where to where values go, and where the bins do if that is further."""
    scale = ", log scale" if found.scale is Scale.LOG else ""
    reached = f"{short(found.smallest)} … {short(found.largest)}"
    bounds = f"{short(found.low)} … {short(found.high)}"
    return f"{reached}{scale}" if reached == bounds else f"{reached} of {bounds}{scale}"


def levels(found: Counted) -> tuple[str, ...]:
    """Show how often each value occurs."""
    shown = [f"{value(one)} {TIMES}{count:,}" for one, count in found.values[:MOST_VALUES]]
    more = len(found.values) - len(shown)
    return (*shown, *[f"… {more:,} more values"] * (more > 0))


def name(one: Covered) -> str:
    """Show a parameter's name."""
    return cut(one.name, LONGEST_VALUE)


def notes(one: Covered) -> str:
    """Say what is special about a parameter."""
    zipped = [f"zipped with {', '.join(one.zipped_with)}"] if one.zipped_with else []
    return cut("; ".join(["derived"] * one.is_derived + ["conditional"] * one.is_conditional + zipped))


def is_telling(review: Review) -> bool:
    """Tell whether the spec is another than at the base: only then is there anything to compare."""
    found = review.difference
    return not (isinstance(found, Difference) and found.is_same_text and found.former == review.sweep.path)


def change(review: Review) -> str:
    """Say how the trials differ from those at the base; those of further rounds nobody knows yet."""
    found, path = review.difference, review.sweep.path
    match found:
        case Difference(former=former) if review.ahead is not None:
            return "no such sweep there" if former is None else "further rounds go on from what is recorded"
        case Difference(former=None):
            return f"no such sweep there: all {counted(len(found.added), 'trial')} added"
        case Difference(former) if found.is_empty and former == path:
            return f"nothing changed in the space ({counted(found.unchanged, 'trial')})"
        case Difference(former):
            counts = (
                f"{len(found.added):,} added, {len(found.removed):,} removed, {found.unchanged:,} unchanged"
            )
            return counts if former == path else f"{counts}; renamed from {one_line(former or '')}"
        case Unreadable():
            problems = counted(len(found.problems), "problem")
            return f"cannot be compared: {one_line(found.former)} has {problems} there"
        case _:
            assert_never(found)
