"""`sweep upgrade`: a repository's files as this version writes them. Merged batches and existing bases never change."""

import re
from dataclasses import dataclass

from sweepledger import __version__, storage
from sweepledger.commands.repository import base_files
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.scaffold import bootstrap
from sweepledger.repo import files
from sweepledger.structs.settings import Controller

PIN_FILE = ".github/sweep.in"
LOCK_FILE = ".github/sweep.lock"
HOOK_FILE = "clusters/pre-receive.sh"
PIN = re.compile(r"^(sweepledger(?:\[[a-z,]+\])?==)\S+", re.MULTILINE)
LOCK_COMMAND = f"uv pip compile --generate-hashes --universal {PIN_FILE} --output-file {LOCK_FILE}"


@dataclass(frozen=True)
class Upgraded:
    """What was written, or is due, and what remains to be done by hand."""

    version: str
    written: tuple[str, ...]
    kept: tuple[str, ...]
    """Files of the platform that were edited by hand."""
    steps: tuple[str, ...]


def upgrade(workspace: Workspace, *, check: bool = False) -> Upgraded:
    """Write what this version writes otherwise: the pinned version and the platform; with `check` only return it.

    Raises RepositoryError if `clusters/` cannot be read, StorageError.
    """
    root = workspace.root
    files.refuse_links(root, PIN_FILE, bootstrap.CLUSTERS_FOLDER)
    pinned = _new_pin(workspace)
    platform, kept = _platform(workspace, check=check)
    if pinned is not None and not check:
        storage.write_file(root / PIN_FILE, pinned)
    written = (*([PIN_FILE] if pinned is not None else []), *platform)
    return Upgraded(__version__, written, kept, tuple(_steps(workspace, written)))


def _new_pin(workspace: Workspace) -> bytes | None:
    """Return the file that pins the version that checks; None if it is up to date, or not there."""
    path = workspace.root / PIN_FILE
    if not path.is_file():
        return None
    before = files.read_input(path).decode()
    after = PIN.sub(rf"\g<1>{__version__}", before)
    return None if after == before else after.encode()


def _platform(workspace: Workspace, *, check: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the platform's files that are due, and those that were edited; write the former unless `check`."""
    settings = workspace.settings
    recorded = bootstrap.read_bootstrap(workspace.root)
    if recorded is None or settings.controller not in {Controller.ARGOCD, Controller.FLUX}:
        return (), ()
    if not check:
        made = bootstrap.bootstrap(workspace, bootstrap.BootstrapRequest(settings.controller))
        return tuple(sorted((*made.written, *made.removed))), made.kept
    bases = base_files.missing_bases(workspace.root, bootstrap.PLATFORM_BASES)
    source = bootstrap.recorded_source(recorded)
    compared = bootstrap.compare_platform(workspace.root, settings, source, recorded)
    return tuple(sorted((*bases, *compared.missing, *compared.changed, *compared.stale))), compared.edited


def _steps(workspace: Workspace, written: tuple[str, ...]) -> list[str]:
    steps = []
    if HOOK_FILE in written:
        steps.append(
            f"first install {HOOK_FILE} on the git server: the old hook may refuse the new collector"
        )
    if PIN_FILE in written:
        steps.append(f"lock the hashes of the new version: {LOCK_COMMAND}")
    if "collector" in workspace.settings.images:
        steps.append("pin the collector's image of the new version: sweep pin collector --tag TAG")
    return [*steps, "check the change and merge it: sweep check"]
