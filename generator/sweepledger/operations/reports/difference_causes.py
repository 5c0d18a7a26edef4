"""Why the best value of a sweep differs from that of another, from recorded trials.

Where these cannot separate factors, the smallest sweeps that would are proposed as specs.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from sweepledger import spec, storage
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.formats import records_jsonl
from sweepledger.operations.reports.comparison import Side, side_at
from sweepledger.operations.reports.recorded_results import RecordedResults, recorded_results
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.programs import LISTED_FILES, code_tree_at, file_changes
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.reader import read_document
from sweepledger.reader.yaml_edit import format_block
from sweepledger.repo import files
from sweepledger.results import causes
from sweepledger.structs.metric import Goal
from sweepledger.structs.names import SPECS, SUFFIX, suggest_sweep_name
from sweepledger.structs.program import Code, Program
from sweepledger.structs.record import RAN_PROCESS, Record, SummaryRow
from sweepledger.structs.values import Value, canonical_json

NORMAL_QUANTILES = 1.96 + 0.84
"""A two-sided test at 5 % detects an effect of this many standard errors in 80 % of the cases."""
FEWEST_REPLICATES, MOST_REPLICATES = 3, 20
UNKNOWN_NOISE_REPLICATES = 5
"""Replicates if nothing is known of the seed noise."""
KEPT_KEYS = ("metric", "other_metrics", "program", "command")
"""Keys of a spec that say what runs and what is measured: a proposal takes them over."""
PROPOSAL_SUFFIXES = ("best", "old-data", "old-environment", "old-data-environment")
"""Ends of the names of proposed sweeps: what they run, or which parts of the program they return to those of A."""
SHORT = 12


@dataclass(frozen=True, slots=True)
class Proposal:
    """A sweep that separates factors which the recorded trials cannot separate."""

    name: str
    path: str
    text: str
    trials: int
    separates: tuple[str, ...]
    notes: tuple[str, ...]
    """What has to be true of the repository when the sweep is generated."""


@dataclass(frozen=True)
class ExplainedComparison:
    """Two sides, why the best value moved, what differs, and what would separate the rest."""

    a: Side
    b: Side
    explanation: causes.Explanation
    differences: Mapping[causes.Factor, tuple[str, ...]]
    """What differs, in words."""
    best: tuple[Mapping[str, Value], Mapping[str, Value]]
    """The best configuration of each side."""
    proposals: tuple[Proposal, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        explanation = self.explanation
        return {
            "a": {"sweep": self.a.sweep, "commit": self.a.commit, "best": explanation.best[0]},
            "b": {"sweep": self.b.sweep, "commit": self.b.commit, "best": explanation.best[1]},
            "metric": self.a.lock.metric.name,
            "moved": explanation.moved,
            "verdict": explanation.verdict,
            "named": explanation.named,
            "is_noise": explanation.is_noise,
            "noise": explanation.noise,
            "best_configurations": self.best,
            "factors": [
                {
                    **asdict(finding),
                    "interval": finding.interval and finding.interval._asdict(),
                    "differences": self.differences.get(finding.factor, ()),
                }
                for finding in explanation.findings
            ],
            "proposals": self.proposals,
        }


def explain_sweeps(workspace: Workspace, a: str, b: str) -> ExplainedComparison:
    """Explain why the best value of B differs from that of A, each `NAME`, `NAME@REV` or `NAME@BATCH`.

    Raises UsageError for an unknown name or commit and for different metrics, RepositoryError if nothing is recorded.
    """
    sides = first, second = side_at(workspace, a), side_at(workspace, b)
    metrics = [(side.lock.metric.name, side.lock.metric.goal) for side in sides]
    if metrics[0] != metrics[1]:
        texts = [
            f"{reference} has {name}, {goal}" for reference, (name, goal) in zip((a, b), metrics, strict=True)
        ]
        raise UsageError(
            f"they differ in metric or goal: {'; '.join(texts)}", hint="compare sweeps with equal metrics"
        )
    tables = [_RunTable.of(side.recorded) for side in sides]
    runs = [table.of_rows(side.rows.values()) for table, side in zip(tables, sides, strict=True)]
    for side, listed in zip(sides, runs, strict=True):
        if not listed:
            raise RepositoryError(
                f"{side.reference}: no trial is ok and has {side.lock.metric.name}",
                hint=f"`sweep logs {side.sweep} --failed` shows why trials failed",
            )
    head = workspace.repository.commit("HEAD") or second.commit
    for suffix in PROPOSAL_SUFFIXES:
        proposed = recorded_results(workspace.repository, head, _proposal_name(second.sweep, suffix))
        if proposed is not None and (proposed.lock.metric.name, proposed.lock.metric.goal) == metrics[1]:
            tables.append(_RunTable.of(proposed))
    others = [run for table in tables for run in table.of_rows(table.results.table.rows)]
    explanation = causes.explain(runs[0], runs[1], first.lock.metric.goal, others=others)
    best: list[Mapping[str, Value]] = []
    programs: list[causes.RanProgram] = []
    for table, winner, side in zip(tables, explanation.winners, sides, strict=False):
        rows = [row for row in side.rows.values() if canonical_json(row.assignment) == winner]
        finished = (row for row in rows if row.metric(metrics[0][0]) is not None)
        best.append(rows[0].assignment)
        programs.append(next(ran for row in finished if (ran := table.ran(row))))
    differences = _differences(workspace, programs, best)
    explained = ExplainedComparison(first, second, explanation, differences, (best[0], best[1]), ())
    return replace(explained, proposals=tuple(_proposals(workspace, explained, runs)))


def write_proposals(workspace: Workspace, proposals: Iterable[Proposal]) -> None:
    """Write the specs of proposals, of which none may exist. Raises UsageError, StorageError."""
    listed = tuple(proposals)
    files.refuse_links(workspace.root, *(proposal.path for proposal in listed))
    for proposal in listed:
        if (workspace.root / proposal.path).exists():
            raise UsageError(f"{proposal.path} exists", hint="remove or rename it first")
    for proposal in listed:
        storage.write_file(workspace.root / proposal.path, proposal.text.encode())


@dataclass(frozen=True)
class _RunTable:
    results: RecordedResults
    programs: Mapping[str, Program]
    environments: Mapping[tuple[str, int], str]
    """By batch and row, of the records that have one."""

    @classmethod
    def of(cls, results: RecordedResults) -> "_RunTable":
        programs = {batch.lock.program.digest: batch.lock.program for batch in results.stored}
        environments = {
            (batch, record.index): record.environment.digest
            for _, batch, content in results.records()
            for record in records_jsonl.records(content)
            if isinstance(record, Record) and record.environment is not None and record.status.is_success
        }
        return cls(results, programs, environments)

    def of_rows(self, rows: Iterable[SummaryRow]) -> list[causes.Run]:
        metric = self.results.lock.metric.name
        listed = []
        for row in rows:
            value, ran = row.metric(metric), self.ran(row)
            if value is not None and ran is not None:
                listed.append(causes.Run.of(row, ran, value))
        return listed

    def ran(self, row: SummaryRow) -> causes.RanProgram | None:
        """Return the factors of a trial's run; None if its batch is unknown."""
        program = self.programs.get(row.program)
        if program is None:
            return None
        environment = self.environments.get((row.batch, row.index))
        return causes.RanProgram(program, row.node_class, row.ran != RAN_PROCESS, environment)


