"""The labels of objects and pods: NetworkPolicies, queues and bills go by them, so none may say another's."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.policy.findings import Finding
from generator.policy.ours.trials import Trials, index
from generator.policy.workloads import Object
from generator.reader.paths import Path
from generator.reader.shown import shown
from generator.structs.labels import BATCH_LABEL, EGRESS_LABEL, INDEX_LABEL, SWEEP_LABEL, TRIAL_LABEL
from generator.structs.names import split_batch_name

CODE = "label-not-ours"
NUMBER = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)


def check(thing: Object, trials: Trials) -> Iterator[Finding]:
    """Compare the values of labels with what batch and settings say."""
    known = _known(trials)
    own = thing.metadata.get("labels") or {}
    yield from _values(own, known, ("metadata", "labels"))
    number = index(thing)
    if number is not None and NUMBER.fullmatch(number) is None:
        message = f"must be the number of a trial, got {shown(number)}"
        yield Finding(("metadata", "labels", INDEX_LABEL), message, CODE)
    same = known | {key: own.get(key) for key in (INDEX_LABEL, TRIAL_LABEL)}
    for pod in thing.pods:
        yield from _values(pod.metadata.get("labels") or {}, same, (*pod.path, "metadata", "labels"))


def _known(trials: Trials) -> dict[str, str | None]:
    parts = split_batch_name(trials.batch)
    return {
        **trials.settings.labels,
        "app.kubernetes.io/managed-by": "sweepledger",
        "app.kubernetes.io/name": "sweepledger",
        BATCH_LABEL: trials.batch,
        **({} if parts is None else {SWEEP_LABEL: parts[0]}),
    }


def _values(found: Mapping[str, Any], known: Mapping[str, str | None], at: Path) -> Iterator[Finding]:
    for key, value in found.items():
        wanted = "true" if key.startswith(EGRESS_LABEL) else known.get(key, value)
        if value != wanted:
            yield Finding((*at, key), f"must be {shown(wanted)}, got {shown(value)}", CODE)
