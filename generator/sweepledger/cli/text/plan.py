"""Search spaces as text, and the output of `plan` as text and as a comment on a pull request, of limited size.

A comment quotes text of specs, and file names, as code, so that `@name` does not notify a user.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sweepledger.cli.response import SHORT_COMMIT, has_errors
from sweepledger.cli.text.style import filled_table, new_table, untrusted_text
from sweepledger.cli.text.values import (
    amount_text,
    count_text,
    duration_range_text,
    duration_text,
    rounds_text,
    timeout_text,
    value_text,
)
from sweepledger.plan.budgets import BudgetUnit, Cost, PoolUsage
from sweepledger.plan.coverage import Histogram, ParameterCoverage, Scale, ValueCounts
from sweepledger.plan.forecast import DurationSource, Quantiles
from sweepledger.plan.review import CodeChange, Difference, Planned, Rejection, Review, UnreadableSpec
from sweepledger.problems import Problem, list_names
from sweepledger.reader import safe_repr
from sweepledger.results.display import escape_markdown, format_number, markdown_code, one_line
from sweepledger.structs import node_pool, search_block
from sweepledger.structs.domain import Domain
from sweepledger.structs.quantities import format_bytes
from sweepledger.structs.search_block import AdaptiveSearch, ConfigurationList, Design, Rounds
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import Value

MOST_CHOICES = 8
"""Values of a parameter that are shown; the spec has all."""


def round_sizes_text(rounds: Rounds) -> str:
    """Return the size of rounds, and how many of them overlap."""
    return f"rounds of {rounds.size}" + (f", {rounds.ahead} at once" if rounds.ahead > 1 else "")


def search_space_table(design: Design) -> Table:
    """Return the search space, one parameter per line."""
    return filled_table(
        ("  parameter", "values"), ((f"  {name}", text) for name, text in parameter_rows(design))
    )


def parameter_rows(design: Design) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a design with their domains, then zip groups and constraints."""
    space = design.space
    for parameter in space.parameters:
        conditions = (
            f"{condition.parameter} is {' or '.join(map(_value_text, condition.values))}"
            for condition in parameter.when
        )
        when = f" when {' and '.join(conditions)}" if parameter.when else ""
        yield parameter.name, f"{domain_text(parameter.domain)}{when}"
    if isinstance(design, ConfigurationList):
        yield ", ".join(design.names), f"{len(design.assignments)} configurations, as listed"
    if isinstance(design, AdaptiveSearch) and (resource := design.resource):
        yield resource.parameter, f"{resource.minimum} … {resource.maximum}, the resource"
    for derived in space.derived:
        yield derived.name, f"= {derived.text}"
    for group in space.zips:
        yield "zip", ", ".join(group)
    for constraint in space.constraints:
        yield "constraint", constraint.text


def domain_text(domain: Domain) -> str:
    """Return the possible values of a parameter."""
    if not domain.listed:
        return domain.text
    values = [_value_text(value) for value in domain.listed[:MOST_CHOICES]]
    if domain.chances is not None:
        values = [
            f"{text} ({100 * share:.3g} %)" for text, share in zip(values, domain.chances, strict=False)
        ]
    more = [f"… ({len(domain.listed)} values)"] if len(domain.listed) > MOST_CHOICES else []
    return ", ".join([*values, *more])


def _value_text(value: Value) -> str:
    match value:
        case list() | tuple():
            return f"[{', '.join(map(_value_text, value))}]"
        case float() if value.is_integer():
            return f"{value:g}"
        case _:
            return safe_repr(value)


BLOCKS = "▁▂▃▄▅▆▇█"
EMPTY = "·"
"""An empty bin; the lowest block would look like a small count."""

TIMES = "\N{MULTIPLICATION SIGN}"

LONGEST_VALUE = 40
LONGEST_LINE = 500

MOST_VALUES = 12
"""Values of a parameter that are shown; JSON has all."""
CHANGED_FILES = 5
"""Files of the code that are named."""
FEW_TRIALS = 5
"""Added trials, and removed trials, that are shown."""

COMMENT_BYTES = 60 * 1024
"""GitHub accepts 65,536 characters in a comment; the workflow may add a few."""

RESERVED_BYTES = 200
"""Bytes for the line that states what was cut."""

MOST_ROWS = 50
"""Rows of one table or list."""


