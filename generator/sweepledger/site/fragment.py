"""The pages of one sweep: its overview, its trials, and its data for the comparison page and other programs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from sweepledger.results import display
from sweepledger.results.figures.lines import trial_curves
from sweepledger.results.importance import Importance, importance
from sweepledger.results.inference import Interval
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.readme import failures
from sweepledger.results.rounds import early_stopping, rounds
from sweepledger.results.summary import Summary, pareto_front
from sweepledger.site.charts import ChartMark, SweepChart, sweep_charts, trial_columns
from sweepledger.site.history import (
    EventKind,
    SweepHistory,
    explained_moves,
    program_texts,
    program_versions,
    spec_changes,
)
from sweepledger.site.pages import render, to_json
from sweepledger.structs.names import LAPTOP_WARNING
from sweepledger.structs.record import ERROR_DETAILS, Record, Status, TrialResult

SPARK_POINTS = 60
MOST_WITH_CURVES = 500
"""Trials of a sweep whose pages show the curves of other metrics than the compared one, too."""
MOST_BESIDE = 8
"""Such curves of a trial."""
BESIDE_POINTS = 40
MOST_VERSIONS = 50
LONGEST_TEXT = 4000
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class SweepPages:
    """The pages and data of one sweep."""

    card: Mapping[str, Any]
    """The sweep on the home page, as JSON data."""
    files: Mapping[str, bytes]
    """By path below the sweep's folder."""


def sweep_pages(history: SweepHistory, commit: str) -> SweepPages:
    """Return the pages of a sweep at a commit."""
    summary = history.summary
    if summary is None:
        card = _card(history, None)
        data = {"sweep": history.name, "commit": commit}
        return SweepPages(
            card,
            {
                "index.html": render("sweep.html.j2", "sweep", data, _view(history, card, None, (), ())),
                "data.json": to_json(data),
            },
        )
    columns = trial_columns(summary, history.prices, history.currency)
    shares = importance(summary)
    versions = program_versions(history, summary)
    moves = explained_moves(history, summary)
    curves = {line.outcome.trial: line.points for line in trial_curves(summary)}
    charts = tuple(sweep_charts(summary, columns, shares, len(curves)))
    card = _card(history, summary)
    places = {one.trial: place for place, one in enumerate(summary.outcomes)}
    base = {
        "sweep": summary.sweep,
        "commit": commit,
        "metric": summary.metric.name,
        "goal": str(summary.metric.goal),
        "trials": [one.trial for one in summary.outcomes],
        "columns": [column.as_data() for column in columns],
        "eligible": [int(summary.is_eligible(one)) for one in summary.outcomes],
        "laptop": _laptop_batches(summary),
        "best": None if summary.winner is None else places[summary.winner.trial],
    }
    parents = [places.get(one.parent or "") for one in summary.outcomes]
    done = {EventKind.SPEC: "requested", EventKind.BATCH: "generated", EventKind.RESULTS: "recorded"}
    commits: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    for event in history.events:
        commits[done[event.kind]].append((event.commit, event.author, event.day, event.text))
    batches: dict[str, list[str]] = defaultdict(list)
    for batch, recorder in history.recorded.items():
        batches[recorder].append(batch)
    days = {event.commit: event.day for event in history.events}
    # Of large sweeps without the curves that nothing compares.
    compared_curve = summary.metric.of_curve if len(summary.outcomes) <= MOST_WITH_CURVES else None
    overview = {
        **base,
        "charts": [chart.as_data() for chart in charts],
        # Each with the place of its trial, its steps and its values.
        "curves": [
            (
                place,
                [step for step, _ in curves[one.trial]],
                [float(f"{value:.6g}") for _, value in curves[one.trial]],
            )
            for place, one in enumerate(summary.outcomes)
            if one.trial in curves and summary.is_current(one)
        ],
        # The place of the trial that each trial continues; empty if none continues another.
        "parents": parents if any(place is not None for place in parents) else [],
        "front": [places[trial.trial] for trial, _ in pareto_front(summary)],
    }
    details = {
        **base,
        "curves": overview["curves"],
        "details": [_details(one, compared_curve) for one in summary.outcomes],
        "commits": commits,
        "recorded": history.recorded,
        "versions": versions,
    }
    best = _best(summary)
    compared = {
        "version": 1,
        **base,
        "program": {
            "metric": f"{summary.metric.name}, {summary.metric.goal}",
            "best": best["value"] + (f" ({best['interval']})" if best["interval"] else ""),
            "trials": str(len(summary.outcomes)),
            **program_texts(summary.lock.program),
        },
        "versions": [
            {key: value for key, value in version.items() if key != "patch"} for version in versions
        ],
        # Oldest first: id, day, and the batches that each recorded first.
        "results": [(recorder, days.get(recorder, ""), listed) for recorder, listed in batches.items()],
        "moves": [move.as_data() for move in moves.values()],
    }
    view = {**_view(history, card, summary, charts, shares.parameters), "moves": moves}
    return SweepPages(
        card,
        {
            "index.html": render(
                "sweep.html.j2", "sweep", overview, {**view, "importance": _importance(shares)}
            ),
            "trials.html": render("trials.html.j2", "trial", details, view),
            "data.json": to_json(compared),
        },
    )


