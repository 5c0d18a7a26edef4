"""The output of `verify`, `compare`, `explain`, `reproduce` and `fetch`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli.response import escape_control_characters
from sweepledger.cli.text.style import new_table
from sweepledger.cli.text.values import configuration_text, number_text
from sweepledger.results.sweep_statistics import TOP

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.reports.compare import SweepComparison
    from sweepledger.commands.reports.explain import ExplainedComparison
    from sweepledger.commands.reports.outputs import FetchedArtifacts
    from sweepledger.commands.reproduce import MetricComparison, Recipe, Reproduction
    from sweepledger.results.sweep_statistics import Estimate
    from sweepledger.structs.record import Environment

MOST_OUTPUT = 2000
"""Characters at the end of the output of a reproduction that differs."""
SHORT_DIGEST = len("sha256:") + 12
MOST_UNMATCHED = 10
"""Trials of only one side that `compare` lists."""


def recipe_text(recipe: Recipe) -> tuple[RenderableType, ...]:
    """Return everything that a trial consists of, and the commands that run it again."""
    program = recipe.lock.program
    table = new_table("", "")
    table.show_header = False
    rows = {
        "trial": f"{recipe.trial}, row {recipe.index} of {recipe.lock.name}",
        "values": configuration_text(recipe.assignment),
        "seed": str(recipe.seed),
        "code": f"{program.code.path} {program.code.tree}",
        "commit": recipe.commit or "no commit of this clone contains this code: fetch the branch that does",
        "image": program.image,
        "ran": recipe.ran or "not recorded",
        "data": " ".join([program.data.name, program.data.digest, *program.data.place_texts])
        if program.data
        else "none",
    }
    if program.workdir is not None:
        rows["workdir"] = program.workdir
    if program.environment is not None:
        rows["environment"] = f"{program.environment.path} {program.environment.digest}"
    for name, text in rows.items():
        table.add_row(Text(name, "bold"), Text(escape_control_characters(text)))
    command = Text(f"  sweep show {recipe.lock.sweep}/{recipe.trial} --reproduce --run")
    lines = (Text(f"  {escape_control_characters(line)}") for line in recipe.lines)
    return (table, Text("with the launcher:", "bold"), command, Text("manually:", "bold"), *lines)


def reproduction_text(reproduction: Reproduction) -> Iterator[RenderableType]:
    """Yield the metrics of a reproduction next to the recorded ones."""
    status = str(reproduction.record.status) if reproduction.record else "missing"
    table = new_table("metric", "recorded", "here", "")
    recorded = reproduction.recorded
    table.add_row("status", recorded, status, _equality_text(equal=status == recorded))
    if reproduction.recorded_environment is not None:
        pair = (reproduction.recorded_environment, reproduction.environment)
        table.add_row("environment", *map(_environment_text, pair), _equality_text(equal=len({*pair}) == 1))
    for metric in reproduction.metrics:
        cells = (metric.name, _exact_number(metric.recorded), _exact_number(metric.measured))
        result = Text("timing", "dim") if metric.is_timing else _equality_text(equal=metric.is_equal)
        table.add_row(*(Text(escape_control_characters(cell)) for cell in cells), result)
    yield table
    for metric in reproduction.metrics:
        if metric.differs:
            yield Text(f"{metric.where}: {_difference_text(metric)}", "red")
    if reproduction.recipe.ran not in {None, "process"}:
        image = reproduction.recipe.ran
        yield Text(f"the recorded trial ran in {image}; this one ran as a process without an image", "yellow")
    if reproduction.has_other_environment:
        yield from (
            Text(escape_control_characters(text), "yellow") for text in _environment_lines(reproduction)
        )
    if status != recorded:
        for output in filter(None, reproduction.output.values()):
            yield Text(escape_control_characters(output[-MOST_OUTPUT:].rstrip()))
    if reproduction.is_equal:
        yield Text("equal to the last bit, except for timings", "green")
    else:
        yield Text("differs", "red")


def _environment_text(environment: Environment | None) -> str:
    return f"{environment.kind} {environment.digest[:SHORT_DIGEST]}" if environment else "none"


def _environment_lines(reproduction: Reproduction) -> Iterator[str]:
    """Yield how the packages here differ from those of the recorded trial."""
    if reproduction.environment_differences:
        yield f"packages here: {'; '.join(reproduction.environment_differences)}"
        return
    recorded, here = reproduction.recorded_environment, reproduction.environment
    assert recorded is not None
    assert here is not None
    yield f"the recorded trial had the packages {recorded.kind} {recorded.digest}; here are {here.kind} {here.digest}"


def _equality_text(*, equal: bool) -> Text:
    return Text("equal", "green") if equal else Text("differs", "red")


def _exact_number(value: float | None) -> str:
    return "none" if value is None else repr(value)


def _difference_text(metric: MetricComparison) -> str:
    recorded, measured = _exact_number(metric.recorded), _exact_number(metric.measured)
    text = f"{escape_control_characters(metric.name)} must be {recorded}, got {measured}"
    if metric.recorded is None or metric.measured is None:
        return text
    return f"{text} ({metric.measured - metric.recorded:+.3g})"


def _statistics_table(comparison: SweepComparison) -> RenderableType:
    """Return what each side reached and took; the metric's name is in the heading of the trials."""
    sides = (comparison.a, comparison.b)
    table = new_table("", *(escape_control_characters(side.reference) for side in sides))
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
        table.add_row(f"best after {part:.0%}".replace("%", " %"), *cells)
    table.add_row("hours of trials", *(number_text(side.spent.trial_hours) for side in sides))
    for name in ("gpu_hours", "money"):
        amounts = [getattr(side.spent, name) for side in sides]
        if any(amounts):
            cells = ["unknown" if amount is None else number_text(amount) for amount in amounts]
            table.add_row(name.replace("gpu_hours", "GPU hours"), *cells)
    return table


