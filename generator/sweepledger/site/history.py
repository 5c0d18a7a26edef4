"""The git history of one sweep as values: results, commits, versions of its spec; and the cost of trials by month.

Also the programs that the sweep ran, and why its best value moved from one results commit to the next.
"""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from sweepledger.results import display
from sweepledger.results.causes import Explanation, RanProgram, Run, explain
from sweepledger.results.summary import Summary
from sweepledger.structs.program import Program
from sweepledger.structs.record import RAN_PROCESS, TrialResult


class EventKind(StrEnum):
    """The part of a sweep that a commit changed."""

    SPEC = "spec"
    BATCH = "batch"
    RESULTS = "results"


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a sweep by one commit."""

    sweep: str
    kind: EventKind
    commit: str
    author: str
    date: str
    """The author's date, ISO 8601 with offset."""
    text: str
    best: float | None = None
    """The best objective after it, for results."""
    change: float | None = None
    """Difference between the best objective and that of the results before."""
    seconds: float | None = None
    """Computing time that a commit recorded."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Paths that the commit changed, each with its blob id."""

    @property
    def day(self) -> str:
        """The author's day."""
        return self.date[:10]

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        names = ("sweep", "kind", "commit", "author", "date", "text", "best", "change")
        return {name: getattr(self, name) for name in names}


SpecVersion = tuple[Event, str]
"""A commit of a spec, and its content after that."""


_LINE_KINDS = {"+": "added", "-": "removed", "@": "place"}
CONTEXT_LINES = 2


def spec_changes(versions: Sequence[SpecVersion]) -> Iterator[tuple[Event, tuple[tuple[str, str], ...]]]:
    """Yield the commits after the first, newest first, each with its changed lines.

    A line has a kind (`added`, `removed`, `same` or `place`) and its text.
    """
    for (_, before), (event, after) in reversed(list(pairwise(versions))):
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT_LINES)
        yield event, tuple((_LINE_KINDS.get(line[:1], "same"), line) for line in list(lines)[2:])


@dataclass(frozen=True, slots=True)
class CodeRevision:
    """The differences between two versions of the code of a sweep."""

    files: tuple[tuple[str, int | None, int | None], ...]
    """Path, and how many lines it gained and lost; None for files that are no text, or of which that is unknown."""
    patch: str
    """The difference itself; empty if it is too long, or if this clone lacks one of the versions."""


@dataclass(frozen=True, slots=True)
class SweepHistory:
    """All inputs for the pages of one sweep."""

    name: str
    summary: Summary | None
    """None while nothing is recorded, or if the records cannot be read."""
    spec: str | None
    """The text of the spec at the commit; None if it was removed."""
    versions: tuple[SpecVersion, ...]
    """Oldest first."""
    events: tuple[Event, ...]
    """Oldest first."""
    active: Mapping[str, int]
    """Active batches, with their numbers of trials."""
    description: str = ""
    """From the spec, while nothing is recorded."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """The commit that recorded each batch, oldest first."""
    code_changes: Mapping[tuple[str, str], CodeRevision] = field(default_factory=dict)
    """By the trees of the version before and of the next."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Price of one trial per hour, by batch, for those whose pool has a price."""
    currency: str = ""
    problem: str = ""
    """Why the results cannot be shown; empty if they can, or if there are none."""
    ranked: str | None = None
    """The digest of the commit's program if the batches ran several, empty if it is none of them; None: one."""
    foreign: tuple[str, ...] = ()
    """Foreign evidence that the search starts from, in words."""

    @property
    def state(self) -> str:
        """The sweep's state in one word."""
        if self.problem:
            return "unreadable"
        if self.active:
            return "running"
        return "recorded" if self.summary is not None else "planned"


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """The usage of a team's sweeps in a month."""

    month: str
    team: str
    gpu_hours: float
    money: float


@dataclass(frozen=True, slots=True)
class MonthlyTime:
    """Computing time of all trials that were recorded in a month."""

    month: str
    seconds: float
    sweeps: int


def monthly_times(sweeps: Iterable[Mapping[str, float]]) -> tuple[MonthlyTime, ...]:
    """Return the computing time by month, newest first, from the seconds by month of each sweep."""
    seconds: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for by_month in sweeps:
        for month, spent in by_month.items():
            seconds[month] += spent
            count[month] += 1
    return tuple(MonthlyTime(month, seconds[month], count[month]) for month in sorted(seconds, reverse=True))


MOST_MOVES = 10
"""Moves of the best value that are explained, the newest: each tests every factor."""


def program_texts(program: Program) -> dict[str, str]:
    """Return the texts that describe a program on the pages."""
    data = program.data
    return {
        "image": program.image,
        "code": f"{program.code.path}@{program.code.tree[:12]}",
        "data": f"{data.name}@{data.digest[:19]}" if data else "none",
        "command": " ".join(map(display.one_line, program.command)),
    }


def program_versions(history: SweepHistory, summary: Summary) -> list[dict[str, Any]]:
    """Return the programs of a sweep as JSON data, in the order of their batches; a program used again is listed again.

    Each has the changes of its code since the previous version.
    """
    versions: list[tuple[Program, list[str]]] = []
    for batch in summary.batches:
        program, name = batch.lock.program, batch.lock.name
        if versions and versions[-1][0].digest == program.digest:
            versions[-1][1].append(name)
        else:
            versions.append((program, [name]))
    shown: list[dict[str, Any]] = []
    tree = ""
    for program, batches in versions:
        data: dict[str, Any] = {"batches": batches, **program_texts(program)}
        if program.environment is not None:
            data["environment lock"] = program.environment.digest[:19]
        if (change := history.code_changes.get((tree, program.code.tree))) is not None:
            data["files"] = [(display.one_line(path), *lines) for path, *lines in change.files]
            data["patch"] = change.patch
        tree = program.code.tree
        shown.append(data)
    return shown


@dataclass(frozen=True, slots=True)
class ExplainedMove:
    """Why the best value after a results commit differs from the value before it."""

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
            "factors": [asdict(finding) for finding in explanation.findings],
        }


def explained_moves(history: SweepHistory, summary: Summary) -> Mapping[str, ExplainedMove]:
    """Return the causes of changes of the best value, by results commit."""
    moves: dict[str, ExplainedMove] = {}
    commits = list(dict.fromkeys(history.recorded.values()))
    runs = {id(one): run for one in summary.outcomes if (run := _run(summary, one)) is not None}
    for before, after in list(pairwise(commits))[-MOST_MOVES:]:
        sides: list[list[Run]] = []
        for end in (before, after):
            until = commits[: commits.index(end) + 1]
            locks = [
                batch.lock for batch in summary.batches if history.recorded.get(batch.lock.name) in until
            ]
            names, program = {lock.name for lock in locks}, locks[-1].program.digest if locks else ""
            # The trials of the newest program.
            mine = (one for one in summary.outcomes if one.batch in names and one.program == program)
            sides.append([runs[id(one)] for one in mine if id(one) in runs])
        if all(sides):
            explanation = explain(sides[0], sides[1], summary.metric.goal, others=runs.values())
            moves[after] = ExplainedMove(before, after, explanation)
    return moves


def _run(summary: Summary, one: TrialResult) -> Run | None:
    """Return a trial for the statistical tests; None if it has no result."""
    value = one.metric(summary.metric.name)
    if value is None or one.record is None:
        return None
    program = next(batch.lock.program for batch in summary.batches if batch.lock.name == one.batch)
    environment = one.record.environment.digest if one.record.environment else None
    return Run.of(one, RanProgram(program, one.node_class, one.record.ran != RAN_PROCESS, environment), value)
