"""Show the history of sweeps in git.

It lists specs, batches, results, and the best metric with its changes. With --last and without a name, only the
last commits are read, so that the time does not grow with the history.
"""

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from sweepledger.cli.options import OptionalSweepArgument, option
from sweepledger.cli.response import SHORT_COMMIT, Response
from sweepledger.errors import RepositoryError
from sweepledger.operations.reports.history import history
from sweepledger.operations.repository import catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.problems import escape_line
from sweepledger.repo import batches
from sweepledger.repo.git import UNSHALLOW


def log(
    workspace: Workspace,
    name: OptionalSweepArgument = None,
    last: int | None = option("--last N", "Show only the last N entries.", min=1),
) -> Response:
    if workspace.repository.is_shallow:
        raise RepositoryError("this clone is shallow, so its history is cut off", hint=UNSHALLOW)
    entries = history(workspace.repository, last=last if name is None else None)
    if name is not None:
        present = catalog.sweep_names(workspace, batches.in_work_tree(workspace.root))
        sweep = catalog.choose_sweep(workspace.root, name, present | {entry.sweep for entry in entries})
        entries = tuple(entry for entry in entries if entry.sweep == sweep)
    entries = entries[-(last or 0) :]
    rows = [("commit", "date", "sweep", "what", "", "change")]
    for entry in entries:
        change = "" if entry.change is None else f"{entry.change:+.6g}"
        rows.append((entry.commit[:SHORT_COMMIT], entry.day, entry.sweep, entry.kind, entry.text, change))
    if len(rows) == 1:
        return Response({"entries": entries}, (f"there is no commit of {name or 'a sweep'} yet",))
    # Rich would measure each line that a cell might be folded to: a history has thousands of rows.
    cells = [[escape_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    head, *lines = ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in cells]
    return Response({"entries": entries}, (Text(head, "bold"), "\n".join(lines)))
