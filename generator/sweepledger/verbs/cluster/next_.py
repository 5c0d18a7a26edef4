"""Write the next round of each search.

It is computed from the spec, the records in git, and the seed. Exits with 6 if all searches have ended (with 0 for
--push, which workflows use). With `results.mode: branch`, --push creates a branch to merge.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion
from sweepledger.cli.options import BaseOption, argument, flag
from sweepledger.cli.response import EXIT_DRIFT, EXIT_SEARCH_ENDED, SHORT_COMMIT, Response
from sweepledger.cli.text.rounds import blocked_text
from sweepledger.cli.text.style import untrusted_text
from sweepledger.errors import GeneratorError, IdleError, UsageError
from sweepledger.operations.generation import next_batch
from sweepledger.operations.repository.workspace import Target, Workspace, results_target
from sweepledger.operations.rounds import next_round, round_commit
from sweepledger.problems import Problem, Severity
from sweepledger.repo.batches import ACTIVE
from sweepledger.search.encoding import encode_space
from sweepledger.spec import ParsedSpec
from sweepledger.structs.record import Status


def next_(
    workspace: Workspace,
    names: list[str] | None = argument(
        "[NAME]...", "Names of searches; default: all of sweeps/.", autocompletion=completion.sweeps
    ),
    check_only: bool = flag("--check", "Write nothing; exit with 5 if a due round is missing."),
    push: bool = flag("--push", "Commit on the remote's branch instead of writing to the work tree."),
    explain: bool = flag("--explain", "List the results that the round is computed from."),
    base: BaseOption = None,
) -> Response:
    if push and (check_only or base is not None):
        raise UsageError("--push cannot be combined with --check or --base")
    if push:
        steps = push_next(workspace, results_target(workspace, push=True), names or ())
    else:
        steps = write_next(workspace, names or (), check=check_only, base=base)
    branch = workspace.settings.git.branch
    warnings = [
        warning
        for step in steps
        for warning in (*(step.generated.warnings if step.generated else ()), *engine_warnings(step.step))
    ]
    code = EXIT_DRIFT * (check_only and any(step.is_missing for step in steps))
    # A workflow with nothing to commit has succeeded.
    if not push and all(isinstance(step.step, next_round.SearchEnded) for step in steps):
        code = EXIT_SEARCH_ENDED
    return Response(
        {"searches": [step.as_data(explain=explain) for step in steps]},
        tuple(line for step in steps for line in _lines(step, branch, explain=explain, check=check_only)),
        tuple(sorted(warnings)),
        code,
        tuple(step.failure for step in steps if step.failure is not None),
    )


@dataclass(frozen=True)
class SearchStep:
    """The next step of one search, and the path of its round."""

    name: str
    step: next_round.Step | next_round.RoundBlocked
    generated: next_batch.Generated | None = None
    """The round as planned or written to the work tree."""
    pushed: round_commit.PushedBatch | None = None

    @property
    def failure(self) -> GeneratorError | None:
        """Return the failure that blocks the search; None if nothing blocks it, or if the user wants no round."""
        step = self.step
        return step.error if isinstance(step, next_round.RoundBlocked) and step.exit_code else None

    @property
    def is_missing(self) -> bool:
        """Return whether a round is due that the work tree does not have."""
        return self.generated is not None and self.generated.is_pending

    def as_data(self, *, explain: bool) -> dict[str, Any]:
        """Return the JSON data; with `explain`, also the evidence."""
        step = self.step
        data: dict[str, Any] = {"name": self.name, **step.as_data()}
        if isinstance(step, next_round.RoundDue):
            data["written"] = self.generated is not None and not self.is_missing
            data["commit"] = self.pushed.commit if self.pushed else None
        if isinstance(step, next_round.RoundBlocked):
            return data
        data["foreign"] = [
            {
                "name": name,
                "format": foreign.format,
                "source": foreign.source,
                "digest": foreign.digest,
                "trials": len(foreign.trials),
            }
            for name, foreign in step.evidence.foreign.items()
        ]
        if explain:
            data["evidence"] = [
                {"trial": seen.id, "round": seen.round, "status": seen.status, "values": seen.values}
                for seen in step.evidence.observations
            ]
            data["evidence_by_use"] = evidence_weights(step)
        return data


def write_next(
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
    """Push the next round of each search to the branch that controllers follow; if rounds overlap, all due rounds.

    Only the branch is read; the work tree is not changed. Raises as `write_next` does, ContentionError.
    """
    steps: list[SearchStep] = []
    for name in (parsed.sweep.name for parsed in _searches(workspace, names)):
        *pushed, last = round_commit.push_batches(target, name, next_round.next_step_at)
        for round_ in pushed:
            assert isinstance(round_, round_commit.PushedBatch), "all but the last result are rounds"
            assert isinstance(round_.due, next_round.RoundDue)
            steps.append(SearchStep(name, round_.due, pushed=round_))
        if pushed:
            continue
        assert not isinstance(last, round_commit.PushedBatch | next_round.RepeatDue), "it is a step"
        if last is None and (tip := target.tip()) is not None:
            # A round that is due there is proposed already.
            last = next_round.next_step_at(target.repository, tip, name)
        first = f"`sweep generate {name}` writes its first round"
        unborn = next_round.RoundBlocked(name, f"no batch of it is on {target.branch} yet", first)
        steps.append(SearchStep(name, last or unborn))
    return tuple(steps)


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


def engine_warnings(step: next_round.Step | next_round.RoundBlocked) -> Iterator[Problem]:
    """Warn if a different engine version proposes this round: it may propose different trials."""
    if isinstance(step, next_round.RoundDue) and step.round.unfitted is None:
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


def evidence_weights(step: next_round.Step) -> tuple[EvidenceWeight, ...]:
    """Count the observations by their use, the search's own before those of a warm start."""
    groups: dict[tuple[bool, str], list[int | None]] = {}
    search = step.evidence.sweep.search
    space = encode_space(search.space) if search is not None and search.method.has_model else None
    for observation in step.evidence.observations:
        is_known = space is None or space.encode(observation.configuration) is not None
        use = WEIGHTS.get(observation.status, "with their last value") if is_known else "outside"
        key = (observation.round is None, use)
        groups.setdefault(key, []).append(observation.round)
    for trial in step.evidence.pending_trials:
        groups.setdefault((False, "as running"), []).append(trial.round)
    return tuple(
        EvidenceWeight(use, len(rounds), tuple(sorted({number for number in rounds if number is not None})))
        for (_, use), rounds in sorted(groups.items())
    )


