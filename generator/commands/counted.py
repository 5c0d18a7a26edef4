"""The attempt of a trial that counts, by the records that lie in the work tree."""

from dataclasses import dataclass

from generator.commands import ledger, recorded
from generator.commands.ledger import Found
from generator.commands.workspace import Workspace
from generator.formats.summary import SummaryRow
from generator.results import judge
from generator.structs.record import Record


@dataclass(frozen=True)
class Counted:
    """A trial, in the batch whose attempt counts."""

    found: Found
    row: SummaryRow | None
    """None while it is not recorded."""
    record: Record | None
    """None where no attempt left one."""


def counted(workspace: Workspace, trial: str) -> Counted:
    """Find a trial and its attempt. Raises UsageError, RepositoryError."""
    found = ledger.find(workspace, trial)
    row = row_of(workspace, found)
    # Of a trial that was asked for more than once, the batch whose attempt counts.
    matches = (one for one in ledger.matches(workspace, found.sweep, found.id, []) if one.id == found.id)
    one = next((one for one in matches if row and one.batch.name == row.batch), found)
    path = recorded.records_file(one.batch)
    place = workspace.root / path
    content = {path: place.read_bytes()} if place.is_file() else {}
    outcome = judge(recorded.results(one.batch, content)).outcomes[one.index]
    return Counted(one, row, outcome.record)


def row_of(workspace: Workspace, found: Found) -> SummaryRow | None:
    """Give a trial's row of the summary; None while it is not recorded. Raises RepositoryError."""
    summary = ledger.summary(workspace, found.sweep)
    program = found.batch.lock.program.digest
    rows = summary.rows if summary else ()
    return next((one for one in rows if one.trial == found.id and one.program == program), None)