def _laptop_batches(summary: Summary) -> list[str]:
    return [batch.lock.name for batch in summary.batches if batch.is_marked]


def _details(one: TrialResult, compared_curve: str | None) -> dict[str, Any]:
    """Return the data of a trial's page beyond its columns, with its curves except the compared one.

    The reported environment is flattened by one level, to one line per entry.
    """
    data: dict[str, Any] = {"index": one.index, "attempts": one.attempts}
    if one.reason:
        data["reason"] = display.one_line(one.reason)
    if one.parent:
        data["parent"] = one.parent
    if (record := one.record) is not None:
        reported: dict[str, str] = {}
        for name, value in sorted(record.details.items()):
            nested = value if isinstance(value, Mapping) else {"": value}
            for inner, item in nested.items() if name not in ERROR_DETAILS else ():
                label = display.one_line(f"{name}.{inner}" if inner else name)
                reported[label] = display.format_value(item)[:LONGEST_TEXT]
        data |= {
            "started": record.started,
            "finished": record.finished,
            "seed": record.seed,
            "ran": record.ran,
            "node": record.node,
            "software": f"{record.environment.kind} {record.environment.digest}"
            if record.environment
            else None,
            "disruptions": record.disruptions or None,
            "environment": reported,
        }
        if record.error:
            data["message"] = record.error[-LONGEST_TEXT:]
        if record.artifacts:
            data["artifacts"] = [
                {"path": display.one_line(each.path), "bytes": each.bytes, "sha256": each.sha256}
                for each in record.artifacts
            ]
        if compared_curve is not None and (curves := _curves_beside(record, compared_curve)):
            data["curves"] = curves
    return data


