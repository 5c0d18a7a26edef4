"""Expansion of a sweep: from its design to configurations, and from configurations to trials."""

from collections.abc import Hashable
from dataclasses import dataclass
from types import MappingProxyType

from msgspec import structs

from sweepledger.errors import SpecError
from sweepledger.problems import Problem, Severity, SourceMap
from sweepledger.search import limits
from sweepledger.search.candidates import grid_candidates
from sweepledger.search.configurations import Configuration
from sweepledger.search.estimates import MAX_CELLS, MAX_WORK, estimate_work, max_candidates
from sweepledger.search.exploration import Exploration, design_problems, explore_design
from sweepledger.structs.methods import PLAIN
from sweepledger.structs.program import Program
from sweepledger.structs.search_block import GridSearch, RandomSearch
from sweepledger.structs.space import MAX_TRIALS, SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, all_trials
from sweepledger.structs.values import identity

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Expansion:
    """The configurations of a sweep, each once, in the order of its trials."""

    configurations: tuple[Configuration, ...]
    count: Exploration
    """How many candidates are rejected, duplicates or kept."""
    warnings: tuple[Problem, ...] = ()


def explore(sweep: Sweep, source: SourceMap | None = None) -> Expansion | tuple[Problem, ...]:
    """Return a sweep's configurations, or all errors that prevent it from having any.

    The rounds of an adaptive search add its configurations later; here its space is only checked. Without
    a source map, no problem has a position.
    """
    source = source or SourceMap(sweep.path)
    if sweep.search is not None:
        probe = RandomSearch(PLAIN, sweep.search.space, sweep.search.seed, cap=1)
        expansion = explore(structs.replace(sweep, design=probe), source)
        if not isinstance(expansion, Expansion):
            return expansion
        largest = sweep.search.largest_round * sweep.replicates
        distinct = {*expansion.warnings, *limits.batch_problems(sweep, source, largest)}
        return _errors(distinct) or Expansion((), Exploration(sweep.search), tuple(sorted(distinct)))
    errors = tuple(limits.problems_before(sweep, source))
    if errors:
        return errors
    match sweep.design:
        case GridSearch(space, cap=None) if is_full_product(space):
            grid = dict[Hashable, Configuration](enumerate(map(MappingProxyType, grid_candidates(space))))
            explored, problems = Exploration(sweep.design, grid, len(grid)), list[Problem]()
        case _:
            explored = _explore_candidates(sweep)
            problems = [*design_problems(explored, source.part("search"))]
    configurations = tuple(explored.distinct.values())
    problems += limits.problems_after(sweep, source, configurations)
    return _errors(problems) or Expansion(configurations, explored, tuple(sorted(problems)))


def _errors(problems: list[Problem] | set[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problem for problem in problems if problem.severity is Severity.ERROR))


def is_full_product(space: SearchSpace) -> bool:
    """Return whether all combinations are known to be configurations without examining them, as in very large grids."""
    conditional = any(parameter.when for parameter in space.parameters)
    return not (conditional or space.zips or space.derived or space.constraints)


def _explore_candidates(sweep: Sweep) -> Exploration:
    """Examine candidates one by one, as many as the method and the limit of work allow."""
    names = sorted(sweep.columns)

    def key(configuration: Configuration) -> Hashable:
        return tuple([identity(configuration[name]) if name in configuration else _ABSENT for name in names])

    estimate, most = estimate_work(sweep.design), max_candidates(sweep.design)
    if most is not None:
        most = min(most, estimate.candidates + (MAX_WORK - estimate.work) // estimate.steps)
    return explore_design(
        sweep.design,
        key,
        min(
            MAX_TRIALS, MAX_CELLS // (max(1, len(names)) * sweep.replicates)
        ),  # budget and shape may allow fewer
        candidates=most,
        table_bytes=limits.max_table_bytes(sweep),
    )


def expand(sweep: Sweep, program: Program, source: SourceMap | None = None) -> tuple[Trial, ...]:
    """Return the trials of a sweep under a program. Raises SpecError."""
    expansion = explore(sweep, source)
    if not isinstance(expansion, Expansion):
        raise SpecError(expansion)
    return all_trials(sweep, expansion.configurations, program.digest)
