"""What makes an object a batch's, a module a subject. What would hold for anybody's is in `rules/`.

Each relies on the form and on the schema: both were looked at before.
"""

from collections.abc import Iterator

from generator.policy.findings import Finding
from generator.policy.ours import counts, labels, placement, pods, volumes
from generator.policy.ours.trials import Trials
from generator.policy.workloads import Object


def findings(thing: Object, trials: Trials) -> Iterator[Finding]:
    """Hold one object, and every pod it would start, against what a batch is."""
    if thing.kind == "ConfigMap" and thing.data.get("immutable") is not True:
        yield Finding(("immutable",), "must be true: a running Job reads it", "config-map-mutable")
    if thing.kind == "Job":
        yield from counts.check(thing.data)
    yield from labels.check(thing, trials)
    yield from placement.check(thing, trials)
    yield from pods.check(thing, trials)
    yield from volumes.check(thing, trials)
