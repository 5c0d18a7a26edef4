"""List the sweeps, the last changed first.

For each: how many of its trials have ended, its best value and trial, and the day of its last change in git.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sweepledger.cli.response import Response
from sweepledger.cli.text.style import filled_table
from sweepledger.operations.reports.recorded_status import BestValue
from sweepledger.operations.reports.status import SweepStatus, TrialState, sweep_statuses
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.git import commits
from sweepledger.repo.state import state_folder
from sweepledger.structs.names import RESULTS, SPECS
from sweepledger.verbs.status import best_text


@dataclass(frozen=True)
class ListedSweep:
    """A sweep in the list."""

    sweep: str
    trials: int
    ended: int
    """Trials that have a record, or ended without one."""
    best: BestValue | None
    """The best trial by the first metric."""
    front: tuple[str, ...]
    """The ids of the Pareto front, if there are several metrics."""
    changed: str | None
    """The day of the last commit that changed its spec or results; None if no commit has it."""


def list_(workspace: Workspace) -> Response:
    changed = dict(_last_changes(workspace))
    statuses = sweep_statuses(workspace, state=state_folder(workspace.repository, None))
    now = datetime.now(UTC)  # of what no commit has
    newest = sorted(statuses, key=lambda status: changed.get(status.sweep, now), reverse=True)
    sweeps = tuple(_listed(status, changed.get(status.sweep)) for status in newest)
    rows = (
        (each.sweep, f"{each.ended} of {each.trials}", best_text(status), (each.changed or "not committed"))
        for each, status in zip(sweeps, newest, strict=True)
    )
    table = filled_table(("sweep", "ended", "best", "changed"), rows)
    first = "there is no sweep yet; `sweep new` writes one"
    return Response({"sweeps": sweeps}, (table if sweeps else first,))


OPEN_STATES = (
    TrialState.PLANNED,
    TrialState.PENDING,
    TrialState.RUNNING,
    TrialState.PAUSED,
    TrialState.INTERRUPTED,
)


def _listed(status: SweepStatus, changed: datetime | None) -> ListedSweep:
    unfinished = sum(status.counts[state] for state in OPEN_STATES)
    return ListedSweep(
        status.sweep,
        status.trials,
        status.trials - unfinished,
        status.best,
        status.front,
        None if changed is None else changed.date().isoformat(),
    )


def _last_changes(workspace: Workspace) -> Iterator[tuple[str, datetime]]:
    """Yield each sweep with the date of a commit that changed its spec or results, the last commit at the end."""
    for commit in commits(workspace.repository, SPECS, RESULTS):
        for path in commit.files:
            folder, _, rest = path.partition("/")
            sweep = rest.partition("/" if folder == RESULTS else ".")[0]
            yield sweep, datetime.fromisoformat(commit.date)
