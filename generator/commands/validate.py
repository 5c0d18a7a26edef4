"""`sweep validate`: read specs and settings, tell every problem."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator.commands.workspace import Workspace
from generator.problems import Problem
from generator.search.grid import size
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Validated:
    """The specs that are right, with their number of trials, and the problems of the others."""

    sweeps: tuple[tuple[Sweep, int], ...]
    problems: tuple[Problem, ...]


def validate(workspace: Workspace, names: Iterable[str] = ()) -> Validated:
    """Read specs by sweep name or path; all of `sweeps/` if none is named."""
    read = [workspace.parse(path) for path in workspace.spec_paths(names)]
    return Validated(
        sweeps=tuple((sweep, size(sweep.space)) for sweep in read if isinstance(sweep, Sweep)),
        problems=tuple(sorted(problem for found in read if isinstance(found, tuple) for problem in found)),
    )
