"""`sweep cluster next`: the next round of each search, a function of the spec and the records in git."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sweepledger.commands.generation import next_batch
from sweepledger.commands.generation.next_batch import Generated
from sweepledger.commands.repository.workspace import Target, Workspace
from sweepledger.commands.rounds import round_commit
from sweepledger.commands.rounds.next_round import (
    ResultsPending,
    RoundBlocked,
    RoundDue,
    SearchEnded,
    Step,
    next_step_at,
)
from sweepledger.commands.rounds.round_commit import PushedRound
from sweepledger.errors import GeneratorError, IdleError, UsageError
from sweepledger.problems import Problem, Severity
from sweepledger.search.encoding import encode_space
from sweepledger.spec import ParsedSpec
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep


@dataclass(frozen=True)
class SearchStep:
    """The next step of one search, and where its round is written."""

    name: str
    step: Step | RoundBlocked
    generated: Generated | None = None
    """The round as planned or written to the work tree."""
    pushed: PushedRound | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the search has ended."""
        return isinstance(self.step, SearchEnded)

    @property
    def failure(self) -> GeneratorError | None:
        """Return what blocks the search; None if nothing does, or if the user wants no round."""
        return self.step.error if isinstance(self.step, RoundBlocked) and self.step.exit_code else None

    @property
    def is_missing(self) -> bool:
        """Return whether a round is due that the work tree does not have."""
        return self.generated is not None and self.generated.is_pending

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return warnings to read before the round is merged."""
        warnings = self.generated.warnings if self.generated else ()
        return (*warnings, *engine_warnings(self.step))


def next_(
    workspace: Workspace, names: Iterable[str] = (), *, check: bool = False, base: str | None = None
) -> tuple[SearchStep, ...]:
    """Write the next round of each search, or of all; with `check` only return the next steps.

    Raises IdleError if there is no search, UsageError for a sweep that is not a search, SpecError,
    RepositoryError; nothing is written then.
    """
    specs = _searches(workspace, names)
    planned = next_batch.plan_batches(workspace, specs, base=base, next_round=True)
    if not check:
        next_batch.write_batches(workspace, planned)
    return tuple(
        SearchStep(generated.sweep.name, generated.step, generated)
        for generated in next_batch.with_code_warnings(workspace, specs, planned)
        if generated.step is not None
    )


def push_next(workspace: Workspace, target: Target, names: Iterable[str] = ()) -> tuple[SearchStep, ...]:
    """Push the next round of each search to the branch that controllers follow; all that are due if rounds overlap.

    The branch decides; the work tree is not touched. Raises as `next_` does, ContentionError.
    """
    return tuple(
        step for search in _searches(workspace, names) for step in _push_search(target, search.sweep)
    )


def _push_search(target: Target, sweep: Sweep) -> Iterator[SearchStep]:
    """Push all rounds that are due; without one, yield the next step."""
    *pushed, last = round_commit.push_due_rounds(target, sweep.name)
    for round_ in pushed:
        assert isinstance(round_, PushedRound), "all but the last result are rounds"
        yield SearchStep(sweep.name, round_.due, pushed=round_)
    step = None if pushed else last or _next_step_now(target, sweep.name)
    if step is not None:
        assert not isinstance(step, PushedRound), "the last result is a step"
        yield SearchStep(sweep.name, step)
    elif not pushed:
        first = f"`sweep generate {sweep.name}` writes its first round"
        yield SearchStep(
            sweep.name, RoundBlocked(sweep.name, f"no batch of it is on {target.branch} yet", first)
        )


def _next_step_now(target: Target, sweep: str) -> Step | RoundBlocked | None:
    """Return the next step at the tip of the branch; a round that is due there is proposed already."""
    tip = target.tip()
    return None if tip is None else next_step_at(target.repository, tip, sweep)


def _searches(workspace: Workspace, names: Iterable[str]) -> tuple[ParsedSpec, ...]:
    selected = tuple(names)
    specs = workspace.specs(selected)
    with_rounds = {parsed.sweep.name for parsed in specs if parsed.sweep.rounds is not None}
    for sweep in (parsed.sweep for parsed in specs if selected):
        if sweep.name not in with_rounds:
            raise UsageError(
                f"{sweep.name} has no rounds: its method is {sweep.method}",
                hint=f"`sweep generate {sweep.name}` requests all of its trials",
            )
    searches = tuple(parsed for parsed in specs if parsed.sweep.name in with_rounds)
    if not searches:
        raise IdleError(
            "no sweep here has rounds", hint="a search has a method such as tpe, and rounds: {size: 8}"
        )
    return searches


def engine_warnings(step: Step | RoundBlocked) -> Iterator[Problem]:
    """Warn if a different engine version draws this round: it may draw other trials."""
    if isinstance(step, RoundDue) and step.round.unfitted is None:
        before = step.evidence.engines[-1:]
        if before and before != (step.round.engine,):
            message = (
                f"round {step.round.number} is drawn by {step.round.engine}, the one before by {before[0]}"
            )
            hint = "it goes on from the same records; only that version gives the rounds before once more"
            yield Problem(step.sweep.path, 0, 0, "", message, "engine-differs", hint, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class EvidenceWeight:
    """How a part of the evidence was used by the engine."""

    use: str
    trials: int
    rounds: tuple[int, ...]
    """Empty for other sweeps, and for an earlier program."""


WEIGHTS = {
    Status.OK: "as they are",
    Status.DIVERGED: "as bad",
    Status.FAILED: "as failed",
    Status.MISSING: "not at all",
}


PENDING = "as running"
"""The use of trials without results."""
OUTSIDE = "outside"
"""The use of trials that the model of a search cannot take: their values are not in its space."""


def evidence_weights(step: RoundDue | ResultsPending | SearchEnded) -> tuple[EvidenceWeight, ...]:
    """Count the observations by how they are used, the search's own before those of a warm start."""
    groups: dict[tuple[bool, str], list[int | None]] = {}
    search = step.evidence.sweep.search
    space = encode_space(search.space) if search is not None and search.method.is_sampler else None
    for observation in step.evidence.observations:
        is_known = space is None or space.encode(observation.configuration) is not None
        use = WEIGHTS.get(observation.status, "with their last value") if is_known else OUTSIDE
        key = (observation.round is None, use)
        groups.setdefault(key, []).append(observation.round)
    for trial in step.evidence.pending_trials:
        groups.setdefault((False, PENDING), []).append(trial.round)
    return tuple(
        EvidenceWeight(use, len(rounds), tuple(sorted({number for number in rounds if number is not None})))
        for (_, use), rounds in sorted(groups.items())
    )
