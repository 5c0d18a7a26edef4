"""`README.md` of a sweep's results: the question, the answer, and the evidence. No clock, no host name.

The template contains the text; this module provides its values. Each value passes a filter that escapes it.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweepledger.formats.hyperparams_csv import REPLICATE_COLUMN
from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results import display
from sweepledger.results.figures import catalog
from sweepledger.results.figures.lines import trial_curves
from sweepledger.results.importance import Importance, ParameterImportance, ValueGroup
from sweepledger.results.rounds import early_stopping, rounds, rungs
from sweepledger.results.summary import TOP, Summary, count_statuses, pareto_front
from sweepledger.structs.metric import Goal
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import Value

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.bccache import Bucket

README_FILE = "README.md"

MOST_LEVELS = 16
"""Longer tables are harder to read than the figure."""
MOST_ON_FRONT = 20
MOST_NAMED = 5
"""Trials listed for one reason of failure; the summary has all."""
BLANKS = re.compile(r"\n{3,}")
LITERALS = frozenset({"configuration", "trial", "", " with", " and", ",", ", ", " …"})
"""The template's own words in expressions."""


class Marked(str):
    """Text that is Markdown already."""

    __slots__ = ()


def readme(summary: Summary, importance: Importance) -> str:
    """Return the README of a sweep's results."""
    text = _template().render(_view(summary, importance))
    # Parts that are left out leave blank lines. No text of a user begins a line, so none of theirs is removed.
    return BLANKS.sub("\n\n", text)


@cache
def _template() -> "Template":
    # Late: most commands that read results write none.
    from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined  # noqa: PLC0415

    class CompiledTemplates(FileSystemBytecodeCache):
        """Compiled templates, stored with Python's compiled modules if the user may write there."""

        def dump_bytecode(self, bucket: "Bucket") -> None:
            """Keep a template."""
            with suppress(OSError):
                super().dump_bytecode(bucket)

    environment = Environment(
        loader=PackageLoader("sweepledger.results"),
        bytecode_cache=CompiledTemplates(str(Path(__file__).parent / "__pycache__"), "%s.template"),
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
        "within": lambda number, width: Marked(display.escape_markdown(display.format_within(number, width))),
        "percent": lambda share: Marked(display.escape_markdown(display.format_percent(share))),
        "duration": lambda seconds: Marked(display.format_duration(seconds)),
        "trials": lambda count: Marked(display.count_trials(count)),
        "raw": lambda text: Marked(display.one_line(text)),
        "share": _share,
        "span": _span,
        "cells": _cells,
    }
    return environment.get_template("readme.md.j2")


def _only_marked(value: object) -> object:
    if not isinstance(value, Marked | int) and value not in LITERALS:
        raise TypeError(f"a value must pass a filter of the template, but got {value!r}")
    return value


def _value(value: Value) -> Marked:
    text = display.format_value(value)
    return Marked(display.markdown_code(text) if isinstance(value, str | Sequence) else text)


def _share(row: ParameterImportance, common_reason: str) -> Marked:
    if row.share is None:
        text = "not available" if common_reason else f"not available: {row.reason}"
    else:
        text = display.format_percent(row.share) + ("" if row.is_significant else " (not significant)")
    return Marked(display.escape_markdown(text))


def _span(group: ValueGroup) -> Marked:
    """Return the values of a group: its only value, or both ends, shortened, because nobody copies the ends."""
    if display.format_value(group.first) == display.format_value(group.last):
        return _value(group.first)
    ends = (float(f"{end:.3g}") if isinstance(end, float) else end for end in (group.first, group.last))
    return Marked(" to ".join(map(_value, ends)))


def _cells(trial: TrialResult, parameters: Sequence[str]) -> list[Marked]:
    # No parameter can have the name of the replicate: every table may have a column of it.
    values = {**trial.assignment, REPLICATE_COLUMN: trial.replicate}
    return [_value(values[name]) if name in values else Marked("") for name in parameters]


