"""What follows in a search: another round, with its batch; nothing, with the reason; or nothing yet.

A function of the spec, the evidence and the number of the round, so whoever asks gets the same bytes.
"""

from dataclasses import dataclass

from generator.commands.batching import Asked, rendered
from generator.commands.evidence import Evidence
from generator.errors import RepositoryError
from generator.render.bases import Bases
from generator.render.overlay import Overlay
from generator.search.adaptive import Finished, Round, finished, next_round
from generator.structs.program import Program
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial


@dataclass(frozen=True)
class Due:
    """Another round is to be asked for."""

    evidence: Evidence
    round: Round
    trials: tuple[Trial, ...]
    batch: Overlay

    @property
    def sweep(self) -> Sweep:
        """The search."""
        return self.evidence.sweep


@dataclass(frozen=True)
class Waiting:
    """The next round is a function of results that are not there yet."""

    evidence: Evidence


@dataclass(frozen=True)
class Over:
    """The search asks for nothing more."""

    evidence: Evidence
    reason: str
    """A stable word: `rounds`, `run-cap`, `budget`, `target`, `patience`, `cancelled` …"""
    text: str


Step = Due | Waiting | Over


@dataclass(frozen=True, slots=True)
class Ground:
    """What a batch is rendered with."""

    program: Program
    bases: Bases
    settings: Settings


def following(evidence: Evidence, ground: Ground) -> Step:
    """Say what follows. Raises UsageError after a sweep's last possible batch, RepositoryError."""
    if evidence.waiting:
        return Waiting(evidence)
    ended = _cancelled(evidence)
    if ended is not None:
        return ended
    found = next_round(evidence.sweep, evidence.observations, number=evidence.rounds + 1)
    if isinstance(found, Finished):
        return Over(evidence, found.reason, found.text)
    asked = _asked(evidence, found, ground.program)
    return Due(evidence, found, asked.trials, rendered(asked, evidence.asked, ground.bases, ground.settings))


def over(evidence: Evidence) -> Over | None:
    """Say why a search is over, as far as that is known before its next round is drawn."""
    found = finished(evidence.sweep, evidence.observations, number=evidence.rounds + 1)
    told = None if found is None else Over(evidence, found.reason, found.text)
    return _cancelled(evidence) or told


def _cancelled(evidence: Evidence) -> Over | None:
    """A last batch that was cancelled ends a search, unless its trials are asked for again."""
    last = evidence.asked[-1].name if evidence.asked else None
    retried = {retry.batch for retry in evidence.sweep.retry}
    if last not in evidence.sweep.cancel or last in retried:
        return None
    return Over(evidence, "cancelled", f"{last} was cancelled, and nothing asks for its trials again")


def _asked(evidence: Evidence, found: Round, program: Program) -> Asked:
    sweep, digest = evidence.sweep, program.digest
    trials = tuple(
        Trial(suggestion.assignment, digest, replicate)
        for suggestion in found.suggestions
        for replicate in range(sweep.replicates)
    )
    _refuse_known(evidence, trials)
    # No spec has both parents and replicates, so a suggestion's place is its trial's row.
    parents = {row: one.parent for row, one in enumerate(found.suggestions) if one.parent is not None}
    return Asked(sweep, program, trials, found.number, found.engine, parents, evidence.stop)


def _refuse_known(evidence: Evidence, trials: tuple[Trial, ...]) -> None:
    """Stop before a trial of the sweep is paid for twice, or two share a name."""
    known = {row.trial for batch in evidence.asked for row in batch.rows}
    ids = [trial.id for trial in trials]
    if known & {*ids} or len({*ids}) < len(ids):
        twice = next(one for one in ids if one in known or ids.count(one) > 1)
        raise RepositoryError(
            f"round {evidence.rounds + 1} of {evidence.sweep.name} would ask for {twice} once more",
            hint="change any value of the spec, or its seed; and please report this",
        )
