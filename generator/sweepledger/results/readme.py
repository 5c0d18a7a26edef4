"""`README.md` of a sweep's results: the question, the answer, and the evidence. No clock, no host name.

The template contains the text; this module provides its values. Each value passes a filter that escapes it.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, Template
from jinja2.bccache import Bucket

from sweepledger.formats.hyperparams_csv import REPLICATE_COLUMN
from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results import display
from sweepledger.results.best_trial import ConfigurationResults, Verdict
from sweepledger.results.figures import catalog
from sweepledger.results.figures.intermediate_values import trial_curves
from sweepledger.results.importance import Importance, ParameterImportance, ValueGroup
from sweepledger.results.inference import Interval
from sweepledger.results.outcomes import EvaluatedBatch
from sweepledger.results.rounds import EarlyStopping, early_stopping, rounds, rungs
from sweepledger.results.summary import TOP, Summary, count_statuses, pareto_front
from sweepledger.structs.metric import Goal
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import Value

README_FILE = "README.md"

MOST_LEVELS = 16
"""Longer tables are harder to read than the figure."""
MOST_ON_FRONT = 20
MOST_NAMED = 5
"""Trials listed for one reason of failure; the summary has all."""
BLANKS = re.compile(r"\n{3,}")
LITERALS = frozenset({"configuration", "trial", "", " with", " and", ",", ", ", " …", " to "})
"""The template's own words in expressions."""


class Marked(str):
    """Text that is Markdown already."""

    __slots__ = ()


def readme(summary: Summary, importance: Importance) -> str:
    """Return the README of a sweep's results."""
    text = _template().render(_view(summary, importance))
    # Parts that are left out leave blank lines. No text of a user begins a line, so none of theirs is removed.
    return BLANKS.sub("\n\n", text)


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, beside the modules that Python has compiled, if the user may write there."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("sweepledger.results"),
        bytecode_cache=_CompiledTemplates(str(Path(__file__).parent / "__pycache__"), "%s.template"),
        autoescape=False,  # noqa: S701 - this is Markdown; `_only_marked` lets nothing unescaped through
        undefined=StrictUndefined,
        finalize=_only_marked,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "text": lambda text: Marked(display.escape_markdown(text)),
        "code": lambda text: Marked(display.markdown_code(text)),
        "value": _value,
        "short": lambda number: Marked(display.format_number(number)),
        "raw": lambda text: Marked(display.one_line(text)),
    }
    return environment.get_template("readme.md.j2")


def _only_marked(value: object) -> object:
    if not isinstance(value, Marked | int) and value not in LITERALS:
        raise TypeError(f"a value must pass a filter of the template, but got {value!r}")
    return value


def _value(value: Value) -> Marked:
    text = display.format_value(value)
    return Marked(display.markdown_code(text) if isinstance(value, str | Sequence) else text)


def _view(summary: Summary, importance: Importance) -> Mapping[str, Any]:
    lock, metric = summary.lock, summary.metric.name
    configurations, width = leading_configurations(summary), _interval_width(summary)
    parameters = (
        parameter_names(each.trial for each in configurations) if configurations else _parameters(summary)
    )
    ranked = sum(
        summary.is_eligible(outcome) and outcome.metric(metric) is not None for outcome in summary.outcomes
    )
    return {
        **_search_view(summary, parameters),
        "sweep": summary.sweep,
        "description": summary.description,
        "metric": metric,
        "spec_path": lock.spec.path,
        "spec_digest": lock.spec.digest,
        "batch_count": "1 batch" if len(summary.batches) == 1 else f"{len(summary.batches)} batches",
        "best": best_view(summary, {each.parameter for each in importance.parameters}),
        "has_replicates": bool(summary.replicated),
        "reason": summary.reason,
        "optimism": ""
        if summary.optimism is None
        else display.format_number(float(f"{summary.optimism:.2g}")),
        "warnings": summary.warnings,
        "rank": _describe_rank(summary.metric.goal, ranked, len(summary.outcomes)),
        "ranked": display.count_trials(ranked),
        "counts": f"{display.count_trials(len(summary.outcomes))}: {count_statuses(summary)}",
        "not_ranked": ", ".join(_unranked(summary)),
        "seconds": display.format_duration(
            sum(o.record.seconds for o in summary.outcomes if o.record is not None)
        ),
        "trials_figure": catalog.TRIALS_FILE,
        "slices_figure": catalog.SLICES_FILE,
        "parallel_figure": catalog.PARALLEL_FILE,
        "importance": importance_view(importance, summary.metric.goal),
        "parameters": parameters,
        "configurations": [
            {**_configuration_view(each, width), "cells": _cells(each.assignment, parameters)}
            for each in configurations
        ],
        "configuration_count": len(summary.replicated),
        "top": [_trial_view(outcome, metric, parameters) for outcome in summary.top],
        "failures": list(_failures(filter(summary.is_current, summary.outcomes))),
        "earlier_failures": _earlier_failures(summary),
        "ranked_program": _ranked_program(summary),
        "repairs": [
            {"name": each.lock.name, "trials": display.count_trials(each.lock.trials)}
            for each in summary.batches
            if each.lock.repairs and each.lock.program.digest != summary.program
        ],
        "batches": [_batch(batch) for batch in summary.batches],
        "command": shlex.join(lock.program.command),
        "start": summary.start,
    }


