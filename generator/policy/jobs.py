"""What a Job of a batch must be, beyond what any Job must: its counts, its deadlines, its rules for failures.

Its shape has been compared before: every key is known and every value of its kind.
"""

from collections.abc import Iterator
from typing import Any

from generator.policy.findings import Finding
from generator.policy.shape import Manifest

CODE = "job-not-ours"
BAD_HYPERPARAMETERS, BAD_SWEEP = 42, 43
"""Exit codes of the launcher that no other attempt would change."""

COUNTS = {
    "backoffLimit",
    "backoffLimitPerIndex",
    "completionMode",
    "completions",
    "maxFailedIndexes",
    "parallelism",
}


def rules(manifest: Manifest) -> Iterator[Finding]:
    """Find what is wrong with a Job, its pod apart."""
    spec = manifest.get("spec", {})
    is_indexed = spec.get("completionMode") == "Indexed"
    yield from _counts(spec, is_indexed=is_indexed)
    yield from _failures(spec, is_indexed=is_indexed)


def _counts(spec: Manifest, *, is_indexed: bool) -> Iterator[Finding]:
    """Kubernetes reads a missing or zero count as: once, never, or as often as it takes."""
    least = {"completions": 1, "parallelism": 1}
    least |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1} if is_indexed else {"backoffLimit": 0}
    for key, bound in least.items():
        value = spec.get(key)
        if type(value) is not int or value < bound:  # True is an int, too
            yield Finding(("spec", key), f"must be a whole number of at least {bound}, got {value!r}", CODE)
    known = {*least, "completionMode"} if is_indexed else {*least}
    for key in sorted(COUNTS & spec.keys() - known):
        yield Finding(("spec", key), f"must be absent in this shape, got {spec[key]!r}", CODE)
    if not is_indexed and spec.get("completions") != 1:
        found = spec.get("completions")
        yield Finding(("spec", "completions"), f"must be 1 without an index, got {found!r}", CODE)


def _failures(spec: Manifest, *, is_indexed: bool) -> Iterator[Finding]:
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    if is_indexed:
        wanted = [lost, _on_exit("FailIndex", BAD_HYPERPARAMETERS), _on_exit("FailJob", BAD_SWEEP)]
    else:
        wanted = [lost, _on_exit("FailJob", BAD_HYPERPARAMETERS, BAD_SWEEP)]
    found = spec.get("podFailurePolicy", {}).get("rules")
    if found != wanted:
        message = f"must be {wanted!r}, got {found!r}"
        yield Finding(("spec", "podFailurePolicy", "rules"), message, CODE)
    replaced = spec.get("podReplacementPolicy")
    if replaced != "Failed":  # two pods of one trial would run side by side
        message = f"must be 'Failed', got {replaced!r}"
        yield Finding(("spec", "podReplacementPolicy"), message, CODE)


def _on_exit(action: str, *codes: int) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"containerName": "trial", "operator": "In", "values": [*codes]}}
