"""Exploration of a design: its candidates, how many are kept or rejected, and the resulting problems."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from sweepledger.problems import Problem, Severity, SourceMap, SourcePath
from sweepledger.reader.safe_repr import truncate
from sweepledger.search.candidates import draw_candidates, grid_candidates
from sweepledger.search.configurations import (
    Candidate,
    Configuration,
    ExpressionFailure,
    Rejected,
    Unbuilt,
    configuration_builder,
)
from sweepledger.search.estimates import max_candidates, value_bytes
from sweepledger.search.unit_cube import UndrawableError
from sweepledger.structs.search_block import ConfigurationList, Design, GridSearch, RandomSearch
from sweepledger.structs.space import Constraint, DerivedValue
from sweepledger.structs.values import canonical_json

EARLY_CHECK = 100_000
"""After this number of candidates, or a tenth of the limit if that is more, a hopeless search is given up."""

SIGNIFICANT_DRAWS = 1_000
"""A constraint that rejects none of fewer draws may still have an effect."""

KeyFunction = Callable[[Configuration], Hashable]


@dataclass(slots=True)
class Exploration:
    """Counts and configurations of a design; the value changes while candidates are examined."""

    design: Design
    distinct: dict[Hashable, Configuration] = field(default_factory=dict)
    """Configurations by key, in the order of the candidates."""
    candidates: int = 0
    """Combinations, draws or lines examined."""
    rejected: int = 0
    """Candidates that some constraint rejects."""
    rejections: list[int] = field(default_factory=list)
    """How many candidates each constraint rejects, in the order of the constraints."""
    unevaluated: list[int] = field(default_factory=list)
    """How many candidates lack a value that each constraint needs, and therefore satisfy it."""
    never_present: set[str] = field(default_factory=set)
    """Names that no configuration has so far."""
    bytes: int = 0
    """Size of the configurations in the table, if it is limited."""
    failure: ExpressionFailure | None = None
    """Set if exploration stopped because an expression has no result."""
    undrawable: str | None = None
    """Set if exploration stopped because a parameter's value is not a finite number."""
    is_too_large: bool = False
    """Set if exploration stopped because no sweep may have more configurations."""

    @property
    def kept(self) -> int:
        """Configurations of the design."""
        return len(self.distinct)

    @property
    def duplicates(self) -> int:
        """Candidates that equal an earlier candidate."""
        return self.candidates - self.rejected - self.kept - (self.failure is not None)

    @property
    def noun(self) -> str:
        """The word for its candidates."""
        nouns = {GridSearch: "combination", ConfigurationList: "configuration"}
        noun = nouns.get(type(self.design), "draw")
        return f"{noun}s" if self.candidates > 1 else noun

    @property
    def examined(self) -> str:
        """How many candidates were examined."""
        return f"{self.candidates} {self.noun}"


