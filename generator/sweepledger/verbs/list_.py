"""List the sweeps, the last changed first.

For each: how many of its trials have ended, its best value and trial, and the day of its last change in git.
"""

from datetime import UTC, datetime
from typing import Any

from sweepledger.cli.response import Response
from sweepledger.cli.text.style import filled_table
from sweepledger.operations.reports.status import TrialState, sweep_statuses
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.git import commits
from sweepledger.repo.state import state_folder
from sweepledger.structs.names import RESULTS, SPECS
from sweepledger.verbs.status import best_text


def list_(workspace: Workspace) -> Response:
    # By sweep, the date of the last commit that changed its spec or results.
    changed: dict[str, datetime] = {}
    for commit in commits(workspace.repository, SPECS, RESULTS):
        for path in commit.files:
            folder, _, rest = path.partition("/")
            sweep = rest.partition("/" if folder == RESULTS else ".")[0]
            changed[sweep] = datetime.fromisoformat(commit.date)
    statuses = sweep_statuses(workspace, state=state_folder(workspace.repository, None))
    now = datetime.now(UTC)  # of what no commit has
    newest = sorted(statuses, key=lambda status: changed.get(status.sweep, now), reverse=True)
    sweeps: list[dict[str, Any]] = [
        {
            "sweep": status.sweep,
            "trials": status.trials,
            "ended": status.trials - sum(status.counts[state] for state in OPEN_STATES),
            "best": status.best,
            "front": status.front,
            "changed": changed[status.sweep].date().isoformat() if status.sweep in changed else None,
        }
        for status in newest
    ]
    rows = (
        (
            each["sweep"],
            f"{each['ended']} of {each['trials']}",
            best_text(status),
            each["changed"] or "not committed",
        )
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
