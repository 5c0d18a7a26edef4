"""How often a Job of a batch runs, and when it gives up: exactly as its shape has it."""

from collections.abc import Iterator
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Manifest
from generator.reader.shown import shown, written

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


def check(manifest: Manifest) -> Iterator[Finding]:
    """Find what is wrong with a Job, its pod apart."""
    spec = manifest.get("spec") or {}
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
            yield Finding(
                ("spec", key), f"must be a whole number of at least {bound}, got {shown(value)}", CODE
            )
    known = {*least, "completionMode"} if is_indexed else {*least}
    for key in sorted(COUNTS & spec.keys() - known):
        yield Finding(("spec", key), f"must be absent in this shape, got {shown(spec[key])}", CODE)
    if not is_indexed and spec.get("completions") != 1:
        found = spec.get("completions")
        yield Finding(("spec", "completions"), f"must be 1 without an index, got {shown(found)}", CODE)


def _failures(spec: Manifest, *, is_indexed: bool) -> Iterator[Finding]:
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    if is_indexed:
        wanted = [lost, _on_exit("FailIndex", BAD_HYPERPARAMETERS), _on_exit("FailJob", BAD_SWEEP)]
    else:
        wanted = [lost, _on_exit("FailJob", BAD_HYPERPARAMETERS, BAD_SWEEP)]
    found = (spec.get("podFailurePolicy") or {}).get("rules")
    if found != wanted:
        message = f"must be {written(wanted)}, got {written(found)}"
        yield Finding(("spec", "podFailurePolicy", "rules"), message, CODE)
    replaced = spec.get("podReplacementPolicy")
    if replaced != "Failed":  # two pods of one trial would run side by side
        message = f"must be 'Failed', got {shown(replaced)}"
        yield Finding(("spec", "podReplacementPolicy"), message, CODE)


def _on_exit(action: str, *codes: int) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"containerName": "trial", "operator": "In", "values": [*codes]}}
