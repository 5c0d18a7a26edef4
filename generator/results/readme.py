"""`README.md` of a sweep's results: the question, the answer, and what it rests on. No clock, no host name.

The template holds the words; here is what it may say. Every value enters through a filter that escapes it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from generator.formats.summary import parameter_names
from generator.formats.table import REPLICATE_COLUMN
from generator.results import searched, words
from generator.results.early import ended_early
from generator.results.figures import (
    CURVES_FILE,
    FRONT_FILE,
    INTERVALS_FILE,
    PARALLEL_FILE,
    SLICES_FILE,
    SPENT_FILE,
    TRIALS_FILE,
)
from generator.results.figures.curves import lines
from generator.results.front import front, metrics
from generator.results.importance import Importance
from generator.results.mattered import mattered
from generator.results.message import counts
from generator.results.outcomes import JudgedBatch
from generator.results.rounds import rounds, rungs
from generator.results.summary import Effect, Summary
from generator.results.winning import assignments, leading, winner
from generator.structs.record import Outcome, Status
from generator.structs.sweep import Goal
from generator.structs.values import Value

README_FILE = "README.md"

MOST_LEVELS = 16
"""Longer tables say less than the figure."""
MOST_ON_FRONT = 20
MOST_NAMED = 5
"""Trials listed for one reason of failing; the summary has all."""
BLANKS = re.compile(r"\n{3,}")


class Marked(str):
    """Text that is Markdown already."""

    __slots__ = ()


def readme(summary: Summary, importance: Importance) -> str:
    """Write the README of a sweep's results."""
    text = _template().render(_view(summary, importance))
    # Parts that are left out leave their blank lines; no text of a user's has a line of its own.
    return BLANKS.sub("\n\n", text)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("generator.results"),
        autoescape=False,  # noqa: S701 - this is Markdown; `_only_marked` lets nothing unescaped through
        undefined=StrictUndefined,
        finalize=_only_marked,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "text": lambda text: Marked(words.markdown(text)),
        "code": lambda text: Marked(words.code(text)),
        "value": _value,
        "short": lambda number: Marked(words.short(number)),
        "raw": lambda text: Marked(words.one_line(text)),
    }
    return environment.get_template("readme.md.j2")


def _only_marked(value: object) -> object:
    if not isinstance(value, Marked | int) and value not in LITERALS:
        raise TypeError(f"a value must pass a filter of the template, but got {value!r}")
    return value


LITERALS = frozenset({"assignment", "trial", "", " with", " and", ",", ", ", " …", " to "})
"""The template's own words in expressions."""


def _value(value: Value) -> Marked:
    text = words.plain(value)
    return Marked(words.code(text) if isinstance(value, str | Sequence) else text)


def _view(summary: Summary, importance: Importance) -> Mapping[str, Any]:
    lock, metric = summary.lock, summary.metric.name
    ranked = [outcome for outcome in summary.outcomes if summary.may_win(outcome)]
    told = leading(summary)
    parameters = parameter_names(one.trial for one in told) if told else _parameters(summary)
    return {
        **_of_searches(summary, parameters),
        "sweep": summary.sweep,
        "description": summary.description,
        "metric": metric,
        "spec_path": lock.spec_path,
        "spec_digest": lock.spec_digest,
        "best": winner(summary),
        "reason": summary.reason,
        "optimism": "" if summary.optimism is None else words.short(float(f"{summary.optimism:.2g}")),
        "warnings": summary.warnings,
        "extreme": Marked("highest" if summary.metric.goal is Goal.MAXIMIZE else "lowest"),
        "ranked": Marked(words.trials(sum(outcome.metric(metric) is not None for outcome in ranked))),
        "counts": f"{words.trials(len(summary.outcomes))}: {counts(summary)}",
        "seconds": words.duration(sum(o.record.seconds for o in summary.outcomes if o.record is not None)),
        "trials_figure": TRIALS_FILE,
        "slices_figure": SLICES_FILE,
        "parallel_figure": PARALLEL_FILE,
        "mattered": mattered(importance, summary.metric.goal),
        "parameters": parameters,
        "assignments": [
            {**found, "cells": _cells(one.assignment, parameters)} for one, found in assignments(summary)
        ],
        "assigned": len(summary.replicated),
        "top": [_row(outcome, metric, parameters) for outcome in summary.top],
        "effects": [_effect(effect) for effect in summary.effects],
        "failures": list(_failures(summary.outcomes)),
        "batches": [_batch(batch) for batch in summary.batches],
        "command": shlex.join(lock.program.command),
    }


def _of_searches(summary: Summary, parameters: Sequence[str]) -> Mapping[str, Any]:
    """Give the template what only some sweeps have: a front, rounds, curves, replicates."""
    unbeaten = front(summary)
    return {
        "front": [
            {"trial": one.trial, "values": values, "cells": _cells(_told(one), parameters)}
            for one, values in unbeaten[:MOST_ON_FRONT]
        ],
        "front_count": len(unbeaten),
        "front_figure": FRONT_FILE,
        "front_metrics": [one.name for one in metrics(summary)],
        "rounds": [searched.round_(found) for found in rounds(summary)],
        "resource": summary.resource or "",
        "rungs": [searched.rung(found) for found in rungs(summary)],
        "early": searched.early(ended_early(filter(summary.is_current, summary.outcomes))),
        "curves_figure": CURVES_FILE if lines(summary) else "",
        "intervals_figure": INTERVALS_FILE,
        "spent_figure": SPENT_FILE,
    }


def _parameters(summary: Summary) -> tuple[str, ...]:
    """Name the columns of the best trials; the replicate's too, where any program's trials have it."""
    replicated = any(outcome.replicate for outcome in summary.outcomes)
    return (*parameter_names(summary.top), *[REPLICATE_COLUMN] * replicated)


def _cells(values: Mapping[str, Value], parameters: Sequence[str]) -> list[Marked]:
    absent = Marked("")
    return [_value(values[name]) if name in values else absent for name in parameters]


def _told(outcome: Outcome) -> Mapping[str, Value]:
    # No parameter can have this name: every table may have a column of it.
    return {**outcome.assignment, REPLICATE_COLUMN: outcome.replicate}


def _row(outcome: Outcome, metric: str, parameters: Sequence[str]) -> Mapping[str, Any]:
    return {
        "trial": outcome.trial,
        "objective": outcome.metric(metric),
        "seconds": 0 if outcome.record is None else round(outcome.record.seconds, 1),
        "cells": _cells(_told(outcome), parameters),
    }


def _effect(effect: Effect) -> Mapping[str, Any]:
    few = len(effect.levels) <= MOST_LEVELS
    return {
        "parameter": effect.parameter,
        "range": words.fine(effect.range, effect.range),
        "count": len(effect.levels),
        "levels": [
            {"value": level.value, "mean": words.fine(level.mean, effect.range), "count": level.count}
            for level in (effect.levels if few else ())
        ],
    }


def _failures(outcomes: Sequence[Outcome]) -> Iterator[Mapping[str, Any]]:
    groups: dict[tuple[Status, str], list[str]] = {}
    for outcome in outcomes:
        if not outcome.status.is_success:
            groups.setdefault((outcome.status, outcome.reason or "no record"), []).append(outcome.trial)
    order = list(Status)
    for (status, reason), trials in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1])
    ):
        yield {"status": status, "reason": reason, "count": len(trials), "trials": trials[:MOST_NAMED]}


def _batch(batch: JudgedBatch) -> Mapping[str, Any]:
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