def _proposal_name(sweep: str, suffix: str) -> str:
    return suggest_sweep_name(f"explain-{sweep}-{suffix}") or f"explain-{suffix}"


def _differences(
    workspace: Workspace, programs: Sequence[causes.RanProgram], best: Sequence[Mapping[str, Value]]
) -> dict[causes.Factor, tuple[str, ...]]:
    sides = [_words(ran, values) for ran, values in zip(programs, best, strict=True)]
    differences: dict[causes.Factor, tuple[str, ...]] = {}
    for factor, name in dict.fromkeys(chain(*sides)):
        before, after = (side.get((factor, name), "absent") for side in sides)
        if before != after:
            differences[factor] = (*differences.get(factor, ()), f"{name}: {before} → {after}")
    files = _changed_files(workspace, *(ran.program.code for ran in programs))
    code = causes.Factor.CODE
    return {**differences, code: (*differences.get(code, ()), *files)}


def _words(ran: causes.RanProgram, values: Mapping[str, Value]) -> dict[tuple[causes.Factor, str], str]:
    """Return the factors of one side as text, by factor and name."""
    factor, program, end = causes.Factor, ran.program, len("sha256:") + SHORT
    data, lock = program.data, program.environment
    return {
        (factor.CODE, "command"): " ".join(program.command),
        (factor.CODE, "code path"): program.code.path,
        (factor.CODE, "workdir"): program.workdir or "none",
        (factor.CODE, "config"): program.config.base if program.config else "none",
        (factor.DATA, "data"): " ".join([data.name, data.digest[:end], *data.place_texts])
        if data
        else "none",
        (factor.ENVIRONMENT, "image"): program.image,
        (factor.ENVIRONMENT, "pool"): ran.pool or "none",
        (factor.ENVIRONMENT, "ran as"): "a container" if ran.in_container else "a process",
        (factor.ENVIRONMENT, "environment lock"): lock.digest[:end] if lock else "none",
        (factor.ENVIRONMENT, "installed software"): (ran.environment or "not recorded")[:end],
        **{(factor.VALUES, name): canonical_json(value) for name, value in values.items()},
    }