def _view(summary: Summary, importance: Importance) -> Mapping[str, Any]:
    """Return the template's input: the summary and values computed from it."""
    metric = summary.metric.name
    eligible = [one for one in summary.outcomes if summary.is_eligible(one)]
    ranked = sum(one.metric(metric) is not None for one in eligible)
    leading = [one for one in summary.replicated if one.is_ranked][:TOP]
    widths = [one.interval.high - one.interval.low for one in leading if one.interval is not None]
    parameters: tuple[str, ...] = parameter_names(one.trial for one in leading)
    if not leading:  # with the replicate, if a trial of any program has one
        replicate = [REPLICATE_COLUMN] * any(one.replicate for one in summary.outcomes)
        parameters = (*parameter_names(summary.top), *replicate)
    own = [batch for batch in summary.batches if batch.lock.program.digest == summary.program]
    earlier = [one for one in summary.outcomes if not summary.is_current(one)]
    front = pareto_front(summary)
    return {
        **_importance_view(importance, summary.metric.goal),
        "summary": summary,
        "metric": metric,
        "metrics": [each.name for each in summary.lock.metrics],
        "figures": catalog,
        # All means and intervals have two digits of the narrowest interval that is listed.
        "width": 10 * min((width for width in widths if width > 0), default=0.0),
        "ties": sum(one.metric(metric) == summary.best for one in eligible),
        "optimism": None if summary.optimism is None else float(f"{summary.optimism:.2g}"),
        "rank": _describe_rank(summary.metric.goal, ranked, len(summary.outcomes)),
        "ranked": ranked,
        "counts": count_statuses(summary),
        "not_ranked": ", ".join(_unranked(summary)),
        "seconds": sum(one.record.seconds for one in summary.outcomes if one.record is not None),
        "parameters": parameters,
        "configurations": leading,
        "front": front[:MOST_ON_FRONT],
        "front_count": len(front),
        "rounds": rounds(summary),
        "unfitted": _unfitted(summary),
        "rungs": rungs(summary),
        "early": early_stopping(filter(summary.is_current, summary.outcomes), summary.metric.of_curve),
        "has_curves": bool(trial_curves(summary)),
        "failures": failures(
            one for one in summary.outcomes if summary.is_current(one) and not one.status.is_success
        ),
        "earlier_failures": sum(not one.status.is_success for one in earlier),
        "ranked_program": None if len(own) == len(summary.batches) else own[-1].lock.program,
        "command": shlex.join(summary.lock.program.command),
    }


def _describe_rank(goal: Goal, ranked: int, total: int) -> str:
    """Describe the best trial's rank: among all trials, or among the ranked trials."""
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


def _unfitted(summary: Summary) -> list[Mapping[str, Any]]:
    """Return the reasons why models did not propose rounds, each with the numbers of its rounds."""
    numbers: dict[str, list[int]] = {}
    for lock in (batch.lock for batch in summary.batches):
        if lock.unfitted is not None and lock.round is not None and lock.program.digest == summary.program:
            numbers.setdefault(lock.unfitted, []).append(lock.round)
    return [
        {"reason": reason, "rounds": ", ".join(map(str, sorted(which)))} for reason, which in numbers.items()
    ]


def failures(outcomes: Iterable[TrialResult]) -> list[dict[str, Any]]:
    """Return why trials have no result, by status, the most common reason first, as rows of a table."""
    groups: dict[tuple[Status, str], list[TrialResult]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.status, outcome.reason or "no record"), []).append(outcome)
    rows = []
    for (status, reason), failed in groups.items():
        errors = Counter(outcome.error for outcome in failed if outcome.error)
        row = {
            "status": status,
            "reason": reason,
            "error": min(errors, key=lambda error: (-errors[error], error), default=""),
            "errors": len(errors),
            "count": len(failed),
            "trials": [outcome.trial for outcome in failed[:MOST_NAMED]],
        }
        rows.append(row)
    order = list(Status)
    return sorted(rows, key=lambda row: (order.index(row["status"]), -row["count"], row["reason"]))


def _importance_view(importance: Importance, goal: Goal) -> Mapping[str, Any]:
    """Return the template's input for the importance of parameters and their main effects."""
    scale = importance.scale
    reasons = {each.reason for each in importance.parameters}
    reason = reasons.pop() if len(reasons) == 1 else ""
    beyond = f"with {scale.beyond} outliers counted as the worst of the other trials, for the importance only"
    return {
        "importance": importance,
        "no_importance": reason,
        "maximize": goal is Goal.MAXIMIZE,
        "scale": ", ".join([*["on a logarithmic scale"] * scale.log, *[beyond] * bool(scale.beyond)]),
        "unclear": [each.parameter for each in importance.parameters if not each.is_significant],
        "most_levels": MOST_LEVELS,
    }
