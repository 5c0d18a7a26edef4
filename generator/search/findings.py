"""What is to be said of a block once its candidates were looked at."""

from collections.abc import Iterator
from typing import assert_never

from generator.problems import Problem, Severity
from generator.reader.shown import cut
from generator.search.blocks import Explored
from generator.search.drawing import unbalanced
from generator.search.limits.work import bound
from generator.search.settling import Assignment
from generator.structs.adaptive import Search
from generator.structs.domain import Continuous
from generator.structs.space import Constraint, Derived, Parameter
from generator.structs.sweep import Draw, Grid, Listing, Sampler
from generator.structs.values import canonical_json

TELLING_DRAWS = 1_000
"""A constraint that rejects none of fewer draws may still mean something."""


def findings(found: Explored, file: str) -> Iterator[Problem]:
    """Tell what is wrong with a block, or worth knowing."""
    if found.failed is not None:
        yield _failed(found, file)
    elif found.undrawable is not None:
        message = f"must give finite numbers, got one of {found.undrawable!r} that is none"
        hint = "try parameters of the distribution that are less extreme"
        yield Problem.at(file, found.block.place, message, code="out-of-range", hint=hint)
    elif not found.distinct and found.rejected:
        yield from _nothing(found, file)
    else:
        yield from _cap(found, file)
        yield from _uneven(found, file)
        yield from _everything(found, file)
        yield from _never(found, file)


def _failed(found: Explored, file: str) -> Problem:
    failed = found.failed
    assert failed is not None
    message = f"cannot be computed: {failed.reason}, for {_written(failed.assignment)}"
    hint = _ask_first(failed.expression) if failed.is_kind else _exclude(failed.expression)
    return Problem.at(file, failed.expression.place, message, code="expression-failed", hint=hint)


def _ask_first(source: Constraint | Derived) -> str:
    form = "a * 2 if a != null else 0" if isinstance(source, Derived) else "a != null and a > 0"
    return f"give the parameter values of one kind, or ask first, as in `{form}`"


def _exclude(source: Constraint | Derived) -> str:
    """Say how a case without a result is left out: derived values are computed before any constraint."""
    match source:
        case Derived():
            return "give the case a value of its own, as in `a / b if b != 0 else 0`; constraints come later"
        case Constraint():
            return "exclude the case, as in `b != 0 and a / b < 1`, or by a constraint before this one"
        case _:
            assert_never(source)


def _written(assignment: Assignment) -> str:
    return ", ".join(f"{name}={cut(canonical_json(value))}" for name, value in assignment.items())


def _nothing(found: Explored, file: str) -> Iterator[Problem]:
    constraints = found.block.space.constraints
    looked_at = f"{found.candidates} {_candidates(found)}"
    alone = [number for number, count in found.rejections.items() if count == found.candidates]
    for number in sorted(alone):
        message = f"must hold for some assignment, got none of {looked_at}: {cut(constraints[number].text)}"
        yield Problem.at(file, constraints[number].place, message, code="constraint-nothing", hint=_WIDEN)
    if not alone:
        counts = "; ".join(
            f"{cut(constraint.text)} rejects {found.rejections[number]}"
            for number, constraint in enumerate(constraints)
        )
        message = (
            f"must leave an assignment that satisfies all constraints, got none of {looked_at}: {counts}"
        )
        yield Problem.at(file, found.block.place, message, code="constraint-nothing", hint=_WIDEN)


_WIDEN = "widen the domains, or loosen the constraint"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _candidates(found: Explored) -> str:
    match found.block:
        case Grid():
            return "combinations" if found.candidates > 1 else "combination"
        case Draw() | Search():
            return "draws" if found.candidates > 1 else "draw"
        case Listing():
            return "assignments" if found.candidates > 1 else "assignment"


def _cap(found: Explored, file: str) -> Iterator[Problem]:
    block, kept = found.block, len(found.distinct)
    match block:
        case _ if found.is_too_large:
            return  # the whole sweep is refused for it
        case Grid(cap=int(cap), seed=None) if kept > cap:
            message = f"must make at most run_cap = {cap} assignments, got {kept}"
            hint = f"raise run_cap, or let `grid_order: shuffled` and a seed choose {cap} of them"
            yield Problem.at(file, block.place, message, code="too-many-trials", hint=hint)
        case Draw(sampler=Sampler.LATIN_HYPERCUBE, cap=cap) if kept < cap:
            message = f"run_cap asks for {cap} assignments, of which {kept} are left: {_losses(found)}"
            hint = "a Latin hypercube draws no others in their place; raise run_cap, or use random or sobol"
            yield Problem.at(
                file, block.place, message, code="run-cap-short", hint=hint, severity=Severity.WARNING
            )
        case Draw(cap=cap) if kept < cap:
            yield _unreached(found, file, cap)
        case Grid(cap=int(cap), seed=int()) if kept < cap and not found.is_exhausted:
            yield _unreached(found, file, cap)
        case _:
            pass