def shorten(text: str, most: int = LONGEST_LINE) -> str:
    """Return text on one line of limited length."""
    return _truncate(one_line(text[: 2 * most]), most)


def _truncate(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def short_value(value: Value) -> str:
    """Return a value on one line of limited length."""
    return shorten(value_text(value), LONGEST_VALUE)


def _short_configuration(configuration: Iterable[tuple[str, Value]], *suffixes: str) -> str:
    parts = [f"{shorten(name, LONGEST_VALUE)}={short_value(value)}" for name, value in configuration]
    return _truncate("  ".join([*parts, *suffixes]), LONGEST_LINE)


def _sweep_size(review: Review) -> str:
    if (bounds := review.further_rounds) is not None:
        merged = review.counts.running + review.counts.recorded
        return rounds_text(bounds.trials, bounds.rounds, bounds.size, further=merged > 0)
    trials = count_text(len(review.trials), "trial")
    if review.sweep.replicates == 1:
        return trials
    configurations = count_text(review.coverage.configurations, "configuration")
    return f"{trials} ({configurations} {TIMES} {review.sweep.replicates} replicates)"


def rejection_text(rejection: Rejection) -> str:
    """Return how many candidates a constraint rejects, and to how many it does not apply."""
    unchecked = f" ({rejection.unevaluated:,} not checked)" if rejection.unevaluated else ""
    return f"{rejection.rejected:,} rejected{unchecked} by"


def _search_summary(review: Review) -> str:
    design, rounds = review.sweep.design, review.sweep.static_rounds
    sizes = [
        shorten(parameter.name, LONGEST_VALUE)
        + (f" {len(parameter.domain.listed)}" if parameter.domain.listed else "")
        for parameter in design.space.parameters
        if not parameter.domain.is_constant
    ]
    parameters = f" {TIMES} ".join(sizes) or "one configuration"
    match design:
        case search_block.GridSearch():
            text = parameters
        case search_block.RandomSearch(cap=cap, seed=seed):
            text = f"{cap} of {parameters}, seed {seed}"
        case search_block.ConfigurationList(assignments=configurations):
            text = count_text(len(configurations), "configuration")
        case search_block.AdaptiveSearch(rounds=sizes_of_rounds, seed=seed):
            text = f"{round_sizes_text(sizes_of_rounds)} over {parameters}, seed {seed}"
        case _:
            assert_never(design)
    goals = ", ".join(
        f"{metric.goal} {shorten(metric.name, LONGEST_VALUE)}" for metric in review.sweep.metrics
    )
    parts = [f"{design.method}: {text}", *([round_sizes_text(rounds)] if rounds else []), f"goal {goals}"]
    return shorten(" · ".join(parts))


def cost_bound(review: Review) -> str:
    """Return the upper bound of the cost, in trial hours and in hours of wall time."""
    new, whole, run = review.new_cost, review.whole_cost, review.sweep.run
    if not new.trials:
        return f"nothing new; at most {_hours_text(whole)} for all {whole.trials:,}"
    starts = [count_text(run.attempts, "attempt")]
    starts += [count_text(run.max_disruptions, "disruption")] if run.max_disruptions else []
    starts += ["1 beside others"] if run.max_starts > run.attempts + run.max_disruptions else []
    attempts = starts[0] if len(starts) == 1 else f"({' + '.join(starts)})"
    factors = (count_text(new.trials, "new trial"), timeout_text(run.timeout_seconds), attempts)
    text = f"at most {_hours_text(new)} ({f' {TIMES} '.join(factors)}), "
    text += f"about {_amount_with_unit(new.wall_hours, 'hour')} at parallelism {run.parallelism:,}"
    text = text if new == whole else f"{text}; {_hours_text(whole)} for all {whole.trials:,}"
    if run.infrastructure is None:
        return text
    again = count_text(run.infrastructure.retries, "repetition")
    return f"{text}; and {again} of each trial that infrastructure ends, as budgets allow"


def _hours_text(cost: Cost) -> str:
    gpu = f", {_amount_with_unit(cost.gpu_hours, 'GPU hour')}" if cost.gpu_hours else ""
    return f"{_amount_with_unit(cost.trial_hours, 'trial hour')}{gpu}"


def _amount_with_unit(amount: float, noun: str) -> str:
    text = amount_text(amount, digits=3)
    return f"{text} {noun}" + "s" * (text != "1")


def _outdated_text(review: Review) -> str:
    parts = " and ".join(change.part for change in review.outdated)

    def short(digest: str) -> str:  # of a reference to an image, its digest
        return digest.rpartition("@")[2].removeprefix("sha256:")[:SHORT_COMMIT]

    changes = [
        f"{change.name} {short(change.locked)} → {short(change.current) or 'none'}".strip()
        for change in review.outdated
    ]
    hint = f"`sweep generate {review.sweep.name} --update` runs all trials with the new version"
    return f"{parts} changed since the lock ({', '.join(changes)}): {hint}"


def _code_text(change: CodeChange) -> str:
    """Return a text about the files of the code that differ from those of past or of coming trials."""
    after = (
        f"differs from {change.since}" if change.since else "changed since the lock, and this does not run"
    )
    if change.files is None:
        return f"{after}; this clone lacks one version: `git fetch --unshallow`"
    names = [
        one_line(file.path) + (" (not text)" if file.added is None else f" +{file.added} -{file.removed}")
        for file in change.files
    ]
    return f"{after}: {count_text(len(change.files), 'file')}: {list_names(names, CHANGED_FILES)}"


def pool_usage(usage: PoolUsage | None) -> str:
    """Return the share of their pool that new trials use; an empty text without a pool."""
    if usage is None:
        return ""
    resources, nodes, pack = usage.run.pod_resources, usage.run.nodes, usage.run.pack
    parts, shares = [f"{resources.cpu} CPU", _memory_text(resources.memory)], usage.pool.gpu_shares
    if gpus := resources.gpu:
        parts.append(
            count_text(gpus, "GPU") if shares is None else f"{gpus}/{shares.count} GPU by {shares.by}"
        )
    pod = ", ".join(parts)
    if pack is not None:
        pod += f" for {pack.at_once:,} of {pack.trials:,} trials at once"
    pods = f" {TIMES} {nodes} pods" if nodes > 1 else ""
    limit = "" if usage.pool.max_nodes is None else f" of at most {usage.pool.max_nodes:,}"
    parts = [
        f"{usage.trials:,}{pods} {TIMES} {usage.pool.name} ({pod})",
        f"{usage.at_once:,} at once",
        f"{count_text(usage.nodes, 'node')}{limit}",
    ]
    if usage.price is not None:
        price = amount_text(usage.price, digits=3)
        parts.append(f"at most {price} at {format_number(usage.pool.price or 0)} per node and hour")
    return " · ".join(parts)


def _memory_text(quantity: str) -> str:
    """Return a quantity of memory with its unit, such as `2 GiB`."""
    amount = quantity.rstrip("kKMGTi")
    return f"{amount} {quantity.removeprefix(amount)}B"


def _value_cell(values: Histogram | ValueCounts) -> "_Cell":
    """Return the counts of values, by value or as bars with their range, and the bins' range if it is larger."""
    if isinstance(values, ValueCounts):
        texts = [f"{short_value(value)} {TIMES}{count:,}" for value, count in values.values[:MOST_VALUES]]
        more = len(values.values) - len(texts)
        return tuple(map(_Quoted, (*texts, *[f"… {more:,} more values"] * (more > 0))))
    most = max(values.counts)
    bars = (BLOCKS[-(-count * len(BLOCKS) // most) - 1] if count else EMPTY for count in values.counts)
    observed = f"{format_number(values.min)} … {format_number(values.max)}"
    bins = f"{format_number(values.low)} … {format_number(values.high)}"
    scale = ", log scale" if values.scale is Scale.LOG else ""
    return _Quoted(f"{''.join(bars)}  {observed}{'' if observed == bins else f' of {bins}'}{scale}")


def _parameter_notes(parameter: ParameterCoverage) -> str:
    notes = ["derived"] * parameter.derived + ["conditional"] * parameter.conditional
    if parameter.zipped_with:
        notes.append(f"zipped with {', '.join(parameter.zipped_with)}")
    return shorten("; ".join(notes))


def _change_text(review: Review) -> str:
    """Return how the trials differ from those at the base commit; later rounds of a search are unknown."""
    change, path = review.difference, review.sweep.path
    match change:
        case Difference(previous=previous) if review.further_rounds is not None:
            return "new sweep" if previous is None else "further rounds continue from the recorded results"
        case Difference(previous=None):
            return f"new sweep: all {count_text(len(change.added), 'trial')} added"
        case Difference(previous) if change.is_empty and previous == path:
            return f"search space unchanged ({count_text(change.unchanged, 'trial')})"
        case Difference(previous):
            counts = f"{len(change.added):,} added, {len(change.removed):,} removed, {change.unchanged:,} unchanged"
            return counts if previous == path else f"{counts}; renamed from {one_line(previous or '')}"
        case UnreadableSpec():
            problems = count_text(len(change.problems), "problem")
            return f"cannot be compared: {one_line(change.previous)} has {problems} at that commit"
        case _:
            assert_never(change)


def _summary_rows(review: Review, planned: Planned) -> Iterator[tuple[str, str]]:
    yield "search", _search_summary(review)
    yield from _forecast_rows(review, planned.currency)
    yield "cost", cost_bound(review)
    if usage := pool_usage(review.pool_usage):
        yield "pool", usage
    if (disk := review.disk) is not None:
        sizes = (disk.total, disk.scratch, disk.copy)
        total, scratch, copy = (_memory_text(format_bytes(size)) for size in sizes)
        at_once = review.sweep.run.trials_per_pod
        each = "its copy" if at_once == 1 else f"each of {at_once:,} copies"
        yield "disk", f"{total} a pod · {scratch} for what it runs, of which {copy} for {each} of the code"
    if review.cluster is not None:
        yield "cluster", review.cluster
    for balance in review.balances:
        unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else planned.currency or "of money"
        used = f"{_amount(balance.used)} of {_amount(balance.limit)} {unit} used"
        reserved = f", {_amount(balance.reserved)} reserved" if balance.reserved else ""
        exceeded = ": more than remains" if balance.is_exceeded else ""
        added = f"this sweep adds at most {_amount(balance.requested)}"
        yield "budget", f"{balance.team} {planned.month}: {used}{reserved}; {added}{exceeded}"
    budget = review.sweep.budget
    trials = [] if budget.max_trials is None else [count_text(budget.max_trials, "trial")]
    hours = [] if budget.max_gpu_hours is None else [f"{format_number(budget.max_gpu_hours)} GPU hours"]
    if trials or hours:
        yield "limit", ", ".join(trials + hours)
    yield from (("code", shorten(_code_text(change))) for change in review.code)
    yield from (("note", shorten(note.text)) for note in review.notes)


LONGEST_REASON = 120


def _forecast_rows(review: Review, currency: str) -> Iterator[tuple[str, str]]:
    forecast = review.forecast
    if forecast is None:
        return
    seconds = forecast.trial_seconds
    if seconds is None:
        reason = one_line(forecast.reason)[:LONGEST_REASON]
        yield "time", f"unknown: {reason}; set run.expected_minutes for an estimate"
    elif forecast.source is DurationSource.EXPECTED:
        yield "time", f"≈ {duration_text(seconds.median)} per trial, from run.expected_minutes"
    else:
        source = f"{forecast.records:,} recorded trials of this program"
        source += f"; by {', '.join(forecast.parameters)}" if forecast.parameters else ""
        interval = duration_range_text(seconds.low, seconds.high)
        yield "time", f"≈ {duration_text(seconds.median)} per trial (80 %: {interval}; {source})"
    if (done := forecast.completion_seconds) is not None:
        text = f"≈ {duration_text(done.median)} after the merge"
        text += "" if done.is_exact else f" (80 %: {duration_range_text(done.low, done.high)})"
        if forecast.ahead and review.sweep.pool is not None:
            text += f" · {forecast.ahead:,} ahead in pool {review.sweep.pool.name}"
        if forecast.uncounted:
            text += f", {forecast.uncounted:,} of unknown duration not counted"
        yield "done", text
    if forecast.trial_hours is not None:
        yield "use", _usage_text(forecast.trial_hours, forecast.money, review, currency)


def _usage_text(hours: Quantiles, money: Quantiles | None, review: Review, currency: str) -> str:
    run = review.sweep.run
    if run.resources.gpu:
        amount, unit = hours.times(node_pool.gpus_per_trial(run, review.sweep.pool)), "GPU hours"
    else:
        amount, unit = hours.times(run.resources.threads * run.nodes), "CPU hours"
    text = f"≈ {_amount(amount.median)} {unit}"
    if not amount.is_exact:
        text += f" (80 %: {_amount(amount.low)} to {_amount(amount.high)})"
    if money is None:
        return text
    interval = f"{money.median:,.2f}" if money.is_exact else f"{money.low:,.2f} to {money.high:,.2f}"
    unit = currency or "at the pool's price"
    return f"{text} · {interval} {unit}"


def _amount(amount: float) -> str:
    return amount_text(amount, digits=2)


class _Quoted(str):
    """Text of a spec, or a file name, which a comment quotes as code."""

    __slots__ = ()


_Cell = str | tuple[str, ...]
"""One text or several."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A table of a review, or lines if it has no headings."""

    rows: Sequence[tuple[_Cell, ...]]
    headings: tuple[str, ...] = ()
    title: str = ""
    """The heading in a comment."""
    style: str = ""
    """The style of its lines on a terminal."""


def _parts(review: Review, planned: Planned) -> Iterator[_Part]:
    """Yield the parts of a review after its summary, for a terminal and for a comment."""
    if review.unlocked:
        reason = _Quoted(shorten(review.unlocked))
        yield _Part([("trials count as new and ids may change:", reason)], style="yellow")
    if review.outdated:
        yield _Part([(_outdated_text(review),)], style="yellow")
    design, coverage, change = review.design, review.coverage, review.difference
    remarks: list[tuple[_Cell, ...]] = [
        (rejection_text(rejection), _Quoted(shorten(rejection.text))) for rejection in design.constraints
    ]
    if discrepancy := design.discrepancy:
        points = count_text(discrepancy.points, "point")
        dimensions = count_text(discrepancy.dimensions, "continuous dimension")
        text = f"discrepancy of {points} in {dimensions}: {discrepancy.value:.3g}"
        remarks.append((f"{text}, of random points {discrepancy.random:.3g}",))
    if review.further_rounds is not None:
        space = [
            (_Quoted(shorten(name)), _Quoted(shorten(text)))
            for name, text in parameter_rows(review.sweep.design)
        ]
        yield _Part(space, ("parameter", "values"), "Search space")
        yield _Part(remarks)
    else:
        counts = (design.candidates, design.rejected, design.duplicates, design.kept)
        row = (design.method, *(f"{count:,}" for count in counts), f"{100 * design.acceptance:.3g} %")
        headings = ("method", "candidates", "rejected", "duplicates", "kept", "accepted")
        yield _Part([row], headings, "Candidates")
        yield _Part(remarks)
        parameters = [
            (
                _Quoted(shorten(parameter.name, LONGEST_VALUE)),
                f"{parameter.configurations:,}",
                _value_cell(parameter.values),
                _parameter_notes(parameter),
            )
            for parameter in coverage.parameters
        ]
        yield _Part(parameters, ("parameter", "trials", "values", ""), "Coverage")
        if coverage.constants:
            yield _Part([("fixed ", _Quoted(_short_configuration(coverage.constants)))])
        ends = (*_trial_rows("first", review.first), *_trial_rows("last", review.last))
        yield _Part(ends, TRIAL_HEADINGS, "Trials")
    compared = change if isinstance(change, Difference) else None
    if planned.base is not None and not (
        compared and compared.is_same_text and compared.previous == review.sweep.path
    ):
        text = f"spec compared with {planned.base[:SHORT_COMMIT]}: {_change_text(review)}"
        yield _Part([(text,)], title="Difference")
    if compared is not None and compared.previous is not None:
        rows: list[tuple[_Cell, ...]] = []
        for label, trials in (("added", compared.added), ("removed", compared.removed)):
            rows += (row for trial in trials[:FEW_TRIALS] for row in _trial_rows(label, (trial,)))
            if len(trials) > FEW_TRIALS:
                rows.append((label, "…", f"{len(trials) - FEW_TRIALS:,} more"))
        yield _Part(rows, TRIAL_HEADINGS)


TRIAL_HEADINGS = ("", "trial", "values")


def _trial_rows(label: str, trials: Sequence[Trial]) -> Iterator[tuple[_Cell, ...]]:
    for trial in trials:
        replicate = [f"(replicate {trial.replicate})"] if trial.replicate else []
        values = _short_configuration(trial.assignment.items(), *replicate)
        yield label, _Quoted(trial.id), _Quoted(values)
        label = ""


def _trial_counts(review: Review) -> str:
    counts = review.counts
    return f"{counts.new:,} new, {counts.running:,} running, {counts.recorded:,} recorded"


def plan_text(planned: Planned) -> tuple[RenderableType, ...]:
    """Return the review of each changed sweep, then the names of unchanged sweeps."""
    parts: list[RenderableType] = []
    for review in planned.reviews:
        batch = f" · {review.batch}" if review.batch else ""
        head = f"{review.sweep.name}: {_sweep_size(review)}: {_trial_counts(review)}{batch}"
        parts.append(Text(head, "bold"))
        parts += (f"  {label:6} {text}" for label, text in _summary_rows(review, planned))
        parts += (shown for part in _parts(review, planned) for shown in _part_text(part))
    if planned.unchanged:
        parts.append(f"unchanged: {', '.join(planned.unchanged)}")
    return tuple(parts) or (() if planned.problems else ("there is no sweep yet",))


SIGNS = {"added": "  +", "removed": "  -"}


def _part_text(part: _Part) -> Iterator[RenderableType]:
    if not part.headings:
        yield from (untrusted_text(f"  {' '.join(map(str, row))}", part.style) for row in part.rows)
    elif part.rows:
        label, *headings = part.headings
        table = new_table(label and f"  {label}", *headings)
        table.show_header = bool(label)
        table.columns[-1].style = "" if headings[-1] else "dim"
        for name, *cells in part.rows:
            texts = ("  ".join(cell) if isinstance(cell, tuple) else cell for cell in cells)
            table.add_row(f"  {SIGNS.get(str(name), str(name)):5}", *texts)
        yield table


def plan_comment(planned: Planned) -> str:
    """Return the review of each changed sweep, then the names of unchanged sweeps."""
    lines = list(_problems("##", planned.problems))
    for review in planned.reviews:
        lines += [f"## {escape_markdown(review.sweep.name)}: {_sweep_size(review)}", ""]
        if review.sweep.description:
            lines += [markdown_code(shorten(review.sweep.description)), ""]
        batch = f"; batch `{review.batch}`" if review.batch else ""
        lines += [f"{_trial_counts(review)}{batch}.", ""]
        # Files of the code have any names, `@name` among them.
        rows = [
            (label, _Quoted(text) if label == "code" else text)
            for label, text in _summary_rows(review, planned)
        ]
        for part in (_Part(rows, ("", "")), *_parts(review, planned)):
            lines += _part_comment(part)
        lines += _problems("###", review.problems)
    if planned.unchanged:
        lines += [f"Unchanged: {shorten(', '.join(planned.unchanged))}.", ""]
    return fit_comment(lines or ["There is no sweep yet.", ""])


def fit_comment(lines: Sequence[str]) -> str:
    """Return as many lines as fit a comment, and the number of omitted lines."""
    sizes = [len(line.encode()) + 1 for line in lines]
    kept, used = 0, 0
    if sum(sizes) <= COMMENT_BYTES:
        return "\n".join(lines)
    while used + sizes[kept] <= COMMENT_BYTES - RESERVED_BYTES:
        used += sizes[kept]
        kept += 1
    cut = f"… {len(lines) - kept:,} more lines were cut; `sweep plan` shows them."
    return "\n".join([*lines[:kept], "", cut, ""])


def _problems(level: str, problems: Sequence[Problem]) -> Iterator[str]:
    title = "Problems" if has_errors(problems) else "Warnings"
    return _part_comment(_Part([(_Quoted(shorten(str(problem))),) for problem in problems], (), title), level)


def _part_comment(part: _Part, level: str = "###") -> Iterator[str]:
    if not part.rows:
        return
    if part.title:
        yield from (f"{level} {part.title}", "")
    if part.headings:
        yield f"| {' | '.join(part.headings)} |"
        yield "|" + " --- |" * len(part.headings)
    for row in part.rows[:MOST_ROWS]:
        cells = [
            ", ".join(map(_comment_cell, cell)) if isinstance(cell, tuple) else _comment_cell(cell)
            for cell in row
        ]
        line = " ".join(cells)
        yield f"| {' | '.join(cells)} |" if part.headings else f"- {line[:1].upper()}{line[1:]}"
    if len(part.rows) > MOST_ROWS:
        yield from ("", f"… {len(part.rows) - MOST_ROWS:,} more")
    yield ""


def _comment_cell(text: str) -> str:
    return markdown_code(text) if isinstance(text, _Quoted) else escape_markdown(text)