def _describe_rank(goal: Goal, ranked: int, total: int) -> str:
    """Describe the best trial's rank: among all trials, or among those that are ranked."""
    if ranked == 1:
        return "the only trial" if total == 1 else f"the only ranked trial of {total}"
    extreme = "highest" if goal is Goal.MAXIMIZE else "lowest"
    return f"the {extreme} of " + (
        f"all {total} trials" if ranked == total else f"{ranked} ranked trials ({total} in total)"
    )


def _unranked(summary: Summary) -> Iterator[str]:
    """Yield why trials are not ranked, each reason with its number of trials."""
    reasons = Counter(
        "ran an earlier program"
        if not summary.is_current(outcome)
        else "not in the current spec"
        if not summary.is_eligible(outcome)
        else "without a result"
        for outcome in summary.outcomes
        if not summary.is_eligible(outcome) or outcome.metric(summary.metric.name) is None
    )
    for reason in ("without a result", "ran an earlier program", "not in the current spec"):
        if reasons[reason]:
            yield f"{display.count_trials(reasons[reason])} {reason}"


def _search_view(summary: Summary, parameters: Sequence[str]) -> Mapping[str, Any]:
    """Return what the template shows only of some sweeps: front, rounds, curves, replicates."""
    front = pareto_front(summary)
    return {
        "front": [
            {
                "trial": trial.trial,
                "values": values,
                "cells": _cells(_values_with_replicate(trial), parameters),
            }
            for trial, values in front[:MOST_ON_FRONT]
        ],
        "front_count": len(front),
        "front_figure": catalog.FRONT_FILE,
        "front_metrics": [metric.name for metric in summary.lock.metrics],
        "rounds": rounds(summary),
        "unfitted": _unfitted(summary),
        "restarts": summary.lock.restarts,
        "resource": summary.resource or "",
        "rungs": rungs(summary),
        "early": early_stopping_view(
            early_stopping(filter(summary.is_current, summary.outcomes), summary.metric.of_curve)
        ),
        "curves_figure": catalog.CURVES_FILE if trial_curves(summary) else "",
        "intervals_figure": catalog.INTERVALS_FILE,
        "spent_figure": catalog.SPENT_FILE,
    }


def _unfitted(summary: Summary) -> list[Mapping[str, Any]]:
    """Return why models did not propose rounds, each reason once, with the numbers of its rounds."""
    numbers: dict[str, list[int]] = {}
    for lock in (batch.lock for batch in summary.batches):
        if lock.unfitted is not None and lock.round is not None and lock.program.digest == summary.program:
            numbers.setdefault(lock.unfitted, []).append(lock.round)
    return [
        {"reason": reason, "rounds": ", ".join(map(str, sorted(which)))} for reason, which in numbers.items()
    ]


def _parameters(summary: Summary) -> tuple[str, ...]:
    """Return the parameters of the best trials; with the replicate, if a trial of any program has one."""
    replicated = any(outcome.replicate for outcome in summary.outcomes)
    return (*parameter_names(summary.top), *[REPLICATE_COLUMN] * replicated)


