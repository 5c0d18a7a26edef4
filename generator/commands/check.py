"""`sweep check`: everything that must hold before a merge, in one run."""

from dataclasses import dataclass

from generator.commands.checks import builds, drift, standing
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
    """Validate specs, drift, standing batches, frozen bases, kustomize builds and rendered manifests.

    Raises SpecError if a spec is wrong; all else that is wrong is among the problems.
    """
    sweeps = workspace.sweeps()
    scene = Scene(workspace, workspace.standing(base))
    problems = list(standing.check(scene))
    if not problems:  # a plan over edited batches would only repeat what was just said
        problems += drift.check(scene, sweeps)
    built = builds.check(scene, everything=everything)
    return Checked(len(sweeps), built, tuple(sorted([*problems, *built.problems])))
