"""Write the repository's files as this version does.

These are the pinned version and the platform; batches never change.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sweepledger import __version__, storage
from sweepledger.cli.options import flag
from sweepledger.cli.response import EXIT_DRIFT, Response
from sweepledger.controllers import GITOPS
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold import bootstrap
from sweepledger.render.platform import manual_setup
from sweepledger.repo import base_files, batches, files, git
from sweepledger.repo.inputs import PlatformFiles, read_bootstrap
from sweepledger.structs.platform import CLUSTERS, DEFAULT_HOST, WITH_WORKFLOWS, platform_folder

PIN = re.compile(r"^(sweepledger(?:\[[a-z,]+\])?==)\S+", re.MULTILINE)
BRANCH = f"sweepledger/upgrade-{__version__}"
"""The branch of the pull request."""


def upgrade(
    workspace: Workspace,
    check: bool = flag("--check", "Write nothing; exit with 5 if anything is due."),
    push: bool = flag("--push", "Push what is due as a new branch, for a pull request; write nothing here."),
) -> Response:
    if check and push:
        raise UsageError("--push cannot be combined with --check")
    result = propose_upgrade(workspace) if push else upgrade_files(workspace, check=check)
    verb = "due" if check else "committed" if push else "wrote"
    lines = [f"{verb}: {path}" for path in result.written]
    lines += [f"kept {path}: edited manually" for path in result.kept]
    lines += [f"next: {step}" for step in result.steps] if result.written else ["everything is up to date"]
    if result.branch:
        lines.append(f"pushed branch {result.branch}: open a pull request from it")
    return Response(result, tuple(lines), exit_code=EXIT_DRIFT * (check and bool(result.written)))


@dataclass(frozen=True)
class Upgraded:
    """The written or due files, and the remaining manual steps."""

    version: str
    written: tuple[str, ...]
    kept: tuple[str, ...]
    """Files of the platform that were edited by hand."""
    steps: tuple[str, ...]
    branch: str | None = None
    """The branch that was pushed for a pull request."""
    commit: str | None = None


def upgrade_files(workspace: Workspace, *, check: bool = False) -> Upgraded:
    """Write the pinned version and the platform as this version does; with `check`, only return the changes.

    Raises RepositoryError if `clusters/` or the pinned version cannot be read, StorageError.
    """
    root = workspace.root
    hosts = (host for host in WITH_WORKFLOWS.values() if os.path.lexists(root / host.pin_file))
    pin_file = next(hosts, DEFAULT_HOST).pin_file
    files.refuse_links(root, pin_file, CLUSTERS)
    pinned = _new_pin(root, pin_file)
    platform, kept = _platform(workspace, check=check)
    if pinned is not None and not check:
        storage.write_file(root / pin_file, pinned)
    written = (*([pin_file] if pinned is not None else []), *platform)
    return Upgraded(__version__, written, kept, tuple(_steps(workspace, written)))


def propose_upgrade(workspace: Workspace) -> Upgraded:
    """Push a commit with the due changes as a new branch of the remote, on top of the branch that controllers follow.

    The work tree stays as it is. Raises UsageError if
    the remote has the branch already, RepositoryError, StorageError.
    """
    repository, settings = workspace.repository, workspace.settings
    workspace.remote_url()
    base = git.fetch(repository, workspace.remote, settings.git.branch)
    with at_commit.checked_out(repository, base) as folder:
        inner = Workspace.find(folder)
        upgraded = upgrade_files(inner)
        entries = git.work_tree_entries(inner.repository, git.uncommitted_paths(inner.repository))
        removed = frozenset(path for path in upgraded.written if not (folder / path).exists())
    if not upgraded.written:
        return upgraded
    steps = "".join(f"- {step}\n" for step in upgraded.steps)
    change = git.Change(f"Upgrade sweepledger to {__version__}\n\n{steps}", removes=removed, entries=entries)
    exists = BRANCH in git.remote_branches(repository, workspace.remote, BRANCH.rpartition("/")[0])
    commit = None if exists else git.push_proposal(repository, workspace.remote, BRANCH, base, change)
    if commit is None:
        raise UsageError(
            f"{workspace.remote} has a branch {BRANCH} already",
            hint=f"merge it, or `git push {workspace.remote} --delete {BRANCH}` and try again",
        )
    return replace(upgraded, branch=BRANCH, commit=commit)


def _new_pin(root: Path, pin_file: str) -> bytes | None:
    """Return the new file that pins the version for checks; None if it is up to date or missing."""
    if not (root / pin_file).is_file():
        return None
    try:
        before = files.read_input(root / pin_file).decode()
    except UnicodeDecodeError as error:
        raise RepositoryError(f"{pin_file}: must be text in UTF-8", hint="restore it from git") from error
    after = PIN.sub(rf"\g<1>{__version__}", before)
    return None if after == before else after.encode()


def _platform(workspace: Workspace, *, check: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the platform's due files and its edited files; write the due files unless `check`."""
    settings = workspace.settings
    recorded = read_bootstrap(workspace.root)
    if recorded is None or settings.platform.controller not in GITOPS:
        return (), ()
    if not check:
        made = bootstrap.bootstrap(workspace, bootstrap.BootstrapRequest(settings.platform.controller))
        return tuple(sorted((*made.written, *made.removed))), made.kept
    bases = base_files.missing_bases(workspace.root, bootstrap.PLATFORM_BASES)
    source = bootstrap.recorded_source(recorded)
    stored = batches.in_work_tree(workspace.root)
    active = batches.readable(batch for batch in stored if batch.is_active)
    existing = PlatformFiles.read(workspace.root, CLUSTERS)
    compared = bootstrap.compare_platform(existing, settings, source, recorded, active)
    return tuple(sorted((*bases, *compared.missing, *compared.changed, *compared.stale))), compared.edited