def _cells(values: Mapping[str, Value], parameters: Sequence[str]) -> list[Marked]:
    absent = Marked("")
    return [_value(values[name]) if name in values else absent for name in parameters]


def _values_with_replicate(outcome: TrialResult) -> Mapping[str, Value]:
    # No parameter can have this name: every table may have a column of it.
    return {**outcome.assignment, REPLICATE_COLUMN: outcome.replicate}


def _trial_view(outcome: TrialResult, metric: str, parameters: Sequence[str]) -> Mapping[str, Any]:
    return {
        "trial": outcome.trial,
        "objective": outcome.metric(metric),
        "seconds": 0 if outcome.record is None else round(outcome.record.seconds, 1),
        "cells": _cells(_values_with_replicate(outcome), parameters),
    }


def _failures(outcomes: Iterable[TrialResult]) -> Iterator[Mapping[str, Any]]:
    groups: dict[tuple[Status, str], list[TrialResult]] = {}
    for outcome in outcomes:
        if not outcome.status.is_success:
            groups.setdefault((outcome.status, outcome.reason or "no record"), []).append(outcome)
    order = list(Status)
    for (status, reason), failed in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1])
    ):
        errors = Counter(outcome.error for outcome in failed if outcome.error)
        yield {
            "status": status,
            "reason": reason,
            "error": min(errors, key=lambda error: (-errors[error], error), default=""),
            "errors": len(errors),
            "count": len(failed),
            "trials": [outcome.trial for outcome in failed[:MOST_NAMED]],
        }


def _earlier_failures(summary: Summary) -> str:
    count = sum(not one.status.is_success and not summary.is_current(one) for one in summary.outcomes)
    return display.count_trials(count) if count else ""


def _ranked_program(summary: Summary) -> Mapping[str, Any] | None:
    """Return which of several programs is ranked; None if all batches ran one."""
    own = [batch for batch in summary.batches if batch.lock.program.digest == summary.program]
    return None if len(own) == len(summary.batches) else _batch(own[-1])


def _batch(batch: EvaluatedBatch) -> Mapping[str, Any]:
    program = batch.lock.program
    return {
        "name": batch.lock.name,
        "trials": len(batch.outcomes),
        "ok": sum(outcome.status is Status.OK for outcome in batch.outcomes),
        "image": program.image,
        "code": f"{program.code.path}@{program.code.tree[:12]}",
        "data": "none" if program.data is None else f"{program.data.name}@{program.data.digest[:19]}",
        "generator": batch.lock.generator,
    }


def importance_view(importance: Importance, goal: Goal) -> Mapping[str, Any]:
    """Return what the template shows of the importance of parameters and their main effects."""
    scale = importance.scale
    reasons = {each.reason for each in importance.parameters}
    reason = reasons.pop() if len(reasons) == 1 else ""
    unclear = [each for each in importance.parameters if not each.is_significant]
    return {
        "unclear": [] if reason else [each.parameter for each in unclear],
        "effects": len(unclear) < len(importance.parameters),
        "rows": [
            _importance_row(each, goal, has_common_reason=bool(reason)) for each in importance.parameters
        ],
        "rest": "" if importance.rest is None else display.format_percent(importance.rest),
        "reason": reason,
        "scale": _format_scale(log=scale.log, beyond=scale.beyond),
    }


def _format_scale(*, log: bool, beyond: int) -> str:
    parts = ["on a logarithmic scale"] * log
    if beyond:
        parts.append(
            f"with {beyond} outliers counted as the worst of the other trials, for the importance only"
        )
    return ", ".join(parts)


def _importance_row(row: ParameterImportance, goal: Goal, *, has_common_reason: bool) -> Mapping[str, Any]:
    ordered = sorted(row.groups, key=lambda group: group.mean, reverse=goal is Goal.MAXIMIZE)
    # One width for all means of a parameter, so that a mean has the same digits wherever it appears.
    width = abs(ordered[0].mean - ordered[-1].mean)
    return {
        "parameter": row.parameter,
        "together": row.confounded,
        "importance": _format_importance(row, has_common_reason=has_common_reason),
        # Effects that chance alone often gives are not shown as effects.
        "has_means": row.has_means and row.is_significant,
        "is_significant": row.is_significant,
        "best": _group_view(ordered[0], width),
        "worst": _group_view(ordered[-1], width),
        "is_flat": width == 0,
        "width": display.format_within(width, width),
        "count": len(row.groups),
        "levels": [_group_view(group, width) for group in row.groups]
        if len(row.groups) <= MOST_LEVELS
        else [],
    }


