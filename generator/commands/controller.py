"""What a controller must be told of each batch beside the folder: with Flux a file, else nothing.

Files of batches only: those of the platform are written by bootstrap.py, once. No controller is spoken to.
"""

from generator.commands.workspace import Workspace
from generator.render.platform import flux
from generator.repo import files
from generator.structs.settings import Controller, Settings


def wanted(settings: Settings, batch: str) -> dict[str, bytes]:
    """Give the files that make the controller run an active batch, by their path in the repository."""
    if settings.controller is not Controller.FLUX:
        return {}
    return {flux.batch_file(batch): flux.batch_kustomization(batch, settings)}


def is_announced(workspace: Workspace, batch: str) -> bool:
    """Tell whether the work tree holds them."""
    return all(
        (workspace.root / path).is_file() and (workspace.root / path).read_bytes() == content
        for path, content in wanted(workspace.settings, batch).items()
    )


def announce(workspace: Workspace, batch: str) -> None:
    """Write them. Raises StorageError."""
    for path, content in wanted(workspace.settings, batch).items():
        files.refuse_links(workspace.root, path)
        files.write_file(workspace.root / path, content)


def withdraw(workspace: Workspace, batch: str) -> None:
    """Remove them, whichever controller there is today. Raises StorageError."""
    path = flux.batch_file(batch)
    files.refuse_links(workspace.root, path)
    files.remove_file(workspace.root / path)
