"""The programs that a sweep ran, and why its best value moved from one results commit to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sweepledger.results import display
from sweepledger.results.causes import Explanation, Run, explain, program_parts
from sweepledger.results.summary import Summary
from sweepledger.site.history import CodeRevision, SweepHistory
from sweepledger.structs.program import Program
from sweepledger.structs.record import RAN_PROCESS, TrialResult
from sweepledger.structs.values import canonical_json

MOST_MOVES = 10
"""Moves of the best value that are explained, the newest: each tests every factor."""


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A program of a sweep, and the batches that ran it."""

    program: Program
    batches: tuple[str, ...]
    change: CodeRevision | None
    """What its code changed of that of the version before; None if nothing."""

    def as_data(self, *, with_patch: bool) -> dict[str, Any]:
        """Return the JSON data."""
        program = self.program
        shown: dict[str, Any] = {"batches": self.batches, **program_texts(program)}
        if program.environment is not None:
            shown["environment lock"] = program.environment.digest[:19]
        if self.change is not None:
            shown["files"] = [(display.one_line(path), *lines) for path, *lines in self.change.files]
            if with_patch:
                shown["patch"] = self.change.patch
        return shown


def program_texts(program: Program) -> dict[str, str]:
    """Return a program as the pages name it."""
    data = program.data
    return {
        "image": program.image,
        "code": f"{program.code.path}@{program.code.tree[:12]}",
        "data": f"{data.name}@{data.digest[:19]}" if data else "none",
        "command": " ".join(map(display.one_line, program.command)),
    }


def program_versions(history: SweepHistory, summary: Summary) -> tuple[ProgramVersion, ...]:
    """Return the programs of a sweep, in the order of their batches; one that returns is a version again."""
    versions: list[ProgramVersion] = []
    for batch in summary.batches:
        program, name = batch.lock.program, batch.lock.name
        last = versions[-1] if versions else None
        if last is not None and last.program.digest == program.digest:
            versions[-1] = ProgramVersion(program, (*last.batches, name), last.change)
            continue
        trees = (last.program.code.tree, program.code.tree) if last else ("", "")
        versions.append(ProgramVersion(program, (name,), history.code_changes.get(trees)))
    return tuple(versions)


@dataclass(frozen=True, slots=True)
class ExplainedMove:
    """Why the best value after a results commit differs from that before it."""

    before: str
    after: str
    explanation: Explanation

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        explanation = self.explanation
        return {
            "before": self.before,
            "after": self.after,
            "moved": explanation.moved,
            "verdict": explanation.verdict,
            "factors": [
                {
                    "factor": str(one.factor),
                    "state": str(one.state),
                    "effect": one.effect,
                    "interval": None if one.interval is None else (one.interval.low, one.interval.high),
                    "probability": one.probability,
                    "trials": one.trials,
                    "reason": one.reason,
                }
                for one in explanation.findings
            ],
        }


def explained_moves(history: SweepHistory, summary: Summary) -> Mapping[str, ExplainedMove]:
    """Return why the best value moved, by the results commit that moved it."""
    moves: dict[str, ExplainedMove] = {}
    commits = list(dict.fromkeys(history.recorded.values()))
    runs = {id(one): run for one in summary.outcomes if (run := _run(summary, one)) is not None}
    for before, after in list(pairwise(commits))[-MOST_MOVES:]:
        sides = [
            _runs_at(history, summary, commits[: commits.index(end) + 1], runs) for end in (before, after)
        ]
        if all(sides):
            explanation = explain(sides[0], sides[1], summary.metric.goal, others=runs.values())
            moves[after] = ExplainedMove(before, after, explanation)
    return moves


def _run(summary: Summary, one: TrialResult) -> Run | None:
    """Return a trial for the tests; None if it has no result."""
    value = one.metric(summary.metric.name)
    if value is None or one.record is None:
        return None
    program = next(batch.lock.program for batch in summary.batches if batch.lock.name == one.batch)
    environment = one.record.environment.digest if one.record.environment else None
    parts = program_parts(
        program, pool=one.node_class, in_container=one.record.ran != RAN_PROCESS, environment=environment
    )
    return Run(f"{one.batch}/{one.index}", canonical_json(dict(one.assignment)), parts, value)


def _runs_at(
    history: SweepHistory, summary: Summary, commits: Sequence[str], runs: Mapping[int, Run]
) -> list[Run]:
    """Return the trials of the newest program that was recorded after some commits."""
    known = [batch.lock for batch in summary.batches if history.recorded.get(batch.lock.name) in commits]
    if not known:
        return []
    names, program = {lock.name for lock in known}, known[-1].program.digest
    return [
        runs[id(one)]
        for one in summary.outcomes
        if one.batch in names and one.program == program and id(one) in runs
    ]
