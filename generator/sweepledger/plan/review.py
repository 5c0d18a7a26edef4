"""Review: everything that a reviewer of a sweep should see before the merge, as one value and as JSON.

It lists the trials that a spec adds and removes since the base commit, and outdated parts of its locked program.
Notes are facts that a reviewer may overlook, but no problems. Each key of the JSON is always present; lists of trials
are cut at a thousand.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Any

from msgspec import structs

from sweepledger.plan.budgets import Balance, Cost, PodDisk, PoolUsage, RoundBounds, cost, pool_usage
from sweepledger.plan.coverage import Coverage, Discrepancy, ParameterCoverage, ValueCounts
from sweepledger.plan.forecast import Forecast
from sweepledger.problems import Problem
from sweepledger.structs.program import Program
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.search_block import StartMapping
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import Value, as_data, is_number


@dataclass(frozen=True, slots=True)
class Difference:
    """The trials of a spec compared with those at the base commit, under one program."""

    previous: str | None
    """Path of the spec at the base commit; None if it is new."""
    added: tuple[Trial, ...]
    removed: tuple[Trial, ...]
    unchanged: int
    is_same_text: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether both specs have the same trials."""
        return not self.added and not self.removed


@dataclass(frozen=True, slots=True)
class UnreadableSpec:
    """A spec at the base commit that has errors by the current rules, so its trials are unknown."""

    previous: str
    problems: tuple[Problem, ...]


def difference(previous: str | None, before: Sequence[Trial], after: Sequence[Trial]) -> Difference:
    """Compare trials by their digests; each side keeps its order."""
    old = {trial.digest for trial in before}
    new = {trial.digest for trial in after}
    added = tuple(trial for trial in after if trial.digest not in old)
    removed = tuple(trial for trial in before if trial.digest not in new)
    return Difference(previous, added, removed, len(after) - len(added))


@dataclass(frozen=True, slots=True)
class OutdatedPart:
    """A part of a program whose locked version is not the current one."""

    part: str
    """Code, image or data."""
    name: str
    """The folder of the code, or the name of the dataset; empty for the image."""
    locked: str
    current: str
    """Empty if the part does not exist any more."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs between two versions of the code."""

    path: str
    """Relative to the repository."""
    added: int | None
    """Number of lines; None for a file that is not text."""
    removed: int | None


@dataclass(frozen=True, slots=True)
class CodeChange:
    """What differs between two versions of the code."""

    since: str | None
    """The merged batch that runs the previous version; None: the later one is the last commit's, and does not run."""
    files: tuple[FileChange, ...] | None
    """None if this clone lacks one of the versions."""


def outdated_parts(locked: Program, current: Program) -> tuple[OutdatedPart, ...]:
    """Compare the program of a batch with the program that `sweep generate --update` would lock."""
    parts = [
        OutdatedPart("code", str(locked.code), locked.code.tree, current.code.tree),
        OutdatedPart("image", "", locked.image, current.image),
    ]
    if locked.data:
        digest = current.data.digest if current.data else ""
        parts.append(OutdatedPart("data", locked.data.name, locked.data.digest, digest))
    return tuple(part for part in parts if part.locked != part.current)


EDGE_TRIALS = 3
"""Trials shown at each end: enough to see which parameter varies fastest."""


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """A sweep's trials by the batches at the base commit that list them."""

    new: int
    """Trials that no batch lists."""
    running: int
    """Trials of active batches."""
    recorded: int
    """Trials of archived batches only."""