def _unreached(found: Explored, file: str, cap: int) -> Problem:
    kept = len(found.distinct)
    message = (
        f"run_cap asks for {cap} assignments, {found.candidates} {_candidates(found)} gave only {kept} "
        f"different ones: {_losses(found)}"
    )
    hint = "; ".join(_ways_on(found, cap))
    return Problem.at(file, found.block.place, message, code="run-cap-unreached", hint=hint)


def _ways_on(found: Explored, cap: int) -> Iterator[str]:
    """Propose no smaller run_cap: fewer draws are looked at for it, which need not give as many."""
    space, most = found.block.space, bound(found.block)
    yield "loosen the constraints or widen the domains" if space.constraints else "widen the domains"
    if found.duplicates and any(isinstance(one.domain, Continuous) for one in space.parameters):
        yield "numbers that are drawn are rounded to 10 significant digits"
    yield f"at most {most} {_candidates(found)} are looked at for a run_cap of {cap}"


def _losses(found: Explored) -> str:
    return f"constraints rejected {found.rejected}, {found.duplicates} came again"


def _uneven(found: Explored, file: str) -> Iterator[Problem]:
    message = unbalanced(found.block) if isinstance(found.block, Draw) else None
    if message is not None:
        hint = "other counts work, less evenly"
        yield Problem.at(
            file,
            found.block.place,
            message,
            code="unbalanced-count",
            hint=hint,
            severity=Severity.WARNING,
        )


def _everything(found: Explored, file: str) -> Iterator[Problem]:
    if isinstance(found.block, Listing) or not _is_telling(found):
        return  # a person's own lines: the constraint is there to guard them
    looked_at = f"{found.candidates} {_candidates(found)}"
    for number, constraint in enumerate(found.block.space.constraints):
        if found.unasked[number] == found.candidates:
            yield _mute(constraint, file, looked_at)
        elif not found.rejections[number]:
            yield _idle(constraint, file, looked_at)


def _is_telling(found: Explored) -> bool:
    """Tell whether what was not seen is likely not to be there at all."""
    match found.block:
        case Listing():
            return True
        case Draw() | Search():
            return found.candidates >= TELLING_DRAWS
        case Grid(seed=seed):
            return seed is None or found.is_exhausted
        case _:
            assert_never(found.block)


def _never(found: Explored, file: str) -> Iterator[Problem]:
    """Tell of values that no assignment has."""
    if not found.distinct or not _is_telling(found):
        return
    space, looked_at = found.block.space, _counted(len(found.distinct), "assignment")
    named: tuple[Parameter | Derived, ...] = (*space.parameters, *space.derived)
    for one in named:
        if one.name in found.unseen:
            message = f"exists in none of {looked_at}"
            if isinstance(one, Parameter):
                hint = "its conditions, and those of the parameters they ask for, never hold together"
            else:
                hint = "the values that it is made of are never there together"
            yield Problem.at(
                file, one.place, message, code="never-present", hint=hint, severity=Severity.WARNING
            )


def _mute(constraint: Constraint, file: str, looked_at: str) -> Problem:
    message = (
        f"is asked of none of {looked_at}, as the values that it needs are never there together: "
        f"{cut(constraint.text)}"
    )
    hint = "look at the conditions of the parameters that it mentions"
    return Problem.at(
        file,
        constraint.place,
        message,
        code="constraint-everything",
        hint=hint,
        severity=Severity.WARNING,
    )


def _idle(constraint: Constraint, file: str, looked_at: str) -> Problem:
    message = f"rejects none of {looked_at}: {cut(constraint.text)}"
    hint = "delete it, or look for a slip in it"
    return Problem.at(
        file,
        constraint.place,
        message,
        code="constraint-everything",
        hint=hint,
        severity=Severity.WARNING,
    )
