"""Rules for anybody's manifests, a module a subject. Each relies on the schema: it was looked at before."""

from collections.abc import Callable, Iterator

from generator.policy.findings import Finding
from generator.policy.rules import (
    amounts,
    config_maps,
    environment,
    gitops,
    hardening,
    images,
    jobs,
    names,
    restricted,
    rights,
    storage,
)
from generator.policy.workloads import Object

RULES: tuple[Callable[[Object], Iterator[Finding]], ...] = (
    amounts.check,
    config_maps.check,
    environment.check,
    gitops.check,
    hardening.check,
    images.check,
    jobs.check,
    names.check,
    restricted.check,
    rights.check,
    storage.check,
)


def findings(thing: Object) -> Iterator[Finding]:
    """Hold one object against every rule that needs no other object."""
    for rule in RULES:
        yield from rule(thing)
