"""Parsing: the bytes of a file become a Sweep with its source map, or Settings, or all problems of the file.

The reader, the structure and the rules run in this order.
"""

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs

from sweepledger.model.keys import decode
from sweepledger.problems import Problem, Severity, limit_problems
from sweepledger.reader import Document, read_document
from sweepledger.spec import structure
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules import program
from sweepledger.spec.rules.configurations import SiblingReader, no_files, read_table
from sweepledger.spec.rules.domains import distinct_points
from sweepledger.spec.rules.registry import SETTINGS_RULES, SWEEP_RULES
from sweepledger.spec.sweep_builder import ParsedSpec, build_spec
from sweepledger.structs.settings import Settings


def parse(
    content: bytes, path: str, settings: Settings, *, beside: SiblingReader = no_files
) -> ParsedSpec | tuple[Problem, ...]:
    """Return the sweep of a spec with its source map, or its problems.

    `path` is its path in the repository, such as `sweeps/lr.yaml`; `beside` reads files in the spec's folder.
    Warnings are beside the sweep, or among the problems.
    """
    reading = read_document(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        message, hint = "must contain a sweep, got an empty file", "`sweep new NAME` writes a starter spec"
        problem = Problem(path, 0, 0, "", message, code="empty-file", hint=hint)
        return (*reading.problems, problem)
    problems, draft = _checked_structure(document, "sweep", settings)
    if () in draft.broken:
        return limit_problems([*reading.problems, *problems])
    table, unreadable = read_table(draft, beside)
    draft = replace(draft, table=table)
    problems += (*unreadable, *(problem for rule in SWEEP_RULES for problem in rule(draft)))
    all_problems = (*reading.problems, *problems)
    if _errors(all_problems):
        return limit_problems(list(all_problems))
    if equal := tuple(distinct_points(draft)):
        return limit_problems([*all_problems, *equal])
    return build_spec(draft, warnings=limit_problems(list(all_problems)))


def parse_settings(content: bytes, path: str, *, unpinned: bool = False) -> Settings | tuple[Problem, ...]:
    """Return the repository's settings, or their problems; an empty file is valid. Warnings are in both.

    With `unpinned`, an image may lack its digest, which is then empty: `sweep cluster pin` adds it.
    """
    reading = read_document(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        return reading.problems or Settings()
    problems, draft = _checked_structure(document, "settings", Settings())
    rules = (rule for rule in SETTINGS_RULES if not (unpinned and rule is program.pinned_images))
    ruled = (problem for rule in rules for problem in rule(draft))
    all_problems = limit_problems([*reading.problems, *problems, *ruled])
    if _errors(all_problems):
        return all_problems
    settings: Settings = decode(Settings, document.data)
    return structs.replace(settings, warnings=all_problems)


def _checked_structure(
    document: Document, schema: str, settings: Settings
) -> tuple[tuple[Problem, ...], Draft]:
    found, broken = structure.check_structure(document, schema)
    return found, Draft(document, broken, settings)


def _errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
