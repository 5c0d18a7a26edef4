"""Compare two recorded sweeps, or two versions of one.

It shows best, mean of the best five, cost, and best so far. Intervals are a bootstrap over configurations.
Configurations that both contain are shown side by side. If metric, goal or data differ, the numbers are shown
without a ranking, with the reason.

With --explain, each cause of a difference has a test over the recorded trials; all tests together name a cause
by mistake in 5 % of the cases. Where the trials cannot separate causes, it proposes the smallest sweeps that
would, as specs.
"""

from collections.abc import Iterator
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion
from sweepledger.cli.options import flag, shared_argument
from sweepledger.cli.response import Response
from sweepledger.cli.text.style import new_table, untrusted_text
from sweepledger.cli.text.values import configuration_text, number_text
from sweepledger.errors import UsageError
from sweepledger.operations.reports import difference_causes
from sweepledger.operations.reports.comparison import SweepComparison, compare_sweeps
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.results.sweep_statistics import TOP, Estimate

SweepAtCommitArgument = Annotated[
    str,
    shared_argument(
        "NAME[@REV|@BATCH]",
        "Sweep as recorded at HEAD, at a commit, or one of its batches by name or number (NAME@b2).",
        autocompletion=completion.sweeps,
    ),
]
MOST_UNMATCHED = 10
"""Trials of only one side that are listed."""


def compare(
    workspace: Workspace,
    a: SweepAtCommitArgument,
    b: SweepAtCommitArgument,
    explain: bool = flag(
        "--explain", "Say why the best value of B differs: code, data, environment, values, budget or noise."
    ),
    write: bool = flag("--write", "With --explain: write the specs that it proposes to sweeps/."),
) -> Response:
    if write and not explain:
        raise UsageError("--write needs --explain, which proposes specs")
    if explain:
        explained = difference_causes.explain_sweeps(workspace, a, b)
        if write:
            difference_causes.write_proposals(workspace, explained.proposals)
        return Response(explained, tuple(_explanation_text(explained, written=write)))
    comparison = compare_sweeps(workspace, a, b)
    return Response(comparison, tuple(_comparison_text(comparison)))


def _statistics_table(comparison: SweepComparison) -> RenderableType:
    """Return a table of each side's values and cost; the metric's name is in the heading of the trials."""
    sides = (comparison.a, comparison.b)
    table = new_table("", *(side.reference for side in sides))
    statistics = [side.statistics for side in sides]
    table.add_row("trials", *(str(len(side.rows)) for side in sides))
    table.add_row("configurations with a result", *(str(len(each.values)) for each in statistics))
    table.add_row("best", *(_estimate_text(each.best) for each in statistics))
    table.add_row(f"mean of the best {TOP}", *(_estimate_text(each.top) for each in statistics))
    for part in (0.25, 0.5):
        points = [
            [point for point in each.best_so_far if point.configurations >= part * len(each.values)]
            for each in statistics
        ]
        cells = [
            f"{number_text(after[0].value)} after {after[0].configurations}" if after else ""
            for after in points
        ]
        table.add_row(f"best after {100 * part:.0f} %", *cells)
    table.add_row("hours of trials", *(number_text(side.spent.trial_hours) for side in sides))
    for name in ("gpu_hours", "money"):
        amounts = [getattr(side.spent, name) for side in sides]
        if any(amounts):
            cells = ["unknown" if amount is None else number_text(amount) for amount in amounts]
            table.add_row(name.replace("gpu_hours", "GPU hours"), *cells)
    return table


def _estimate_text(estimate: Estimate | None, *, sign: str = "") -> str:
    if estimate is None:
        return ""
    value, low = f"{estimate.value:{sign}.6g}", estimate.low
    return value if low is None else f"{value} [{low:{sign}.4g}, {estimate.high:{sign}.4g}]"