def _steps(workspace: Workspace, written: tuple[str, ...]) -> list[str]:
    steps = []
    if manual_setup.HOOK_FILE in written:
        steps.append(
            f"first install {manual_setup.HOOK_FILE} on the git server: the old hook may refuse the new collector"
        )
    for pin_file in {host.pin_file for host in WITH_WORKFLOWS.values()}.intersection(written):
        lock = f"{pin_file.removesuffix('.in')}.lock"
        command = f"uv pip compile --generate-hashes --universal {pin_file} --output-file {lock}"
        steps.append(f"lock the hashes of the new version: {command}")
    if "collector" in workspace.settings.trials.images:
        steps.append("pin the collector's image of the new version: sweep cluster pin collector --tag TAG")
    steps.append("check the change and merge it: sweep check")
    if commands := tuple(_apply_commands(workspace, written)):
        steps.append(f"then apply what no controller applies: {'; '.join(commands)}")
    return steps


def _apply_commands(workspace: Workspace, written: tuple[str, ...]) -> Iterator[str]:
    """Yield the commands that apply changed files of the platform, as in `clusters/README.md`."""
    recorded = read_bootstrap(workspace.root)
    if recorded is None:
        return
    source = bootstrap.recorded_source(recorded)
    for settings in workspace.settings.in_clusters:
        cluster, controller = settings.fleet.cluster, settings.platform.controller
        place = platform_folder(cluster)
        here = "" if cluster is None else f"in cluster {cluster}, "
        own = GITOPS[controller]
        there = f"in the cluster of {own.title}, " if own.is_remote(settings.platform) else here
        if own.field_manager is None and any(path.startswith(f"{place}/platform/") for path in written):
            yield f"{here}{manual_setup.apply_platform_command(cluster, controller, source)}"
        if any(path.startswith(f"{place}/{controller.value}/") for path in written):
            yield f"{there}{manual_setup.apply_controller_command(cluster, controller, source)}{own.apply_options}"
