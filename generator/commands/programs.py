"""Which program a sweep's next batch runs: the locked one as long as it answers the spec, else today's."""

from generator.commands.workspace import Workspace
from generator.errors import RepositoryError
from generator.repo.git import Repository, uncommitted
from generator.structs.program import Code, Data, Program
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep

UNKNOWN_TREE = ""
"""Stands for the code's tree where only the rest of a program matters."""


def asked_for(workspace: Workspace, sweep: Sweep, *, tree: str = UNKNOWN_TREE) -> Program:
    """Say what program the spec and the settings ask for today, given the code's tree."""
    return _asked_for(workspace.settings, sweep, tree)


def _asked_for(settings: Settings, sweep: Sweep, tree: str) -> Program:
    run = sweep.run
    dataset = None if run.data is None else settings.datasets[run.data]
    return Program(
        image=settings.image_of(run.image),
        command=sweep.command,
        code=Code(run.code_path, tree),
        data=None if dataset is None else Data(dataset.name, dataset.identity),
    )


def current(workspace: Workspace, sweep: Sweep) -> Program:
    """Take today's program. Raises RepositoryError unless the code is committed as it lies there."""
    path = sweep.run.code_path
    head = workspace.repository.commit("HEAD")
    if head is None:
        raise RepositoryError(
            "nothing is committed yet, so no code can be locked", hint="commit the code first"
        )
    dirty = uncommitted(workspace.repository, path)
    if dirty:
        shown = ", ".join(dirty[:3]) + (" …" if len(dirty) > 3 else "")  # noqa: PLR2004 - enough to find them
        raise RepositoryError(
            f"{path}/ has uncommitted changes ({shown}): a batch runs committed code only",
            hint=f"commit or stash them, then run this again (`git status {path}`)",
        )
    tree = workspace.repository.tree_id(head, path)
    if tree is None:
        raise RepositoryError(
            f"{path}/ is not a folder in the last commit, so no code can be locked",
            hint=f"commit it, or say where the code lies: `run: {{code: {{path: …}}}}` in {sweep.path}",
        )
    return asked_for(workspace, sweep, tree=tree)


def locked(workspace: Workspace, sweep: Sweep, newest: Program | None) -> Program:
    """Keep the newest batch's program while it answers the spec; else lock today's."""
    return _kept(workspace.settings, sweep, newest) or current(workspace, sweep)


def locked_at(
    repository: Repository, commit: str, settings: Settings, sweep: Sweep, newest: Program | None
) -> Program:
    """Keep the newest batch's program likewise, else lock the code of a commit. Raises RepositoryError."""
    kept = _kept(settings, sweep, newest)
    if kept is not None:
        return kept
    path = sweep.run.code_path
    tree = repository.tree_id(commit, path)
    if tree is None:
        raise RepositoryError(
            f"{path}/ is not a folder in {commit[:12]}, so no code can be locked",
            hint=f"commit it, or say where the code lies: `run: {{code: {{path: …}}}}` in {sweep.path}",
        )
    return _asked_for(settings, sweep, tree)


def _kept(settings: Settings, sweep: Sweep, newest: Program | None) -> Program | None:
    named = sweep.run.image is not None
    wanted = _asked_for(settings, sweep, UNKNOWN_TREE)
    return newest if newest is not None and newest.answers(wanted, image_named=named) else None