def count_trials(
    trials: Sequence[Trial], *, active: AbstractSet[str], archived: AbstractSet[str]
) -> TrialCounts:
    """Count trials by the digests that merged batches list."""
    running = sum(trial.digest in active for trial in trials)
    known = sum(trial.digest in active or trial.digest in archived for trial in trials)
    return TrialCounts(len(trials) - known, running, known - running)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A constraint, and how many candidates it rejects."""

    text: str
    rejected: int
    """Candidates that it rejects; several constraints may reject the same one."""
    unevaluated: int = 0
    """Candidates that lack a value that it needs, and therefore satisfy it."""


@dataclass(frozen=True, slots=True)
class DesignReview:
    """How many candidates are rejected, duplicates or kept."""

    method: str
    candidates: int
    rejected: int
    duplicates: int
    kept: int
    constraints: tuple[Rejection, ...] = ()
    discrepancy: Discrepancy | None = None
    """Only for quasi-random points."""

    @property
    def acceptance(self) -> float:
        """The share of candidates that satisfies the constraints."""
        return 1 - self.rejected / self.candidates if self.candidates else 0.0


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for reviewers; its kind is stable, its text is not."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer should know of a sweep before the merge."""

    sweep: Sweep
    trials: tuple[Trial, ...]
    counts: TrialCounts
    design: DesignReview
    coverage: Coverage
    difference: Difference | UnreadableSpec
    problems: tuple[Problem, ...] = ()
    """Warnings, and a missing program."""
    outdated: tuple[OutdatedPart, ...] = ()
    """Outdated parts of the locked program: new trials will not run the current ones."""
    code: tuple[CodeChange, ...] = ()
    """What new trials run beside the last merged batch, and what the last commit has beside the lock."""
    unlocked: str | None = None
    """Why no program can be locked yet: until then all trials count as new, and ids may change."""
    forecast: Forecast | None = None
    """Forecast of the new trials; None if there are none."""
    balances: tuple[Balance, ...] = ()
    """Balances of the budgets that it counts towards."""
    notes: tuple[Note, ...] = ()
    batch: str | None = None
    """The new batch that lists the new trials, if it is generated already."""
    further_rounds: RoundBounds | None = None
    """Bounds of all further rounds of a search, whose trials count as new; None for static methods."""
    cluster: str | None = None
    """Where its next batch would run; None: in the only cluster, or in none."""
    disk: PodDisk | None = None
    """What its pods need; None while no program can be locked, or without new trials."""

    @property
    def is_change(self) -> bool:
        """Whether merging it would change the requested trials."""
        is_unchanged = isinstance(self.difference, Difference) and self.difference.is_empty
        has_begun = self.further_rounds is not None and self.counts.running + self.counts.recorded > 0
        return (self.counts.new > 0 and not has_begun) or not is_unchanged or self.batch is not None

    @property
    def first(self) -> tuple[Trial, ...]:
        """The first few trials."""
        return self.trials[:EDGE_TRIALS]

    @property
    def last(self) -> tuple[Trial, ...]:
        """The last few trials, without those that are among the first."""
        return self.trials[max(EDGE_TRIALS, len(self.trials) - EDGE_TRIALS) :]

    @property
    def whole_cost(self) -> Cost:
        """Upper bound for all trials."""
        counts = self.counts
        is_static = self.further_rounds is None
        trials = len(self.trials) if is_static else counts.new + counts.running + counts.recorded
        return cost(self._run, self.sweep.pool, trials)

    @property
    def new_cost(self) -> Cost:
        """Upper bound for the trials that this merge adds."""
        return cost(self._run, self.sweep.pool, self.counts.new)

    @property
    def _run(self) -> RunConfig:
        """How trials run; in a search, the parallelism includes all rounds that may overlap."""
        run = self.sweep.run
        at_once = run.parallelism
        if self.further_rounds is not None:
            at_once = self.further_rounds.trials_at_once(run.parallelism)
        return run if at_once == run.parallelism else structs.replace(run, parallelism=max(1, at_once))

    @property
    def pool_usage(self) -> PoolUsage | None:
        """The nodes that the new trials use in their pool."""
        return pool_usage(self.sweep, self.counts.new)


@dataclass(frozen=True)
class Planned:
    """The reviews of all requested sweeps."""

    base: str | None
    """The base commit; None in a repository without commits."""
    reviews: tuple[Review, ...]
    unchanged: tuple[str, ...]
    """Sweeps that a merge would not change."""
    problems: tuple[Problem, ...] = ()
    """Problems of specs; a wrong spec does not hide the others."""
    currency: str = ""
    month: str = ""


TIGHT = 0.05
"""Share of candidates; a constraint that keeps less may be a mistake."""
FILES_NOT_KEPT = "results.store keeps records only: output, artifacts and checkpoints are gone with the pods"


BestTrial = tuple[str, Mapping[str, Value]]
"""The best recorded trial of the sweep so far, and its configuration."""


def notes(
    sweep: Sweep,
    trials: Sequence[Trial],
    design: DesignReview,
    *,
    best: BestTrial | None = None,
    examples: int | None = None,
    foreign: Sequence[str] = (),
    keeps_files: bool = True,
) -> tuple[Note, ...]:
    """Return the notes on a sweep, with its foreign evidence; `examples` is the number of training examples."""
    listed = [
        Note("start-mapping", _mapping_text(mapping))
        for mapping in (sweep.search.mappings if sweep.search else ())
    ]
    listed += [] if keeps_files else [Note("files-not-kept", FILES_NOT_KEPT)]
    listed += [Note("foreign-evidence", f"starts from {label}") for label in foreign]
    for constraint in design.constraints:
        kept = 1 - constraint.rejected / design.candidates if design.candidates else 1
        if kept < TIGHT:
            text = f"{100 * kept:.2g} % of the candidates satisfy {constraint.text}"
            listed.append(Note("tight-constraint", text))
    listed += _best_at_boundary(trials, best)
    if sweep.replicates == 1 and len(trials) > 1:
        text = "without replicates, the effect of a configuration cannot be separated from seed noise"
        listed.append(Note("no-replicates", text))
    sizes = (
        (float(value), name)
        for trial in trials
        for name, value in trial.assignment.items()
        if name.rpartition(".")[2] == "batch_size" and is_number(value)
    )
    size, name = max(sizes, default=(0.0, ""))
    if examples is not None and size > examples:
        text = f"{name}={size:g} is more than the {examples:,} examples of the data"
        listed.append(Note("batch-larger-than-data", text))
    return tuple(listed)