def _changed_files(workspace: Workspace, before: Code, after: Code) -> Iterator[str]:
    if before.tree == after.tree:
        return
    changes = file_changes(workspace.repository, before, after)
    if changes is None:
        yield f"tree: {before.tree[:SHORT]} → {after.tree[:SHORT]}; this clone lacks one of them"
        return
    for change in changes[:LISTED_FILES]:
        yield f"{change.path}: +{change.added} -{change.removed}" if change.added is not None else change.path
    if len(changes) > LISTED_FILES:
        yield f"and {len(changes) - LISTED_FILES} more files"


def _proposals(
    workspace: Workspace, explained: ExplainedComparison, runs: Sequence[Sequence[causes.Run]]
) -> Iterator[Proposal]:
    """Yield the fewest sweeps that separate the confounded factors, each with few trials.

    The first runs the best configurations of both sides with the program of B; each further one returns one more part
    of the program to the version of A.
    """
    explanation, b = explained.explanation, explained.b
    confounded = explanation.confounded
    content = workspace.repository.read(b.commit, b.lock.spec.path).get(b.lock.spec.path, b"")
    document = read_document(content, b.lock.spec.path).document
    if not confounded or document is None or not isinstance(document.data, dict):
        return
    specs = at_commit.SpecReader.at(workspace.repository, "HEAD")
    builder = _ProposalBuilder(workspace, explained, document.data, specs)
    parts = [factor for factor in confounded if factor in causes.PROGRAM]
    common = {run.configuration for run in runs[0]} & {run.configuration for run in runs[1]}
    if causes.Factor.VALUES in confounded or not common or len(parts) == 1:
        configurations = list(explained.best)
        if explanation.winners[0] == explanation.winners[1]:
            configurations = configurations[:1]
        yield builder.proposal("best", configurations, (), confounded)
        configurations = configurations[:1]
    else:
        goal = b.lock.metric.goal
        means = {key: value for key, value in causes.configuration_means(runs[0]).items() if key in common}
        choose = max if goal is Goal.MAXIMIZE else min
        key = choose(means, key=lambda each: (means[each], each))
        configurations = [json.loads(key)]
    reverted: tuple[causes.Factor, ...] = ()
    # Code is the last: a spec names data and environment, and takes its code from the commit that generates it.
    for factor in sorted(
        parts, key=(causes.Factor.DATA, causes.Factor.ENVIRONMENT, causes.Factor.CODE).index
    )[:-1]:
        reverted = (*reverted, factor)
        yield builder.proposal(f"old-{'-'.join(reverted)}", configurations, reverted, parts)


