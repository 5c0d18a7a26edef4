"""`sweep validate`: read specs and settings, and report every problem."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweepledger import search
from sweepledger.commands.repository import programs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.rounds.method_warnings import method_warnings
from sweepledger.problems import Problem
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec
from sweepledger.structs.sweep import Sweep

if TYPE_CHECKING:
    from sweepledger.plan import RoundBounds


@dataclass(frozen=True)
class Validated:
    """The valid specs with their number of trials or its bounds, and the problems of the others."""

    sweeps: "tuple[tuple[Sweep, int | RoundBounds], ...]"
    problems: tuple[Problem, ...]


def read_specs(
    workspace: Workspace, names: Iterable[str]
) -> tuple[list[tuple[ParsedSpec, Expansion]], list[Problem]]:
    """Read specs by sweep name or path, all of `sweeps/` if none is named; a wrong spec does not hide the others.

    Return the valid specs with their assignments, and the problems of the others.
    """
    specs: list[tuple[ParsedSpec, Expansion]] = []
    problems: list[Problem] = []
    for path in workspace.spec_paths(names):
        parsed = workspace.parse(path)
        if not isinstance(parsed, ParsedSpec):
            problems += parsed
            continue
        expansion = search.explore(parsed.sweep, parsed.source)
        if isinstance(expansion, Expansion):
            specs.append((parsed, expansion))
        else:
            problems += expansion
    return specs, problems


def validate(workspace: Workspace, names: Iterable[str] = ()) -> Validated:
    """Read specs, and warn of programs that the work tree lacks; of all specs, also of files that are not read."""
    chosen = tuple(names)
    if not chosen:
        workspace.refuse_sweeps_elsewhere()
    specs, problems = read_specs(workspace, chosen)
    warnings = [
        warning
        for parsed, expansion in specs
        for warning in (
            *parsed.warnings,
            *expansion.warnings,
            *programs.missing_scripts_here(workspace.repository, parsed),
            *method_warnings(parsed, parsed.sweep.search),
            *programs.misread_booleans(workspace.root, parsed),
        )
    ]
    sizes = tuple((parsed.sweep, _trial_count(parsed.sweep, expansion)) for parsed, expansion in specs)
    warnings += () if chosen else workspace.unread_specs()
    return Validated(sizes, tuple(sorted([*workspace.settings.warnings, *problems, *warnings])))


def _trial_count(sweep: Sweep, expansion: Expansion) -> "int | RoundBounds":
    if sweep.rounds is not None:
        # Imported late: other sweeps need neither the plan nor the methods of a search.
        from sweepledger.commands.rounds.bounds import total_bounds  # noqa: PLC0415

        return total_bounds(sweep, expansion)
    return len(expansion.configurations) * sweep.replicates