def _difference_lines(comparison: SweepComparison) -> Iterator[RenderableType]:
    difference = comparison.difference
    if difference is None:
        return
    name = escape_control_characters(comparison.b.reference)
    yield Text(f"{name} less {escape_control_characters(comparison.a.reference)}, with 95 % intervals:")
    yield Text(f"  best {_estimate_text(difference.best, sign='+')}")
    yield Text(
        f"  mean of the best {_estimate_text(difference.top, sign='+')}; "
        f"better in {difference.b_better:.0%} of the resamples".replace("%", " %")
    )


def _estimate_text(estimate: Estimate | None, *, sign: str = "") -> str:
    if estimate is None:
        return ""
    value = f"{estimate.value:{sign}.6g}"
    interval = estimate.interval
    return value if interval is None else f"{value} [{interval.low:{sign}.4g}, {interval.high:{sign}.4g}]"


def comparison_text(comparison: SweepComparison) -> Iterator[RenderableType]:
    """Yield the trials that two sweeps share, and those of only one of them."""
    a, b = comparison.a, comparison.b
    yield _statistics_table(comparison)
    yield from _difference_lines(comparison)
    metric = a.lock.metric.name if a.lock.metric.name == b.lock.metric.name else "objective"
    replicate = ["replicate"] * any(pair.replicate for pair in comparison.pairs)
    table = new_table(
        "values",
        *replicate,
        escape_control_characters(a.reference),
        escape_control_characters(b.reference),
        *["difference"] * (not comparison.refused),
    )
    for pair in comparison.pairs:
        cells = [configuration_text(pair.assignment), *(str(pair.replicate) for _ in replicate)]
        for row, value in zip((pair.a, pair.b), pair.values, strict=True):
            cells.append(str(row.status) if value is None else number_text(value))
        if not comparison.refused:
            cells.append("" if pair.difference is None else f"{pair.difference:+.6g}")
        table.add_row(*(Text(escape_control_characters(cell)) for cell in cells))
    heading = f"{len(comparison.pairs)} trials of both, {escape_control_characters(metric)}"
    yield Text(heading if comparison.refused else f"{heading}, {a.lock.metric.goal}", "bold")
    if comparison.pairs:
        yield table
    for side, rows in ((a, comparison.only_a), (b, comparison.only_b)):
        if rows:
            yield Text(f"only {escape_control_characters(side.reference)}: {len(rows)} trials")
            lines = [f"  {row.trial}  {configuration_text(row.assignment)}" for row in rows[:MOST_UNMATCHED]]
            lines += [" …"] * (len(rows) > MOST_UNMATCHED)
            yield from (Text(escape_control_characters(line)) for line in lines)
    yield from (Text(f"not ranked: {escape_control_characters(why)}", "red") for why in comparison.refused)
    yield from (Text(f"warning: {escape_control_characters(why)}", "yellow") for why in comparison.warnings)
    if comparison.pairs and not comparison.refused:
        better, worse, equal = comparison.counts
        first, second = escape_control_characters(b.reference), escape_control_characters(a.reference)
        yield Text(f"{first} is better in {better}, {second} in {worse}, equal in {equal}")


def explanation_text(explained: ExplainedComparison, *, written: bool) -> Iterator[RenderableType]:
    """Yield why the best value moved, the evidence for each factor, and the sweeps that would tell more."""
    explanation, metric = explained.explanation, explained.a.lock.metric
    names = [escape_control_characters(side.reference) for side in (explained.a, explained.b)]
    before, after = (number_text(value) for value in explanation.best)
    heading = (
        f"{escape_control_characters(metric.name)}, {metric.goal}: {names[0]} {before}, {names[1]} {after}"
    )
    yield Text(f"{heading} ({explanation.moved:+.6g})", "bold")
    yield Text(f"why: {explained.verdict}", STATE_COLORS["named" if explanation.named else "confounded"])
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
        trials = str(finding.trials) if finding.trials else ""
        lines = Text(escape_control_characters("\n".join(evidence)))
        table.add_row(Text(finding.factor), state, effect, chance, trials, lines)
    yield table
    if explanation.noise is None:
        yield Text("seed noise: unknown: no configuration ran twice with one program")
    else:
        yield Text(
            f"seed noise: standard deviation {explanation.noise:.3g} between trials that differ in their seed"
        )
    for proposal in explained.proposals:
        where = "written" if written else "proposed, `--write` writes it"
        title = f"{proposal.path} ({proposal.trials} trials; {where}) separates {' and '.join(proposal.separates)}:"
        yield Text(escape_control_characters(title), "bold")
        yield Text(escape_control_characters(proposal.text.rstrip()))


STATE_WORDS = {
    "named": "moved it",
    "opposed": "moved it back",
    "chance": "no more than chance",
    "confounded": "cannot be separated",
    "equal": "equal",
}
STATE_COLORS = {"named": "green", "opposed": "yellow", "confounded": "yellow"}


def fetched_text(artifacts: FetchedArtifacts) -> tuple[RenderableType, ...]:
    """Return the copied files with their checksums."""
    table = new_table("file", "bytes", "sha256")
    for file in artifacts.files:
        table.add_row(Text(escape_control_characters(file.path)), str(file.bytes), file.sha256[:12])
    summary = f"copied {len(artifacts.files)} files of {artifacts.trial} to {artifacts.folder}"
    if artifacts.left_out:
        summary += f"; {artifacts.left_out} further files are not in its record"
    return (table, Text(escape_control_characters(summary)))
