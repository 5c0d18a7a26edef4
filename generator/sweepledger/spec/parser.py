"""Parsing: the bytes of a file become a Sweep with its source map, or Settings, or all problems of the file.

The reader, the structure and the rules run in this order. A rule is a public function of the modules in `rules`; it
maps a draft, or one parameter of it, to problems. Rules that also take a form check its distribution.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from inspect import isfunction
from types import ModuleType
from typing import Any

from msgspec import structs

from sweepledger.distributions import FORMS
from sweepledger.distributions.form import Form
from sweepledger.model.keys import EntryOf, decode, texts
from sweepledger.problems import Problem, Severity, limit_problems
from sweepledger.reader import read_document, safe_repr
from sweepledger.spec.draft import Draft, Leaf
from sweepledger.spec.keys import SEARCH_KEYS, Spec
from sweepledger.spec.rules import (
    combinations,
    conditions,
    configurations,
    domains,
    environment,
    methods,
    names,
    program,
    settings,
    workload,
)
from sweepledger.spec.rules.configurations import SiblingReader, read_table
from sweepledger.spec.structure import check_structure
from sweepledger.spec.sweep_builder import ParsedSpec, build_spec
from sweepledger.structs.settings import Settings

Rule = Callable[..., Iterator[Problem]]


SIGNATURES = [
    {"draft": Draft, **more, "return": Iterator[Problem]}
    for more in ({}, {"leaf": Leaf}, {"leaf": Leaf, "form": Form})
]
"""What rules take and yield."""


def _rules_in(*modules: ModuleType) -> Iterator[Rule]:
    for module in modules:
        for name, function in vars(module).items():
            is_own = isfunction(function) and function.__module__ == module.__name__
            if is_own and not name.startswith("_") and function.__annotations__ in SIGNATURES:
                yield function


SETTINGS_RULES: tuple[Rule, ...] = (
    *_rules_in(settings),
    *(environment.allowed_variables, environment.egress_hosts),
    *(environment.settings_egress, environment.settings_secrets),
    *(program.code_secret, program.pinned_images, program.settings_images),
)
LATER_RULES: tuple[Rule, ...] = (domains.distinct_points,)
"""Those for specs without any other problem."""
SPEC_MODULES = (
    *(combinations, conditions, configurations, domains, environment),
    *(methods, names, program, workload),
)
SWEEP_RULES = tuple(rule for rule in _rules_in(*SPEC_MODULES) if rule not in {*SETTINGS_RULES, *LATER_RULES})


def _apply(rules: Iterable[Rule], draft: Draft) -> Iterator[Problem]:
    leaves = [(draft, leaf) for leaf in draft.leaves]
    forms = [(*pair, FORMS[pair[1].distribution]) for pair in leaves if pair[1].distribution in FORMS]
    arguments: dict[int, Sequence[tuple[Any, ...]]] = {1: [(draft,)], 2: leaves, 3: forms}
    for rule in rules:
        for values in arguments[len(rule.__annotations__) - 1]:
            yield from rule(*values)


def _texts(draft: Draft, kind: type, data: Any) -> Iterator[Problem]:
    """Check that each text has its form, and that names of entries exist in the settings."""
    for path, written, stated, at_key in texts(kind, data):
        if any(path[:end] in draft.broken for end in range(len(path) + (not at_key))):
            continue
        if (form := stated.form) is not None:
            try:
                form.read(written)
            except ValueError as error:
                message = f"{error}, got {safe_repr(written)}"
                yield draft.problem(path, message, form.code, form.hint, at_key=at_key)
        for part in stated.metadata:
            if isinstance(part, EntryOf):
                yield from names.entry_name(draft, path, part.key)


def parse(
    content: bytes, path: str, settings: Settings, *, beside: SiblingReader = lambda _: None
) -> ParsedSpec | tuple[Problem, ...]:
    """Return the sweep of a spec with its source map, or its problems.

    `path` is its path in the repository, such as `sweeps/lr.yaml`; `beside` reads files in the spec's folder.
    Warnings come with the sweep, or among the problems.
    """
    reading = read_document(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        message, hint = "must contain a sweep, got an empty file", "`sweep new NAME` writes a starter spec"
        problem = Problem(path, 0, 0, "", message, code="empty-file", hint=hint)
        return (*reading.problems, problem)
    structure, broken = check_structure(document, "sweep")
    problems = [*reading.problems, *structure]
    if () in broken:
        return limit_problems(problems)
    draft = Draft(document, broken, settings)
    table, unreadable = read_table(draft, beside)
    if table is not None:
        draft = replace(draft, table=table)
    # The keys of the search, which may be large, have rules of their own.
    problems += unreadable
    problems += _texts(draft, Spec, {key: document.data[key] for key in document.data.keys() - SEARCH_KEYS})
    problems += _apply(SWEEP_RULES, draft)
    if not _has_errors(problems):
        problems += _apply(LATER_RULES, draft)
    if _has_errors(problems):
        return limit_problems(problems)
    return build_spec(draft, warnings=limit_problems(problems))


def parse_settings(content: bytes, path: str, *, unpinned: bool = False) -> Settings | tuple[Problem, ...]:
    """Return the repository's settings, or their problems; an empty file is valid. Both include warnings.

    With `unpinned`, an image may lack its digest, which `sweep cluster pin` adds; the digest is then empty.
    """
    reading = read_document(content, path)
    document = reading.document
    if document is None:
        return reading.problems
    if document.is_empty:
        return reading.problems or Settings()
    structure, broken = check_structure(document, "settings")
    draft = Draft(document, broken, Settings())
    rules = (rule for rule in SETTINGS_RULES if not (unpinned and rule is program.pinned_images))
    found = _texts(draft, Settings, document.data)
    problems = limit_problems([*reading.problems, *structure, *found, *_apply(rules, draft)])
    if _has_errors(problems):
        return problems
    decoded: Settings = decode(Settings, document.data)
    return structs.replace(decoded, warnings=problems)


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