def _best_at_boundary(trials: Sequence[Trial], best: BestTrial | None) -> Iterator[Note]:
    """Yield a note if the best value is the smallest or largest: values beyond it may be better."""
    if best is None:
        return
    best_id, configuration = best
    for name, value in sorted(configuration.items()):
        tried = {float(other) for trial in trials if is_number(other := trial.assignment.get(name))}
        if not is_number(value) or len(tried) < 2:  # noqa: PLR2004 - one value has no ends
            continue
        ends = {"smallest": min(tried) >= value, "largest": max(tried) <= value}
        for end in (end for end, is_reached in ends.items() if is_reached):
            text = f"{name}={value!r} of the best trial so far, {best_id}, is the {end} value tried"
            yield Note("best-at-an-end", text)


MAX_TRIALS = 1000
"""Limit for the lists of added and of removed trials; the counts include all."""

MAX_FILES = 1000
"""Limit for the list of changed files."""


def review_as_data(review: Review) -> dict[str, Any]:
    """Return a review as JSON data."""
    sweep, infrastructure = review.sweep, review.sweep.run.infrastructure
    return {
        "name": sweep.name,
        "path": sweep.path,
        "description": sweep.description,
        "trials": len(review.trials),
        "configurations": review.coverage.configurations,
        "replicates": sweep.replicates,
        **asdict(review.counts),
        "unlocked": review.unlocked,
        "outdated": [asdict(part) for part in review.outdated],
        "code": [
            {
                "since": change.since,
                "count": len(change.files or ()),
                "files": change.files and list(map(asdict, change.files[:MAX_FILES])),
            }
            for change in review.code
        ],
        "cost": {
            "all": asdict(review.whole_cost),
            "new": asdict(review.new_cost),
            "timeout_seconds": sweep.run.timeout_seconds,
            "attempts": sweep.run.attempts,
            "max_disruptions": sweep.run.max_disruptions,
            "parallelism": sweep.run.parallelism,
            **({} if infrastructure is None else {"infrastructure": as_data(infrastructure)}),
        },
        **({} if sweep.run.pack is None else {"pack": structs.asdict(sweep.run.pack)}),
        "batch": review.batch,
        "cluster": review.cluster,
        "search": None if review.further_rounds is None else asdict(review.further_rounds),
        "forecast": None if review.forecast is None else asdict(review.forecast),
        "budgets": [balance.as_data() for balance in review.balances],
        "notes": list(map(asdict, review.notes)),
        "pool": pool_usage_as_data(review.pool_usage),
        "disk": None if review.disk is None else asdict(review.disk),
        "budget": structs.asdict(sweep.budget),
        "design": _design(review.design),
        "parameters": list(map(_parameter, review.coverage.parameters)),
        "constants": dict(review.coverage.constants),
        "first": _trials(review.first),
        "last": _trials(review.last),
        "difference": _difference(review.difference),
    }


def pool_usage_as_data(usage: PoolUsage | None) -> dict[str, Any] | None:
    """Return the use of a pool as JSON data."""
    if usage is None:
        return None
    resources = usage.run.resources
    return {
        "name": usage.pool.name,
        "trials": usage.trials,
        "at_once": usage.at_once,
        "nodes": usage.nodes,
        "max_nodes": usage.pool.max_nodes,
        "price": usage.price,
        "resources": {"cpu": resources.cpu, "memory": resources.memory, "gpu": resources.gpu},
    }


def _design(design: DesignReview) -> dict[str, Any]:
    discrepancy = design.discrepancy
    random = None if discrepancy is None else {**asdict(discrepancy), "random": discrepancy.random}
    return {**asdict(design), "acceptance": design.acceptance, "discrepancy": random}


def _parameter(parameter: ParameterCoverage) -> dict[str, Any]:
    data, values = asdict(parameter), parameter.values
    counts, histogram = None, data.pop("values")
    if isinstance(values, ValueCounts):
        counts, histogram = [{"value": value, "count": count} for value, count in values.values], None
    return {**data, "counts": counts, "histogram": histogram}


def _difference(difference: Difference | UnreadableSpec) -> dict[str, Any]:
    if isinstance(difference, UnreadableSpec):
        counts = dict.fromkeys(("added", "removed", "unchanged"))
        listed: dict[str, list[Any]] = {"added_trials": [], "removed_trials": []}
        return {"previous": difference.previous, "problems": difference.problems, **counts, **listed}
    return {
        "previous": difference.previous,
        "problems": [],
        "added": len(difference.added),
        "removed": len(difference.removed),
        "unchanged": difference.unchanged,
        "added_trials": _trials(difference.added[:MAX_TRIALS]),
        "removed_trials": _trials(difference.removed[:MAX_TRIALS]),
    }


def _trials(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    return [
        {"trial": trial.id, "configuration": dict(trial.assignment), "replicate": trial.replicate}
        for trial in trials
    ]


def _mapping_text(mapping: StartMapping) -> str:
    parts = [f"{there} as {here}" for there, here in mapping.renamed.items()]
    parts += [f"{name} = {value!r}" for name, value in mapping.values.items()]
    parts += [f"without {name}" for name in mapping.ignored]
    return f"{mapping.sweep} is read with {', '.join(parts)}"