@dataclass(frozen=True)
class _ProposalBuilder:
    workspace: Workspace
    explained: ExplainedComparison
    document: Mapping[str, Any]
    specs: at_commit.SpecReader

    def proposal(
        self,
        suffix: str,
        configurations: Sequence[Mapping[str, Value]],
        reverted: Sequence[causes.Factor],
        separates: Sequence[causes.Factor],
    ) -> Proposal:
        """Return the sweep of some configurations, with some parts of the program as in A."""
        a, b = self.explained.a, self.explained.b
        name = _proposal_name(b.sweep, suffix)
        # As many as detect what has moved in four of five cases.
        noise, moved = self.explained.explanation.noise, abs(self.explained.explanation.moved)
        replicates = UNKNOWN_NOISE_REPLICATES
        if noise is not None and moved:
            ratio = NORMAL_QUANTILES * noise / moved
            # The square of the ratio of a large and a tiny number is no number any more.
            replicates = max(FEWEST_REPLICATES, math.ceil(min(MOST_REPLICATES, 2 * ratio * ratio)))
        run = dict(self.document.get("run", {}))
        notes = [*self._notes(reverted)]
        if causes.Factor.DATA in reverted:
            run.pop("data", None)
            if a.lock.program.data is not None:
                run["data"] = a.lock.program.data.as_written()
        if causes.Factor.ENVIRONMENT in reverted:
            run["image"] = a.lock.program.image
            run.pop("pool", None)
            if a.lock.run.pool is not None:
                run["pool"] = a.lock.run.pool
        document = {
            **{key: self.document[key] for key in ("version",) if key in self.document},
            "name": name,
            "description": f"Separates {' and '.join(separates) or 'values'} of {a.reference} and {b.reference}",
            **{key: self.document[key] for key in KEPT_KEYS if key in self.document},
            "method": "list",
            "assignments": [dict(each) for each in configurations],
            "replicates": replicates,
            **({"run": run} if run else {}),
        }
        text = "".join(f"# {note}\n" for note in notes)
        text += "".join(f"{format_block(key, value, 0)}\n" for key, value in document.items())
        path = f"{SPECS}/{name}{SUFFIX}"
        parsed = spec.parse(text.encode(), path, self.specs.settings)
        if not isinstance(parsed, spec.ParsedSpec):
            notes += [f"not valid here yet: {problem.message}" for problem in parsed[:1]]
        return Proposal(
            name, path, text, len(configurations) * replicates, tuple(map(str, separates)), tuple(notes)
        )

    def _notes(self, reverted: Sequence[causes.Factor]) -> Iterator[str]:
        """Yield notes on what a spec cannot set: the commit determines the code, the settings determine the data."""
        a, b = self.explained.a, self.explained.b
        parsed = self.specs.sweep(b.commit, b.lock.spec.path)
        head = self.workspace.repository.commit("HEAD")
        if head is not None and parsed is not None:
            tree = code_tree_at(self.workspace.repository, head, parsed)
            if tree != b.lock.program.code.tree:
                yield f"Generate it where {b.lock.program.code} has the git tree {b.lock.program.code.tree}."
        data = a.lock.program.data if causes.Factor.DATA in reverted else b.lock.program.data
        if data is not None:
            dataset = self.specs.settings.trials.dataset_named(data.name)
            if dataset is None or dataset.identity != data.digest:
                yield f"The settings must have the dataset {data.name} with digest {data.digest}."
