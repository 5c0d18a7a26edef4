"""Search spaces as text, and the output of `plan` as text and as a comment on a pull request, of limited size.

A comment quotes text from a spec, and names of files, as code, so that `@name` does not notify a user.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sweepledger.cli.response import SHORT_COMMIT, has_errors
from sweepledger.cli.text import values
from sweepledger.cli.text.style import new_table
from sweepledger.cli.text.values import (
    amount_text,
    count_text,
    duration_range_text,
    duration_text,
    percent_text,
    timeout_text,
    value_text,
)
from sweepledger.plan.budgets import BudgetUnit, Cost, PoolUsage
from sweepledger.plan.coverage import Discrepancy, Histogram, ParameterCoverage, Scale, ValueCounts
from sweepledger.plan.forecast import DurationSource, Forecast, Quantiles
from sweepledger.plan.review import (
    CodeChange,
    DesignReview,
    Difference,
    Planned,
    Rejection,
    Review,
    UnreadableSpec,
)
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
    table = new_table("  parameter", "values")
    for name, text in parameter_rows(design):
        table.add_row(f"  {name}", text)
    return table


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


def _trial_values(trial: Trial) -> str:
    replicate = [f"(replicate {trial.replicate})"] if trial.replicate else []
    return _short_configuration(trial.assignment.items(), *replicate)


def _sweep_size(review: Review) -> str:
    if (bounds := review.further_rounds) is not None:
        merged = review.counts.running + review.counts.recorded
        return values.rounds_text(bounds.trials, bounds.rounds, bounds.size, further=merged > 0)
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
    goals = ", ".join(
        f"{metric.goal} {shorten(metric.name, LONGEST_VALUE)}" for metric in review.sweep.metrics
    )
    rounds = review.sweep.static_rounds
    parts = [_design_summary(review.sweep.design), *([round_sizes_text(rounds)] if rounds else [])]
    parts.append(f"goal {goals}")
    return shorten(" · ".join(parts))


def _design_summary(design: search_block.Design) -> str:
    sizes = [
        shorten(parameter.name, LONGEST_VALUE)
        + (f" {len(parameter.domain.listed)}" if parameter.domain.listed else "")
        for parameter in design.space.parameters
        if not parameter.domain.is_constant
    ]
    parameters = f" {TIMES} ".join(sizes) or "one configuration"
    match design:
        case search_block.GridSearch():
            return f"{design.method}: {parameters}"
        case search_block.RandomSearch(cap=cap, seed=seed):
            return f"{design.method}: {cap} of {parameters}, seed {seed}"
        case search_block.ConfigurationList(assignments=configurations):
            return f"{design.method}: {count_text(len(configurations), 'configuration')}"
        case search_block.AdaptiveSearch(rounds=rounds, seed=seed):
            return f"{design.method}: {round_sizes_text(rounds)} over {parameters}, seed {seed}"
        case _:
            assert_never(design)


def _trial_counts(review: Review) -> str:
    counts = review.counts
    return f"{counts.new:,} new, {counts.running:,} running, {counts.recorded:,} recorded"


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
    changes = [
        f"{change.name} {_short_digest(change.locked)} → {_short_digest(change.current) or 'none'}".strip()
        for change in review.outdated
    ]
    hint = f"`sweep generate {review.sweep.name} --update` runs all trials with the new version"
    return f"{parts} changed since the lock ({', '.join(changes)}): {hint}"


def _code_text(change: CodeChange) -> str:
    """Return which files of the code differ from those that ran, or from those that will run."""
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


def _short_digest(text: str) -> str:
    """Return the beginning of a digest; of an image reference, that of its digest."""
    return text.rpartition("@")[2].removeprefix("sha256:")[:SHORT_COMMIT]


def pool_usage(usage: PoolUsage | None) -> str:
    """Return how much of their pool new trials use; an empty text without a pool."""
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


def _discrepancy_text(discrepancy: Discrepancy) -> str:
    points = count_text(discrepancy.points, "point")
    dimensions = count_text(discrepancy.dimensions, "continuous dimension")
    return (
        f"discrepancy of {points} in {dimensions}: {discrepancy.value:.3g}, "
        f"of random points {discrepancy.random:.3g}"
    )


def _histogram_text(histogram: Histogram) -> str:
    most = max(histogram.counts)
    return "".join(
        BLOCKS[-(-count * len(BLOCKS) // most) - 1] if count else EMPTY for count in histogram.counts
    )


def _range_text(histogram: Histogram) -> str:
    """Return the range of the values, and the range of the bins if it is larger."""
    scale = ", log scale" if histogram.scale is Scale.LOG else ""
    values_range = f"{format_number(histogram.smallest)} … {format_number(histogram.largest)}"
    bins_range = f"{format_number(histogram.low)} … {format_number(histogram.high)}"
    return (
        f"{values_range}{scale}" if values_range == bins_range else f"{values_range} of {bins_range}{scale}"
    )


def _value_counts(counts: ValueCounts) -> tuple[str, ...]:
    texts = [f"{short_value(value)} {TIMES}{count:,}" for value, count in counts.values[:MOST_VALUES]]
    more = len(counts.values) - len(texts)
    return (*texts, *[f"… {more:,} more values"] * (more > 0))


def _parameter_notes(parameter: ParameterCoverage) -> str:
    notes = ["derived"] * parameter.is_derived + ["conditional"] * parameter.is_conditional
    if parameter.zipped_with:
        notes.append(f"zipped with {', '.join(parameter.zipped_with)}")
    return shorten("; ".join(notes))


def _has_changed_spec(review: Review) -> bool:
    change = review.difference
    return not (
        isinstance(change, Difference) and change.is_same_text and change.previous == review.sweep.path
    )


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
    yield from (("budget", line) for line in _budget_lines(review, planned.month, planned.currency))
    budget = review.sweep.budget
    trials = [] if budget.max_trials is None else [count_text(budget.max_trials, "trial")]
    hours = [] if budget.max_gpu_hours is None else [f"{format_number(budget.max_gpu_hours)} GPU hours"]
    if trials or hours:
        yield "limit", ", ".join(trials + hours)
    yield from (("code", shorten(_code_text(change))) for change in review.code)
    yield from (("note", shorten(note.text)) for note in review.notes)


def plan_text(planned: Planned) -> tuple[RenderableType, ...]:
    """Return the review of each changed sweep, then the names of unchanged sweeps."""
    parts = [part for review in planned.reviews for part in _review_parts(review, planned)]
    if planned.unchanged:
        parts.append(f"unchanged: {', '.join(planned.unchanged)}")
    return tuple(parts) or (() if planned.problems else ("there is no sweep yet",))


def _review_parts(review: Review, planned: Planned) -> Iterator[RenderableType]:
    batch = f" · {review.batch}" if review.batch else ""
    yield Text(f"{review.sweep.name}: {_sweep_size(review)}: {_trial_counts(review)}{batch}", "bold")
    for label, text in _summary_rows(review, planned):
        yield f"  {label:6} {text}"
    if review.unlocked:
        yield Text(f"  trials count as new and ids may change: {shorten(review.unlocked)}", "yellow")
    if review.outdated:
        yield Text(f"  {_outdated_text(review)}", "yellow")
    if review.further_rounds is not None:
        yield search_space_table(review.sweep.design)
        yield from _constraint_lines(review)
    else:
        yield from _expanded_parts(review)
    if planned.base is not None and _has_changed_spec(review):
        yield f"  spec compared with {planned.base[:SHORT_COMMIT]}: {_change_text(review)}"
    if isinstance(review.difference, Difference) and review.difference.previous is not None:
        for sign, trials in (("+", review.difference.added), ("-", review.difference.removed)):
            if trials:
                yield _trial_table((f"  {sign}", (trial,)) for trial in trials[:FEW_TRIALS])
            if len(trials) > FEW_TRIALS:
                yield f"    {sign} … {len(trials) - FEW_TRIALS:,} more"


def _expanded_parts(review: Review) -> Iterator[RenderableType]:
    design = review.design
    table = new_table("  method", "candidates", "rejected", "duplicates", "kept", "accepted")
    counts = (design.candidates, design.rejected, design.duplicates, design.kept)
    table.add_row(f"  {design.method}", *(f"{count:,}" for count in counts), percent_text(design.acceptance))
    yield table
    yield from _constraint_lines(review)
    if review.coverage.parameters:
        yield _parameter_table(review.coverage.parameters)
    if review.coverage.constants:
        yield f"  fixed  {_short_configuration(review.coverage.constants)}"
    yield _trial_table([("first", review.first), ("last", review.last)])


def _constraint_lines(review: Review) -> Iterator[str]:
    for rejection in review.design.constraints:
        yield f"  {rejection_text(rejection)} {shorten(rejection.text)}"
    if review.design.discrepancy:
        yield f"  {_discrepancy_text(review.design.discrepancy)}"


def _parameter_table(parameters: Iterable[ParameterCoverage]) -> Table:
    table = new_table("  parameter", "trials", "values", "")
    for parameter in parameters:
        values = parameter.values
        if isinstance(values, Histogram):
            cell = f"{_histogram_text(values)}  {_range_text(values)}"
        else:
            cell = "  ".join(_value_counts(values))
        name, notes = (
            f"  {shorten(parameter.name, LONGEST_VALUE)}",
            Text(_parameter_notes(parameter), "dim"),
        )
        table.add_row(name, f"{parameter.present:,}", cell, notes)
    return table


def _trial_table(groups: Iterable[tuple[str, Iterable[Trial]]]) -> Table:
    table = new_table("", "", "")
    table.show_header = False
    for label, trials in groups:
        for index, trial in enumerate(trials):
            table.add_row(f"  {label:5}" if index == 0 else "", trial.id, _trial_values(trial))
    return table


LONGEST_REASON = 120


def _forecast_rows(review: Review, currency: str) -> Iterator[tuple[str, str]]:
    forecast = review.forecast
    if forecast is None:
        return
    yield "time", _trial_time_text(forecast)
    if forecast.completion_seconds is not None:
        yield "done", _completion_text(forecast, forecast.completion_seconds, review)
    if forecast.trial_hours is not None:
        yield "use", _usage_text(forecast.trial_hours, forecast.money, review, currency)


def _budget_lines(review: Review, month: str, currency: str) -> Iterator[str]:
    """Yield the balance of each team budget, and the upper bound of what this sweep adds."""
    for balance in review.balances:
        unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else currency or "of money"
        used = f"{_amount(balance.used)} of {_amount(balance.limit)} {unit} used"
        reserved = f", {_amount(balance.reserved)} reserved" if balance.reserved else ""
        exceeded = ": more than remains" if balance.is_exceeded else ""
        added = f"this sweep adds at most {_amount(balance.requested)}"
        yield f"{balance.team} {month}: {used}{reserved}; {added}{exceeded}"


def _trial_time_text(forecast: Forecast) -> str:
    if forecast.trial_seconds is None:
        reason = one_line(forecast.reason)[:LONGEST_REASON]
        return f"unknown: {reason}; set run.expected_minutes for an estimate"
    median = f"≈ {duration_text(forecast.trial_seconds.median)} per trial"
    if forecast.source is DurationSource.EXPECTED:
        return f"{median}, from run.expected_minutes"
    groups = f"; by {', '.join(forecast.parameters)}" if forecast.parameters else ""
    source = f"{forecast.records:,} recorded trials of this program"
    return f"{median} (80 %: {_duration_interval(forecast.trial_seconds)}; {source}{groups})"


def _completion_text(forecast: Forecast, seconds: Quantiles, review: Review) -> str:
    interval = "" if seconds.is_exact else f" (80 %: {_duration_interval(seconds)})"
    text = f"≈ {duration_text(seconds.median)} after the merge{interval}"
    if forecast.ahead and review.sweep.pool is not None:
        text += f" · {forecast.ahead:,} ahead in pool {review.sweep.pool.name}"
    if forecast.uncounted:
        text += f", {forecast.uncounted:,} of unknown duration not counted"
    return text


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


def _duration_interval(interval: Quantiles) -> str:
    return duration_range_text(interval.low, interval.high)


def plan_comment(planned: Planned) -> str:
    """Return the review of each changed sweep, then the names of unchanged sweeps."""
    lines = list(_problems("##", planned.problems))
    lines += [line for review in planned.reviews for line in _review(review, planned)]
    if planned.unchanged:
        lines += [f"Unchanged: {shorten(', '.join(planned.unchanged))}.", ""]
    return fit_comment(lines or ["There is no sweep yet.", ""])


def fit_comment(lines: Sequence[str]) -> str:
    """Return as many lines as fit a comment, and the number of the others."""
    sizes = [len(line.encode()) + 1 for line in lines]
    kept, used = 0, 0
    if sum(sizes) <= COMMENT_BYTES:
        return "\n".join(lines)
    while used + sizes[kept] <= COMMENT_BYTES - RESERVED_BYTES:
        used += sizes[kept]
        kept += 1
    cut = f"… {len(lines) - kept:,} more lines were cut; `sweep plan` shows them."
    return "\n".join([*lines[:kept], "", cut, ""])


def _review(review: Review, planned: Planned) -> Iterator[str]:
    yield from (f"## {escape_markdown(review.sweep.name)}: {_sweep_size(review)}", "")
    if review.sweep.description:
        yield from (markdown_code(shorten(review.sweep.description)), "")
    batch = f"; batch `{review.batch}`" if review.batch else ""
    yield from (f"{_trial_counts(review)}{batch}.", "")
    # Files of the code have any names, `@name` among them.
    rows = (
        f"| {label} | {markdown_code(text) if label == 'code' else escape_markdown(text)} |"
        for label, text in _summary_rows(review, planned)
    )
    yield from _table("| ", rows)
    if review.unlocked:
        reason = markdown_code(shorten(review.unlocked))
        yield from (f"Trials count as new and ids may change: {reason}.", "")
    if review.outdated:
        yield from (f"{escape_markdown(_outdated_text(review))}.", "")
    if review.further_rounds is not None:
        rows = (
            f"| {markdown_code(shorten(name))} | {markdown_code(shorten(text))} |"
            for name, text in parameter_rows(review.sweep.design)
        )
        yield from ("### Search space", "")
        yield from _table("parameter | values", rows)
    else:
        yield from _counts(review.design)
        coverage = review.coverage
        if coverage.parameters:
            yield from ("### Coverage", "")
            yield from _table("parameter | trials | values | ", map(_parameter_row, coverage.parameters))
        if coverage.constants:
            yield from (f"Fixed: {markdown_code(_short_configuration(coverage.constants))}.", "")
        yield from ("### Trials", "")
        ends = (("first", review.first), ("last", review.last))
        rows = (_row(label * (index == 0), trial) for label, end in ends for index, trial in enumerate(end))
        yield from _table(" | trial | values", rows)
    if planned.base is not None and _has_changed_spec(review):
        yield from _change(review, planned.base)
    yield from _problems("###", review.problems)


def _problems(level: str, problems: Sequence[Problem]) -> Iterator[str]:
    if problems:
        yield from (f"{level} {'Problems' if has_errors(problems) else 'Warnings'}", "")
        yield from _first_rows(f"- {markdown_code(shorten(str(problem)))}" for problem in problems)
        yield ""


def _counts(design: DesignReview) -> Iterator[str]:
    row = (
        f"| {design.method} | {design.candidates:,} | {design.rejected:,} | {design.duplicates:,} "
        f"| {design.kept:,} | {percent_text(design.acceptance)} |"
    )
    yield from ("### Candidates", "")
    yield from _table("method | candidates | rejected | duplicates | kept | accepted", [row])
    remarks = [
        f"- {rejection_text(rejection)} {markdown_code(shorten(rejection.text))}"
        for rejection in design.constraints
    ]
    if design.discrepancy:
        remarks.append(f"- {_discrepancy_text(design.discrepancy)}")
    yield from _first_rows(remarks)
    yield from [""] * bool(remarks)


def _parameter_row(parameter: ParameterCoverage) -> str:
    name = markdown_code(shorten(parameter.name, LONGEST_VALUE))
    notes = escape_markdown(_parameter_notes(parameter))
    values = parameter.values
    if isinstance(values, Histogram):
        text = f"`{_histogram_text(values)}` {_range_text(values)}"
    else:
        text = ", ".join(map(markdown_code, _value_counts(values)))
    return f"| {name} | {parameter.present:,} | {text} | {notes} |"


def _change(review: Review, base: str) -> Iterator[str]:
    change = review.difference
    commit = f"`{base[:SHORT_COMMIT]}`"
    yield from ("### Difference", "")
    yield from (f"Spec compared with {commit}: {escape_markdown(_change_text(review))}.", "")
    if isinstance(change, Difference) and change.previous is not None and not change.is_empty:
        yield from _table(
            " | trial | values", [*_few("added", change.added), *_few("removed", change.removed)]
        )


def _few(sign: str, trials: Sequence[Trial]) -> Iterator[str]:
    yield from (_row(sign, trial) for trial in trials[:FEW_TRIALS])
    if len(trials) > FEW_TRIALS:
        yield f"| {sign} | … | {len(trials) - FEW_TRIALS:,} more |"


def _row(label: str, trial: Trial) -> str:
    return f"| {label} | `{trial.id}` | {markdown_code(_trial_values(trial))} |"


def _table(headings: str, rows: Iterable[str]) -> Iterator[str]:
    yield f"| {headings} |"
    yield "|" + " --- |" * (headings.count("|") + 1)
    yield from _first_rows(rows)
    yield ""


def _first_rows(rows: Iterable[str]) -> Iterator[str]:
    lines = list(rows)
    yield from lines[:MOST_ROWS]
    if len(lines) > MOST_ROWS:
        yield from ("", f"… {len(lines) - MOST_ROWS:,} more")
