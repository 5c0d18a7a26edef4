"""`sweep validate`: read specs and settings, tell every problem."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator import search
from generator.commands.workspace import Workspace
from generator.problems import Problem
from generator.search import Expansion
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Validated:
    """The specs that are right, with their number of trials, and the problems of the others."""

    sweeps: tuple[tuple[Sweep, int], ...]
    problems: tuple[Problem, ...]


def validate(workspace: Workspace, names: Iterable[str] = ()) -> Validated:
    """Read specs by sweep name or path; all of `sweeps/` if none is named."""
    sweeps: list[tuple[Sweep, int]] = []
    problems: list[Problem] = []
    for path in workspace.spec_paths(names):
        sweep = workspace.parse(path)
        found = search.explore(sweep) if isinstance(sweep, Sweep) else sweep
        if isinstance(sweep, Sweep) and isinstance(found, Expansion):
            sweeps.append((sweep, len(found.assignments) * sweep.replicates))
            problems += [*sweep.warnings, *found.warnings]
        elif not isinstance(found, Expansion):
            problems += found
    return Validated(tuple(sweeps), tuple(sorted(problems)))
