"""Check specs, and print every problem with its location."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from sweepledger.cli.options import argument
from sweepledger.cli.response import EXIT_PROBLEMS, Response, has_errors
from sweepledger.cli.text.values import count_text, rounds_text
from sweepledger.operations.repository import programs
from sweepledger.operations.repository.workspace import NO_SPECS, Workspace, explore
from sweepledger.problems import Problem, Severity
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep


def validate(
    workspace: Workspace,
    paths: list[str] | None = argument("[PATH]...", "Sweeps or files; default: all of sweeps/."),
) -> Response:
    """Check specs; warn of programs that the work tree lacks and, for all specs, of files that are not read."""
    if not paths:
        workspace.refuse_sweeps_elsewhere()
    specs, invalid = explore(map(workspace.parse, workspace.spec_paths(paths or ())))
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
    warnings += () if paths else workspace.unread_specs()
    problems = tuple(sorted([*workspace.settings.warnings, *invalid, *warnings]))
    sweeps = tuple(_valid_spec(parsed.sweep, expansion) for parsed, expansion in specs)
    lines = tuple(f"{sweep.path}: ok, {sweep.size}" for sweep in sweeps)
    return Response(
        {"sweeps": sweeps},
        lines or (() if problems else (NO_SPECS,)),
        problems,
        EXIT_PROBLEMS * has_errors(problems),
    )


@dataclass(frozen=True)
class ValidSpec:
    """A sweep with its number of trials; of a search, their bounds: None if only its results bound it."""

    name: str
    path: str
    trials: int | None
    rounds: int | None = None
    round_size: int | None = None

    @property
    def size(self) -> str:
        """The number of trials, or the bounds of a search, as text."""
        if self.round_size is None:
            return count_text(self.trials or 0, "trial")
        return rounds_text(self.trials, self.rounds, self.round_size)


def _valid_spec(sweep: Sweep, expansion: Expansion) -> ValidSpec:
    if sweep.rounds is None:
        return ValidSpec(sweep.name, sweep.path, len(expansion.configurations) * sweep.replicates)
    # Imported late: other sweeps need no method of a search.
    from sweepledger.operations.rounds.progress import remaining_bounds  # noqa: PLC0415

    bounds = remaining_bounds(sweep, expansion=expansion)
    return ValidSpec(sweep.name, sweep.path, bounds.trials, bounds.rounds, bounds.size)


def method_warnings(parsed: ParsedSpec, search: AdaptiveSearch | None) -> Iterator[Problem]:
    """Warn if the library of the search's method is not installed here, or if its model does not support the space."""
    if search is None:
        return
    from sweepledger.search.adaptive.model_based import find_excess, missing_library  # noqa: PLC0415 - as above

    warning = partial(parsed.source.problem, severity=Severity.WARNING)
    if missing := missing_library(search):
        yield warning(str(missing), "method", code="library-missing", hint=missing.hint)
    if excess := find_excess(search):
        message = f"every round will be drawn at random, because {excess}"
        yield warning(message, "method", code="model-size", hint="method: tpe takes any number of values")
