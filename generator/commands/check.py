"""`sweep check`: everything that must hold before a merge, in one run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.commands.checks import (
    announced,
    builds,
    drift,
    frozen,
    guarded,
    layout,
    platform,
    proven,
    settled,
    standing,
)
from generator.commands.checks.builds import Builds
from generator.commands.checks.scene import Scene
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.plan import Room, room
from generator.problems import Problem, Severity
from generator.repo import git
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Checked:
    """What was looked at and what was found."""

    specs: int
    builds: Builds
    problems: tuple[Problem, ...]
    rooms: tuple[tuple[str, Room], ...] = ()
    """What each new batch takes of its pool, by the batch's name."""
    untracked: tuple[str, ...] = ()
    """Files and folders that were looked at and that git does not have: a merge would be without them."""


def check(
    workspace: Workspace, *, base: str | None = None, everything: bool = False, month: str | None = None
) -> Checked:
    """Validate specs, drift, standing batches, history, frozen bases, kustomize builds, rendered manifests.

    What equals the base commit is believed unless `everything` is asked for. Raises SpecError if a spec is
    wrong; all else that is wrong is among the problems.
    """
    scene = Scene(workspace, workspace.standing(base), month)
    problems = list(layout.check(scene)) or list(drift.illegible(scene))
    if problems:  # nothing is opened through a link
        return Checked(0, Builds(), tuple(sorted(problems)))
    paths = workspace.spec_paths()
    sweeps = workspace.read(paths if everything else proven.unproven(scene, paths))
    problems += settled.check(scene)
    found = [*standing.check(scene, sweeps), *frozen.check(scene)]
    problems += found
    if any(
        problem.severity is Severity.ERROR for problem in found
    ):  # a plan over edited batches, or their history, would only repeat what was just said
        problems += guarded.check(scene, sweeps, places=guarded.RECORDED)
    else:
        problems += drift.check(scene, sweeps)
        problems += guarded.check(scene, sweeps)
    problems += announced.check(scene)
    problems += platform.check(scene, sweeps)
    built = builds.check(scene, everything=everything)
    rooms = tuple(_rooms(scene, sweeps))
    untracked = git.untracked(workspace.repository, SETTINGS_FILE, *layout.OURS)
    return Checked(len(paths), built, tuple(sorted([*problems, *built.problems])), rooms, untracked)


def _rooms(scene: Scene, sweeps: Iterable[Sweep]) -> Iterator[tuple[str, Room]]:
    """Work out what the batches take that a merge would start: the last look before it is paid for."""
    asked = {sweep.name: sweep for sweep in sweeps}
    for batch in scene.added:
        if batch.is_active and batch.lock.sweep in asked:
            found = room(asked[batch.lock.sweep], batch.lock.trials)
            if found is not None:
                yield batch.name, found
