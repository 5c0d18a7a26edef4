"""`sweep validate`: read specs and settings, tell every problem."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator import search
from generator.commands import scripts
from generator.commands.foreseen import whole
from generator.commands.workspace import Workspace
from generator.plan import Ahead
from generator.problems import Problem
from generator.search import Expansion
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Read:
    """The specs that are right, with their assignments, and the problems of the others."""

    sweeps: tuple[tuple[Sweep, Expansion], ...]
    problems: tuple[Problem, ...]


def read(workspace: Workspace, names: Iterable[str] = ()) -> Read:
    """Read specs by sweep name or path, all of `sweeps/` if none is named; a bad one hides no good one."""
    sweeps: list[tuple[Sweep, Expansion]] = []
    problems: list[Problem] = []
    for path in workspace.spec_paths(names):
        sweep = workspace.parse(path)
        found = search.explore(sweep) if isinstance(sweep, Sweep) else sweep
        if isinstance(sweep, Sweep) and isinstance(found, Expansion):
            sweeps.append((sweep, found))
        elif not isinstance(found, Expansion):
            problems += found
    return Read(tuple(sweeps), tuple(problems))


@dataclass(frozen=True)
class Validated:
    """The specs that are right, with their number of trials or its bounds, and the problems of the others."""

    sweeps: tuple[tuple[Sweep, int | Ahead], ...]
    problems: tuple[Problem, ...]


def validate(workspace: Workspace, names: Iterable[str] = ()) -> Validated:
    """Read specs, and warn of programs that the work tree lacks."""
    found = read(workspace, names)
    warnings = [
        problem
        for sweep, expansion in found.sweeps
        for problem in (*sweep.warnings, *expansion.warnings, *scripts.lacking_here(workspace, sweep))
    ]
    sizes = tuple((sweep, _size(sweep, expansion)) for sweep, expansion in found.sweeps)
    return Validated(sizes, tuple(sorted([*workspace.settings.warnings, *found.problems, *warnings])))


def _size(sweep: Sweep, expansion: Expansion) -> int | Ahead:
    if sweep.search is not None:
        return whole(sweep, sweep.search)
    return len(expansion.assignments) * sweep.replicates
