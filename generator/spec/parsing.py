"""Bytes to a checked value, or every problem of the file: reader, structure, rules, in that order."""

from generator.problems import Problem
from generator.reader import Document, limited, read
from generator.spec import building, structure
from generator.spec.draft import Draft
from generator.spec.rules import SETTINGS_RULES, SWEEP_RULES, Rule
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep


def parse(content: bytes, path: str, settings: Settings) -> Sweep | tuple[Problem, ...]:
    """Read a spec; `path` is its place in the repository, such as `sweeps/lr.yaml`."""
    reading = read(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        message, hint = "must hold a sweep, got an empty file", "`sweep new NAME` writes one to start from"
        problem = Problem(path, 0, 0, "", message, code="empty-file", hint=hint)
        return (*reading.problems, problem)
    problems = limited([*reading.problems, *_checked(document, "sweep", settings, SWEEP_RULES)])
    return problems or building.sweep(document)


def parse_settings(content: bytes, path: str) -> Settings | tuple[Problem, ...]:
    """Read the repository's settings; an empty file will do."""
    reading = read(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        return reading.problems or Settings()
    problems = limited([*reading.problems, *_checked(document, "settings", Settings(), SETTINGS_RULES)])
    return problems or building.settings(document)


def _checked(
    document: Document, schema: str, settings: Settings, rules: tuple[Rule, ...]
) -> tuple[Problem, ...]:
    found, broken = structure.check(document, schema)
    draft = Draft(document, broken, settings)
    return (*found, *(problem for rule in rules for problem in rule(draft)))
