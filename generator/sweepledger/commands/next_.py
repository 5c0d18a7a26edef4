"""`sweep next`: the next round of each search, a function of the spec and the records in git."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.commands import generate, onward
from generator.commands.collect import Target
from generator.commands.generate import Generated
from generator.commands.onward import Pushed
from generator.commands.rounds import Due, Over, Step, Waiting
from generator.commands.searching import Blocked
from generator.commands.workspace import Workspace
from generator.errors import IdleError, UsageError
from generator.problems import Problem, Severity
from generator.structs.record import Status
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Followed:
    """What follows in one search, and where it is asked for."""

    name: str
    step: Step | Blocked
    generated: Generated | None = None
    """Where the work tree has it now, or would have it."""
    pushed: Pushed | None = None

    @property
    def is_over(self) -> bool:
        """Tell whether the search asks for nothing more."""
        return isinstance(self.step, Over)

    @property
    def is_missing(self) -> bool:
        """Tell whether a round is due that the work tree does not hold."""
        return self.generated is not None and self.generated.is_pending

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Give what a person should know before the round is merged."""
        warnings = self.generated.warnings if self.generated else ()
        return (*warnings, *engine_changed(self.step))


def next_(
    workspace: Workspace, names: Iterable[str] = (), *, check: bool = False, base: str | None = None
) -> tuple[Followed, ...]:
    """Write the next round of each search, or of all; with `check` only say what follows.

    Raises IdleError where there is no search, UsageError for a sweep that is none, SpecError,
    RepositoryError; nothing is written then.
    """
    planned = generate.plan(workspace, _searches(workspace, names), base=base, onward=True)
    if not check:
        generate.write(workspace, planned)
    return tuple(Followed(one.sweep.name, one.step, one) for one in planned if one.step is not None)


def push(workspace: Workspace, target: Target, names: Iterable[str] = ()) -> tuple[Followed, ...]:
    """Ask for the next round of each search by a commit on the branch that is followed.

    What counts is what stands there; the work tree is not touched. Raises as `next_` does, ContentionError.
    """
    return tuple(_pushed(target, sweep) for sweep in _searches(workspace, names))


def _pushed(target: Target, sweep: Sweep) -> Followed:
    found = onward.push(
        target.repository, target.remote, target.branch, sweep.name, is_reviewed=target.is_reviewed
    )
    if found is None:
        first = f"`sweep generate {sweep.name}` writes its first round"
        return Followed(sweep.name, Blocked(sweep.name, f"no batch of it is on {target.branch} yet", first))
    if isinstance(found, Pushed):
        return Followed(sweep.name, found.due, pushed=found)
    return Followed(sweep.name, found)


def _searches(workspace: Workspace, names: Iterable[str]) -> tuple[Sweep, ...]:
    chosen = tuple(names)
    found = workspace.sweeps(chosen)
    for sweep in found if chosen else ():
        if sweep.search is None:
            raise UsageError(
                f"{sweep.name} has no rounds: its method is {sweep.blocks[0].method}",
                hint=f"`sweep generate {sweep.name}` asks for all of its trials",
            )
    searches = tuple(sweep for sweep in found if sweep.search is not None)
    if not searches:
        raise IdleError("no sweep here goes by rounds", hint="a search has a method such as tpe")
    return searches


def engine_changed(step: Step | Blocked) -> Iterator[Problem]:
    """Warn where a round is drawn by another engine than those before: another version may draw otherwise."""
    if isinstance(step, Due):
        before = step.evidence.engines[-1:]
        if before and before != (step.round.engine,):
            message = (
                f"round {step.round.number} is drawn by {step.round.engine}, the one before by {before[0]}"
            )
            hint = "it goes on from the same records; only that version gives the rounds before once more"
            yield Problem(step.sweep.path, 0, 0, "", message, "engine-differs", hint, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much of the evidence was told to the engine, and as what."""

    told: str
    trials: int
    rounds: tuple[int, ...]
    """Empty: of other sweeps, or of an earlier program."""


TOLD_AS = {
    Status.OK: "as they are",
    Status.DIVERGED: "as bad",
    Status.FAILED: "as failed",
    Status.MISSING: "not at all",
}


def weighed(step: Due | Waiting | Over) -> tuple[Weighed, ...]:
    """Count what is recorded by how it weighs, the search's own trials before those of a warm start."""
    groups: dict[tuple[bool, str], list[int | None]] = {}
    for one in step.evidence.observations:
        key = (one.round is None, TOLD_AS.get(one.status, "with their last value"))
        groups.setdefault(key, []).append(one.round)
    return tuple(
        Weighed(told, len(rounds), tuple(sorted({number for number in rounds if number is not None})))
        for (_, told), rounds in sorted(groups.items())
    )
