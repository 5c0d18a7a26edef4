"""All rules that check one object at a time."""

from collections.abc import Callable, Iterator

from sweepledger.policy.objects import Finding, Object
from sweepledger.policy.rules import containers, gitops, jobs, resources, security, storage

RULES: tuple[Callable[[Object], Iterator[Finding]], ...] = (
    resources.check,
    containers.check_environment,
    gitops.check,
    security.check_hardening,
    containers.check_images,
    jobs.check,
    security.check_restricted,
    storage.check_volumes,
)


def findings(obj: Object) -> Iterator[Finding]:
    """Yield the findings of all rules that need no other object."""
    for rule in RULES:
        yield from rule(obj)
