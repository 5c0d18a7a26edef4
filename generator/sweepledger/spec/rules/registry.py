"""All rules of specs and of settings: each public function of these modules from a draft to its problems is one."""

from collections.abc import Iterator
from inspect import isfunction
from types import ModuleType
from typing import Any

from sweepledger.model.keys import texts_with_forms
from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft, Rule
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
from sweepledger.structs.settings import Settings


def sweep_forms(draft: Draft) -> Iterator[Problem]:
    """Each text of a spec has its form; the keys of the search, which may be large, have rules of their own."""
    data = draft.document.data
    yield from _problems(draft, Spec, {key: data[key] for key in data.keys() - SEARCH_KEYS})


def settings_forms(draft: Draft) -> Iterator[Problem]:
    """Each text of the settings has its form."""
    yield from _problems(draft, Settings, draft.document.data)


def _problems(draft: Draft, kind: type, data: Any) -> Iterator[Problem]:
    for path, written, form, at_key in texts_with_forms(kind, data):
        if any(path[:end] in draft.broken for end in range(len(path) + (not at_key))):
            continue
        try:
            form.read(written)
        except ValueError as error:
            message = f"{error}, got {safe_repr(written)}"
            yield draft.problem(path, message, code=form.code, hint=form.hint, at_key=at_key)


def _rules_in(*modules: ModuleType) -> Iterator[Rule]:
    for module in modules:
        for name, function in vars(module).items():
            is_own = isfunction(function) and function.__module__ == module.__name__
            signature = {"draft": Draft, "return": Iterator[Problem]}
            if is_own and not name.startswith("_") and function.__annotations__ == signature:
                yield function


SETTINGS_RULES: tuple[Rule, ...] = (
    *_rules_in(settings),
    *(environment.allowed_variables, environment.dns_servers, environment.egress_hosts),
    *(environment.settings_egress, environment.settings_secrets, settings_forms, names.settings_entries),
    *(program.code_secret, program.default_image, program.named_images, program.pinned_images),
)
SPEC_MODULES = (
    *(combinations, conditions, configurations, domains, environment),
    *(methods, names, program, workload),
)
LATER_RULES: tuple[Rule, ...] = (domains.distinct_points,)
"""Those for specs without any other problem."""

SWEEP_RULES = (
    sweep_forms,
    *(rule for rule in _rules_in(*SPEC_MODULES) if rule not in {*SETTINGS_RULES, *LATER_RULES}),
)