SHORTEST_RANGE = 3
WEIGHT_TEXTS = {
    "as they are": "are used",
    "as bad": "count as bad",
    "as running": "have no result yet, and are avoided",
    "as failed": "count as failed",
    "not at all": "are ignored",
    "outside": "are ignored, because their values are not in the search space",
    "with their last value": "are used with their last value",
}
"""Text for each weight of evidence in the JSON of `sweep cluster next --explain`."""


def _lines(step: SearchStep, branch: str, *, explain: bool, check: bool) -> Iterator[RenderableType]:
    match step.step:
        case next_round.RoundDue() as due:
            head = f"round {due.round.number}: {due.batch.lock.trials} trials ({due.sweep.method}, {due.round.engine})"
            yield Text(f"{step.name}: {head}", "bold")
            yield f"  {_batch_text(step, due.batch.name, check=check)}"
            for name, foreign in due.evidence.foreign.items():
                yield untrusted_text(f"  with {foreign.label(name)}", "yellow")
            if due.round.unfitted is not None:
                yield Text(f"  at random, because {due.round.unfitted}", "yellow")
            if due.round.replaced:
                yield f"  {due.round.replaced} of them at random, because proposals broke a constraint"
        case next_round.ResultsPending(evidence=evidence):
            pending = f"results of {', '.join(evidence.pending)} are not on {branch} yet"
            yield f"{step.name}: pending: {pending if evidence.pending else evidence.awaited}"
        case next_round.SearchEnded(reason=reason, text=text):
            yield untrusted_text(f"{step.name}: ended: {reason}: {text}", "bold")
        case next_round.RoundBlocked() as blocked:
            if step.failure is None:  # which is printed as every failure
                yield untrusted_text(f"{step.name}: {blocked_text(blocked)}", "red")
            return
    if explain:
        yield from _evidence_lines(step.step)


def _batch_text(step: SearchStep, batch: str, *, check: bool) -> str:
    if step.pushed is not None:
        return f"added in {step.pushed.commit[:SHORT_COMMIT]}: {batch}"
    if step.generated is None:
        return f"proposed already: {batch}"
    verb = "unchanged" if step.generated.is_written else "missing" if check else "wrote"
    return f"{verb} {ACTIVE}/{batch}/"


def _evidence_lines(step: next_round.Step) -> Iterator[RenderableType]:
    for part in evidence_weights(step):
        rounds = _ranges_text(part.rounds)
        origin = f"round {rounds}" if len(part.rounds) == 1 else f"rounds {rounds}"
        yield f"  {part.trials} trials of {origin if rounds else 'a warm start'} {WEIGHT_TEXTS[part.use]}"
    if not step.evidence.observations:
        first = "" if step.evidence.batches else ": the first round is drawn from the search space alone"
        yield f"  no results yet{first}"


def _ranges_text(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text; three or more consecutive ones as a range, because a search has hundreds."""
    # Consecutive numbers differ from their places by the same amount.
    groups = groupby(enumerate(numbers), lambda placed: placed[1] - placed[0])
    spans = [[number for _, number in group] for _, group in groups]
    return ", ".join(
        f"{span[0]} to {span[-1]}" if len(span) >= SHORTEST_RANGE else ", ".join(map(str, span))
        for span in spans
    )
