"""`sweep update`: take today's code, image and data into a sweep."""

from generator.commands.generate import Generated, plan, write
from generator.commands.workspace import Workspace


def update(workspace: Workspace, name: str, *, base: str | None = None) -> Generated:
    """Write a batch that asks for every trial of the spec under today's program.

    Nothing is written where today's program is the locked one. Raises as generate does.
    """
    planned = plan(workspace, workspace.sweeps([name]), base=base, update=True)
    write(workspace, planned)
    return planned[0]