def _comparison_text(comparison: SweepComparison) -> Iterator[RenderableType]:
    a, b = comparison.a, comparison.b
    yield _statistics_table(comparison)
    if (difference := comparison.difference) is not None:
        yield f"{b.reference} less {a.reference}, with 95 % intervals:"
        yield f"  best {_estimate_text(difference.best, sign='+')}"
        top, share = _estimate_text(difference.top, sign="+"), f"{100 * difference.b_better:.0f} %"
        yield f"  mean of the best {top}; better in {share} of the resamples"
    metric = a.lock.metric.name if a.lock.metric.name == b.lock.metric.name else "objective"
    replicate = ["replicate"] * any(pair.replicate for pair in comparison.pairs)
    is_ranked = ["difference"] * (not comparison.refused)
    table = new_table("values", *replicate, a.reference, b.reference, *is_ranked)
    for pair in comparison.pairs:
        values = (
            str(row.status) if value is None else number_text(value)
            for row, value in zip((pair.a, pair.b), pair.values, strict=True)
        )
        difference_text = "" if pair.difference is None else f"{pair.difference:+.6g}"
        numbers = (str(pair.replicate) for _ in replicate)
        table.add_row(
            configuration_text(pair.assignment), *numbers, *values, *(difference_text for _ in is_ranked)
        )
    heading = f"{len(comparison.pairs)} trials of both, {metric}"
    yield untrusted_text(heading if comparison.refused else f"{heading}, {a.lock.metric.goal}", "bold")
    if comparison.pairs:
        yield table
    for side, rows in ((a, comparison.only_a), (b, comparison.only_b)):
        if rows:
            yield f"only {side.reference}: {len(rows)} trials"
            yield from (
                f"  {row.trial}  {configuration_text(row.assignment)}" for row in rows[:MOST_UNMATCHED]
            )
            yield from [" …"] * (len(rows) > MOST_UNMATCHED)
    yield from (untrusted_text(f"not ranked: {why}", "red") for why in comparison.refused)
    yield from (untrusted_text(f"warning: {why}", "yellow") for why in comparison.warnings)
    if comparison.pairs and not comparison.refused:
        better, worse, equal = comparison.counts
        yield f"{b.reference} is better in {better}, {a.reference} in {worse}, equal in {equal}"


def _explanation_text(
    explained: difference_causes.ExplainedComparison, *, written: bool
) -> Iterator[RenderableType]:
    explanation, metric = explained.explanation, explained.a.lock.metric
    before, after = (number_text(value) for value in explanation.best)
    sides = f"{explained.a.reference} {before}, {explained.b.reference} {after}"
    heading = f"{metric.name}, {metric.goal}: {sides} ({explanation.moved:+.6g})"
    yield untrusted_text(heading, "bold")
    yield Text(f"why: {explanation.verdict}", STATE_COLORS["named" if explanation.named else "confounded"])
    table = new_table("factor", "", "effect (95 %)", "chance", "trials", "evidence")
    for finding in explanation.findings:
        effect = ""
        if finding.effect is not None:
            effect = f"{finding.effect:+.4g}"
            if finding.interval is not None:
                effect += f" [{finding.interval.low:+.4g}, {finding.interval.high:+.4g}]"
        chance = "" if finding.probability is None else f"{finding.probability:.2g}"
        evidence = (*explained.differences.get(finding.factor, ()), *filter(None, (finding.reason,)))
        state = Text(STATE_WORDS[finding.state], STATE_COLORS.get(finding.state, ""))
        table.add_row(finding.factor, state, effect, chance, str(finding.trials or ""), "\n".join(evidence))
    yield table
    if explanation.noise is None:
        yield "seed noise: unknown: no configuration ran twice with one program"
    else:
        yield f"seed noise: standard deviation {explanation.noise:.3g} between trials that differ in their seed"
    for proposal in explained.proposals:
        where = "written" if written else "proposed, `--write` writes it"
        title = f"{proposal.path} ({proposal.trials} trials; {where}) separates {' and '.join(proposal.separates)}:"
        yield untrusted_text(title, "bold")
        yield proposal.text.rstrip()


STATE_WORDS = {
    "named": "moved it",
    "opposed": "moved it back",
    "chance": "no more than chance",
    "confounded": "cannot be separated",
    "equal": "equal",
}
STATE_COLORS = {"named": "green", "opposed": "yellow", "confounded": "yellow"}