def _curves_beside(record: Record, compared: str) -> dict[str, tuple[list[int], list[float]]]:
    """Return the steps and values of the curves of the other metrics, thinned."""
    curves = {}
    for name in sorted(record.curves.keys() - {compared})[:MOST_BESIDE]:
        points = [(step, float(f"{value:.6g}")) for step, value in record.curves[name] if value is not None]
        if len(points) > 1:
            thinned = [*points[: -1 : max(1, len(points) // BESIDE_POINTS)], points[-1]]
            curves[name] = ([step for step, _ in thinned], [value for _, value in thinned])
    return curves


def _card(history: SweepHistory, summary: Summary | None) -> dict[str, Any]:
    """Return the data of a sweep on the home page."""
    active = sum(history.active.values())
    pending = {"pending": active} if history.active else {}
    card: dict[str, Any] = {
        "name": history.name,
        "state": history.state,
        "description": history.description,
        "trials": active,
        "counts": pending,
        # The day of the last change.
        "updated": max((event.day for event in history.events), default=""),
        "metric": "",
        "goal": "",
        # The best objective, for people; empty if there is none.
        "best": "",
        "seconds": 0.0,
        # Computing time in seconds by the month that recorded it.
        "months": {},
        # The best objective so far, 0 (worst) to 1, over the trials.
        "spark": (),
        # That some of its results were made on a laptop; empty if none were.
        "laptop": "",
        # What trials cost by the commit that recorded their batch first, where pools have prices.
        "costs": {},
    }
    if summary is None:
        return card
    months: dict[str, float] = defaultdict(float)
    for event in history.events:
        if event.seconds:
            months[event.date[:7]] += event.seconds
    costs: dict[str, float] = defaultdict(float)
    for one in summary.outcomes:
        price, commit = history.prices.get(one.batch), history.recorded.get(one.batch)
        if one.record is not None and price is not None and commit is not None:
            costs[commit] += price * one.record.seconds / SECONDS_PER_HOUR
    return card | {
        "description": summary.description,
        "trials": len(summary.outcomes) + active,
        "counts": {str(status): count for status, count in summary.counts.items() if count} | pending,
        "metric": summary.metric.name,
        "goal": str(summary.metric.goal),
        "best": _best(summary)["value"],
        "seconds": round(sum(one.record.seconds for one in summary.outcomes if one.record), 3),
        "months": {month: round(seconds, 3) for month, seconds in months.items()},
        "spark": _spark(summary),
        "laptop": LAPTOP_WARNING if _laptop_batches(summary) else "",
        "costs": {commit: round(cost, 6) for commit, cost in costs.items()},
    }


def _spark(summary: Summary) -> tuple[float, ...]:
    """Return the best objective so far at some points, scaled from 0 (worst) to 1 (best)."""
    eligible = (one.metric(summary.metric.name) for one in summary.outcomes if summary.is_eligible(one))
    values = (value for value in eligible if value is not None)
    best = list(accumulate(values, partial(min, key=summary.metric.sort_key)))
    if not best:
        return ()
    stride = max(1, len(best) // SPARK_POINTS)
    thinned = [*best[:-1:stride], best[-1]]
    low, high = thinned[0], thinned[-1]
    return tuple(round((value - low) / (high - low), 3) if high != low else 1.0 for value in thinned)


def _view(
    history: SweepHistory,
    card: Mapping[str, Any],
    summary: Summary | None,
    charts: Sequence[SweepChart],
    parameters: Sequence[object],
) -> dict[str, Any]:
    versions = list(spec_changes(history.versions[-MOST_VERSIONS:]))
    view: dict[str, Any] = {
        "title": history.name,
        "root": "../../",
        "sweep": history,
        "card": card,
        "events": history.events[::-1],
        "spec_changes": versions,
        "summary": summary,
        "charts": {
            "main": [chart for chart in charts if chart.mark not in {ChartMark.POINT, ChartMark.PAIR}],
            "slices": [chart for chart in charts if chart.mark is ChartMark.POINT],
            "pairs": [chart for chart in charts if chart.mark is ChartMark.PAIR],
        },
        "has_parameters": bool(parameters),
        "importance": None,
        "moves": {},
    }
    if summary is None:
        return view
    current = [one for one in summary.outcomes if summary.is_current(one)]
    values = [value for one in summary.outcomes if (value := one.metric(summary.metric.name)) is not None]
    scale = ObjectiveScale.of(values, summary.metric.goal)
    worst = f"{display.count_trials(scale.beyond)}, the worst at {display.format_number(scale.worst)}"
    program, locks = None, [batch.lock for batch in summary.batches]
    if history.ranked is not None:
        program = {
            **program_texts(summary.lock.program),
            "batches": ", ".join(lock.name for lock in locks if lock.program.digest == summary.program),
            "is_head": history.ranked == summary.program,
        }
    return view | {
        "best": _best(summary),
        "rounds": rounds(summary),
        "failures": sorted(
            failures(one for one in current if one.status is not Status.OK),
            key=lambda row: (-row["count"], str(row["status"]), row["reason"]),
        ),
        # Which of several programs is ranked; None if all batches ran one.
        "program": program,
        # Trials that the charts show at the end of the axis instead of at their objective.
        "beyond": worst if scale.beyond else "",
        "savings": early_stopping(current, summary.metric.of_curve),
        "configurations": [
            {
                "trial": each.trial.trial,
                "values": display.format_values(each.assignment),
                "mean": display.format_number(each.mean or 0.0),
                "interval": _interval(each.interval),
                "count": each.count,
            }
            for each in summary.replicated[:10]
            if each.is_ranked
        ],
    }


def _best(summary: Summary) -> dict[str, Any]:
    winner = summary.winner
    if winner is None or summary.best is None:
        return {"value": "", "interval": "", "reason": summary.reason, "trial": "", "values": []}
    ranked = sum(
        summary.is_eligible(one) and one.metric(summary.metric.name) is not None for one in summary.outcomes
    )
    total = len(summary.outcomes)
    return {
        "value": display.format_number(summary.best),
        "interval": _interval(summary.interval),
        "reason": summary.reason if ranked == total else f"{summary.reason} ({total} in total)",
        "trial": winner.trial,
        "values": [(name, display.format_value(value)) for name, value in winner.assignment.items()],
    }


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = (display.format_within(end, interval.high - interval.low) for end in interval)
    return f"{low} to {high}"


def _importance(shares: Importance) -> dict[str, Any]:
    """Return the importance of each parameter for the page: in percent, what chance alone explains, and as text."""
    return {
        "rows": [
            {
                "parameter": each.parameter,
                "share": None if each.share is None else round(100 * each.share, 1),
                "chance": None if each.chance is None else round(min(100.0, 100 * each.chance), 1),
                "text": each.reason if each.share is None else display.format_percent(each.share),
                "is_significant": each.is_significant,
                "confounded": ", ".join(each.confounded),
            }
            for each in shares.parameters
        ],
        "rest": None if shares.rest is None else display.format_percent(shares.rest),
        "beyond": display.count_trials(shares.scale.beyond) if shares.scale.beyond else "",
    }