def explore_design(
    design: Design, key: KeyFunction, most: int, *, candidates: int | None, table_bytes: int | None
) -> Exploration:
    """Examine a design's candidates until it has enough or too many configurations, or no candidates are left.

    One more than `most` configurations is built, to know that the design has too many. `table_bytes`: the largest
    size of the configurations in the table; None: no limit.
    """
    space = design.space
    conditional = {parameter.name for parameter in space.parameters if parameter.when}
    examined: Iterator[Candidate]
    none = [0] * len(space.constraints)
    absent = conditional | {derived.name for derived in space.derived}
    explored = Exploration(design, rejections=none, unevaluated=[*none], never_present=absent)
    wanted = design.cap if isinstance(design, RandomSearch) else None
    enough = most + 1 if wanted is None else min(most + 1, wanted)
    build = configuration_builder(
        design.space, design.names if isinstance(design, ConfigurationList) else (), explored.unevaluated
    )
    checkpoint = max(EARLY_CHECK, (candidates or 0) // 10)
    # With fewer by then, all candidates are unlikely to give even half of the configurations wanted.
    hopeless = (wanted or 0) * checkpoint / (2 * candidates) if candidates else 0
    match design:
        case GridSearch(space):
            examined = grid_candidates(space)
        case RandomSearch():
            examined = draw_candidates(design)
        case ConfigurationList():
            examined = ({**space.constants, **configuration} for configuration in design.assignments)
        case _:
            examined = iter(())
    try:
        for candidate in islice(examined, candidates):
            explored.candidates += 1
            _count(explored, build(candidate), key, has_bytes=table_bytes is not None)
            explored.is_too_large = len(explored.distinct) > most or explored.bytes > (table_bytes or 0)
            if len(explored.distinct) == enough or explored.failure or explored.is_too_large:
                return explored
            if explored.candidates == checkpoint and len(explored.distinct) < hopeless:
                return explored
    except UndrawableError as error:
        explored.undrawable = str(error)
    return explored


def _count(
    explored: Exploration,
    built: Configuration | Unbuilt,
    key: KeyFunction,
    *,
    has_bytes: bool,
) -> None:
    match built:
        case Rejected(constraints):
            explored.rejected += 1
            for number in constraints:
                explored.rejections[number] += 1
        case ExpressionFailure():
            explored.failure = built
        case _:
            before = len(explored.distinct)
            explored.distinct.setdefault(key(built), built)
            if has_bytes and len(explored.distinct) > before:
                explored.bytes += sum(map(value_bytes, built.values()))
            if explored.never_present:
                explored.never_present -= built.keys()


def design_problems(explored: Exploration, source: SourceMap) -> Iterator[Problem]:
    """Yield the errors and warnings of an explored design; `source` is the map of the design."""
    if explored.failure is not None:
        yield _expression_failed(explored, explored.failure, source)
    elif explored.undrawable is not None:
        message = f"must give finite numbers, got another value for {explored.undrawable!r}"
        hint = "choose less extreme parameters for the distribution"
        yield source.problem(message, code="out-of-range", hint=hint)
    elif not explored.distinct and explored.rejected:
        yield from _all_rejected(explored, source)
    else:
        yield from _cap_problems(explored, source)
        match explored.design:
            case RandomSearch(sampler, cap=cap) if sampler.needs_power_of_two and cap.bit_count() != 1:
                lower = 1 << (cap.bit_length() - 1)
                examples = f"such as {lower} or {2 * lower}"
                message = f"must be a power of two, {examples}, for balanced {sampler} points, got {cap}"
                hint = "other counts work, but cover the space less evenly"
                yield _warning(source, message, code="unbalanced-count", hint=hint)
        yield from _useless_constraints(explored, source)
        yield from _absent_names(explored, source)


def _warning(source: SourceMap, message: str, *part: str | int, code: str, hint: str) -> Problem:
    return source.problem(message, *part, code=code, hint=hint, severity=Severity.WARNING)


def _expression_failed(explored: Exploration, failure: ExpressionFailure, source: SourceMap) -> Problem:
    written = ", ".join(
        f"{name}={truncate(canonical_json(value))}" for name, value in failure.configuration.items()
    )
    message = f"cannot be computed: {failure.reason}, for {written}"
    match failure.expression:
        case DerivedValue(name):
            part: SourcePath = ("derived", name)
            form = "a * 2 if a != null else 0"
            # Derived values are computed before any constraint.
            hint = "add a value for this case, as in `a / b if b != 0 else 0`; constraints apply later"
        case Constraint() as failed:
            part = ("constraints", explored.design.space.constraints.index(failed))
            form = "a != null and a > 0"
            hint = "exclude the case, as in `b != 0 and a / b < 1`, or with a constraint before this one"
    if failure.is_type_error:
        hint = f"give the parameter values of one type, or test for null first, as in `{form}`"
    return source.problem(message, *part, code="expression-failed", hint=hint)


_LOOSEN = "widen the domains, or loosen the constraint"


def _all_rejected(explored: Exploration, source: SourceMap) -> Iterator[Problem]:
    constraints = explored.design.space.constraints
    examined = explored.examined
    alone = [number for number, count in enumerate(explored.rejections) if count == explored.candidates]
    for number in alone:
        message = (
            f"must be true for at least one configuration, got none of {examined}: "
            f"{truncate(constraints[number].text)}"
        )
        yield source.problem(message, "constraints", number, code="constraint-nothing", hint=_LOOSEN)
    if not alone:
        counts = "; ".join(
            f"{truncate(constraint.text)} rejects {rejected}"
            for constraint, rejected in zip(constraints, explored.rejections, strict=True)
        )
        message = (
            f"must have a configuration that satisfies all constraints, got none of {examined}: {counts}"
        )
        yield source.problem(message, code="constraint-nothing", hint=_LOOSEN)


def _cap_problems(explored: Exploration, source: SourceMap) -> Iterator[Problem]:
    design, kept = explored.design, explored.kept
    match design:
        case _ if explored.is_too_large:
            return  # the whole sweep has a problem for it
        case GridSearch(cap=int(cap)) if kept > cap:
            message = f"must make at most run_cap = {cap} configurations, got {kept}"
            hint = f"raise run_cap, or draw {cap} of them with `method: random` and a seed"
            yield source.problem(message, code="too-many-trials", hint=hint)
        case RandomSearch(sampler, cap=cap) if kept < cap and sampler.has_fixed_count:
            message = f"run_cap requests {cap} configurations, of which {kept} remain: {_losses(explored)}"
            hint = "a Latin hypercube draws no replacements; raise run_cap, or use random or sobol"
            yield _warning(source, message, code="run-cap-short", hint=hint)
        case RandomSearch(cap=cap) if kept < cap:
            message = (
                f"run_cap requests {cap} configurations, {explored.examined} gave only {kept} different ones: "
                f"{_losses(explored)}"
            )
            # No smaller run_cap: fewer draws are examined for it, which need not give as many.
            hint = "widen the domains"
            hint = f"loosen the constraints or {hint}" if design.space.constraints else hint
            if explored.duplicates and any(each.domain.is_continuous for each in design.space.parameters):
                hint += "; drawn numbers are rounded to 10 significant digits"
            most = max_candidates(design)
            hint += f"; at most {most} {explored.noun} are examined for a run_cap of {cap}"
            yield source.problem(message, code="run-cap-unreached", hint=hint)


def _losses(explored: Exploration) -> str:
    return f"constraints rejected {explored.rejected}, {explored.duplicates} were duplicates"


def _useless_constraints(explored: Exploration, source: SourceMap) -> Iterator[Problem]:
    if isinstance(explored.design, ConfigurationList) or not _is_significant(explored):
        return  # constraints guard the author's own lines
    examined = explored.examined
    for number, constraint in enumerate(explored.design.space.constraints):
        if explored.unevaluated[number] == explored.candidates:
            message = (
                f"is evaluated for none of {examined}, because the values that it needs never exist together"
            )
            hint = "check the conditions of the parameters that it mentions"
        elif not explored.rejections[number]:
            message = f"rejects none of {examined}"
            hint = "delete it, or check it for a mistake"
        else:
            continue
        message += f": {truncate(constraint.text)}"
        yield _warning(source, message, "constraints", number, code="constraint-everything", hint=hint)


def _is_significant(explored: Exploration) -> bool:
    """Return whether a case that no candidate shows is unlikely to exist at all."""
    is_complete = isinstance(explored.design, ConfigurationList | GridSearch)
    return is_complete or explored.candidates >= SIGNIFICANT_DRAWS


def _absent_names(explored: Exploration, source: SourceMap) -> Iterator[Problem]:
    if not explored.distinct or not _is_significant(explored):
        return
    space, count = explored.design.space, explored.kept
    message = f"exists in none of {count} configuration{'s' * (count > 1)}"
    for parameter in space.parameters:
        if parameter.name in explored.never_present:
            hint = "its conditions, and those of the parameters they mention, are never true together"
            yield _warning(source, message, "parameters", parameter.name, code="when-unreachable", hint=hint)
    for derived in space.derived:
        if derived.name in explored.never_present:
            hint = "the values that it is computed from never exist together"
            yield _warning(source, message, "derived", derived.name, code="when-unreachable", hint=hint)
