"""`sweep check`: everything that must hold before a merge, in one run."""

from dataclasses import dataclass

from generator.commands.checks import (
    announced,
    builds,
    drift,
    frozen,
    guarded,
    layout,
    proven,
    standing,
)
from generator.commands.checks.builds import Builds
from generator.commands.checks.scene import Scene
from generator.commands.workspace import Workspace
from generator.problems import Problem


@dataclass(frozen=True)
class Checked:
    """What was looked at and what was found."""

    specs: int
    builds: Builds
    problems: tuple[Problem, ...]


def check(workspace: Workspace, *, base: str | None = None, everything: bool = False) -> Checked:
    """Validate specs, drift, standing batches, history, frozen bases, kustomize builds, rendered manifests.

    What equals the base commit is believed unless `everything` is asked for. Raises SpecError if a spec is
    wrong; all else that is wrong is among the problems.
    """
    scene = Scene(workspace, workspace.standing(base))
    problems = list(layout.check(scene))
    if problems:  # nothing is opened through a link
        return Checked(0, Builds(), tuple(sorted(problems)))
    paths = workspace.spec_paths()
    sweeps = workspace.sweeps(str(path) for path in (paths if everything else proven.unproven(scene, paths)))
    problems += standing.check(scene, sweeps)
    problems += frozen.check(scene)
    if problems:  # a plan over edited batches, or their history, would only repeat what was just said
        problems += guarded.check(scene, sweeps, places=guarded.RECORDED)
    else:
        problems += drift.check(scene, sweeps)
        problems += guarded.check(scene, sweeps)
    problems += announced.check(scene)
    built = builds.check(scene, everything=everything)
    return Checked(len(paths), built, tuple(sorted([*problems, *built.problems])))