def _format_importance(row: ParameterImportance, *, has_common_reason: bool) -> str:
    if row.share is None:
        return "not available" if has_common_reason else f"not available: {row.reason}"
    return display.format_percent(row.share) + ("" if row.is_significant else " (not significant)")


def _group_view(group: ValueGroup, width: float) -> Mapping[str, Any]:
    is_one_value = display.format_value(group.first) == display.format_value(group.last)
    ends: Sequence[Any] = (
        (group.first,) if is_one_value else (_round_group_end(group.first), _round_group_end(group.last))
    )
    return {
        "values": ends,
        "mean": display.format_within(group.mean, width),
        "median": display.format_within(group.median, width),
        "trials": group.trials,
    }


def _round_group_end(value: Any) -> Any:
    """Shorten the end of a group, which nobody copies as a value."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def early_stopping_view(estimate: EarlyStopping | None) -> Mapping[str, Any] | None:
    """Return what the template shows of trials that were stopped early; None if there are none."""
    if estimate is None:
        return None
    return {
        "rules": [(rule, display.count_trials(count)) for rule, count in estimate.rules.items()],
        "whole": estimate.whole or 0,
        "steps": estimate.steps,
        "seconds": display.format_duration(estimate.seconds),
    }


def best_view(summary: Summary, varied: Collection[str]) -> Mapping[str, Any] | None:
    """Return what the template shows of the best trial, with the values of `varied` parameters; None without one."""
    trial, best = summary.winner, summary.best
    if trial is None or best is None:
        return None
    values = list(trial.assignment.items())
    width, name = _interval_width(summary), summary.metric.name
    return {
        "trial": trial.trial,
        "objective": _within(best, width),
        "interval": _interval(summary.interval, width),
        "next": _next_interval(summary, width),
        "replicated": bool(summary.replicated),
        "count": summary.replicated[0].count if summary.replicated else 1,
        "ties": sum(summary.is_eligible(one) and one.metric(name) == best for one in summary.outcomes),
        "assignment": values,
        "varied": [pair for pair in values if pair[0] in varied],
        "metrics": [] if summary.replicated else _other_metrics(summary, trial),
    }


def _next_interval(summary: Summary, width: float) -> Mapping[str, str] | None:
    """Return the interval of the second best configuration, if that of the best does not overlap it."""
    if summary.verdict is not Verdict.CLEAR:
        return None
    return _interval(leading_configurations(summary)[1].interval, width)


def _other_metrics(summary: Summary, trial: TrialResult) -> list[tuple[str, float]]:
    reported = {} if trial.record is None else trial.record.metrics
    finite = sorted((name, number) for name, number in reported.items() if number is not None)
    return [(name, number) for name, number in finite if name != summary.metric.name]


def leading_configurations(summary: Summary) -> Sequence[ConfigurationResults]:
    """Return the best ranked configurations, as many as the report lists; none without replicates."""
    return [configuration for configuration in summary.replicated if configuration.is_ranked][:TOP]


def _interval_width(summary: Summary) -> float:
    """Return the width of the narrowest interval that is listed: all means and intervals have its digits."""
    intervals = (configuration.interval for configuration in leading_configurations(summary))
    widths = [interval.high - interval.low for interval in intervals if interval is not None]
    return min((width for width in widths if width > 0), default=0.0)


def _configuration_view(configuration: ConfigurationResults, width: float) -> Mapping[str, Any]:
    return {
        "trial": configuration.trial.trial,
        "mean": _within(configuration.mean or 0.0, width),
        "interval": _interval(configuration.interval, width),
        "count": configuration.count,
    }


def _interval(interval: Interval | None, width: float) -> Mapping[str, str] | None:
    if interval is None:
        return None
    return {"low": _within(interval.low, width), "high": _within(interval.high, width)}


def _within(number: float, width: float) -> str:
    """Write a number with two digits of an interval's width."""
    return display.format_within(number, 10 * width)
