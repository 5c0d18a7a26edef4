"""Bytes to a checked value, or every problem of the file: reader, structure, rules, in that order."""

from collections.abc import Iterable
from dataclasses import replace

from generator.problems import Problem, Severity
from generator.reader import Document, limited, read
from generator.spec import building, structure
from generator.spec.draft import Draft
from generator.spec.listing import Beside, nothing, tables
from generator.spec.rules import SETTINGS_RULES, SWEEP_RULES, images
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep


def parse(
    content: bytes, path: str, settings: Settings, *, beside: Beside = nothing
) -> Sweep | tuple[Problem, ...]:
    """Read a spec; `path` is its place in the repository, such as `sweeps/lr.yaml`.

    `beside` reads what the spec names in its own folder. Warnings are in the sweep, or among the problems.
    """
    reading = read(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        message, hint = "must hold a sweep, got an empty file", "`sweep new NAME` writes one to start from"
        problem = Problem(path, 0, 0, "", message, code="empty-file", hint=hint)
        return (*reading.problems, problem)
    problems, draft = _structured(document, "sweep", settings)
    if () in draft.broken:
        return limited([*reading.problems, *problems])
    found, unreadable = tables(draft, beside)
    draft = replace(draft, tables=found)
    problems += (*unreadable, *(problem for rule in SWEEP_RULES for problem in rule(draft)))
    all_problems = (*reading.problems, *problems)
    if _errors(all_problems):
        return limited(list(all_problems))
    if equal := tuple(building.collapsed(draft)):
        return limited([*all_problems, *equal])
    return building.sweep(draft, warnings=limited(list(all_problems)))


def parse_settings(content: bytes, path: str, *, unpinned: bool = False) -> Settings | tuple[Problem, ...]:
    """Read the repository's settings; an empty file will do. Warnings are in them, or among the problems.

    With `unpinned` an image may lack its digest, which is empty then: for whoever is about to find it.
    """
    reading = read(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        return reading.problems or Settings()
    problems, draft = _structured(document, "settings", Settings())
    rules = (rule for rule in SETTINGS_RULES if not (unpinned and rule is images.pinned))
    ruled = (problem for rule in rules for problem in rule(draft))
    found = limited([*reading.problems, *problems, *ruled])
    return found if _errors(found) else replace(building.settings(document), warnings=found)


def _structured(document: Document, schema: str, settings: Settings) -> tuple[tuple[Problem, ...], Draft]:
    found, broken = structure.check(document, schema)
    return found, Draft(document, broken, settings)


def _errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
