"""All rules of specs and of settings: each public function of these modules from a draft to its problems is one."""

from collections.abc import Iterator
from inspect import isfunction
from types import ModuleType

from sweepledger.problems import Problem
from sweepledger.spec.draft import Draft, Rule
from sweepledger.spec.rules import (
    bounds,
    cluster,
    combinations,
    command,
    conditions,
    configurations,
    domains,
    environment,
    expressions,
    fleet,
    forms,
    methods,
    metrics,
    names,
    pools,
    program,
    storage,
    workload,
)


def _rules_in(*modules: ModuleType) -> Iterator[Rule]:
    for module in modules:
        for name, function in vars(module).items():
            is_own = isfunction(function) and function.__module__ == module.__name__
            signature = {"draft": Draft, "return": Iterator[Problem]}
            if is_own and not name.startswith("_") and function.__annotations__ == signature:
                yield function


SETTINGS_RULES: tuple[Rule, ...] = (
    *_rules_in(cluster, pools, storage),
    *(environment.allowed_variables, environment.dns_servers, environment.egress_hosts),
    *(
        environment.settings_egress,
        environment.settings_secrets,
        forms.settings_forms,
        names.settings_entries,
    ),
    *(fleet.cluster_egress, fleet.cluster_names, fleet.fleet_settings, fleet.pools_somewhere),
    *(program.code_secret, program.default_image, program.named_images, program.pinned_images),
)
SPEC_MODULES = (
    *(bounds, combinations, command, conditions, configurations, domains, environment, expressions, fleet),
    *(forms, methods, metrics, names, program, workload),
)
LATER_RULES: tuple[Rule, ...] = (bounds.distinct_points,)
"""Those for specs without any other problem."""

SWEEP_RULES = tuple(rule for rule in _rules_in(*SPEC_MODULES) if rule not in {*SETTINGS_RULES, *LATER_RULES})
