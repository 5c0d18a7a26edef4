"""What the trials of a batch ask for, told by its manifests as this program writes them: many are looked at.

What a batch runs with is in its files alone: its spec, and the settings, may have changed since.
"""

import re

from generator.formats import json
from generator.structs.sweep import Resources, Run, Shape

_REQUESTS = re.compile(r'^( +)requests:\n((?:\1  \S+: ".*"\n)+)', re.MULTILINE)
_AMOUNT = re.compile(r'^ +(\S+): "(.*)"$', re.MULTILINE)
_PARALLELISM = re.compile(r"^  parallelism: (\d+)$", re.MULTILINE)
_PODS = {
    Shape.TRAIN_JOB: re.compile(r"^ +numNodes: (\d+)$", re.MULTILINE),
    Shape.JOB_SET: re.compile(r"^ +parallelism: (\d+)$", re.MULTILINE),
}
"""Where a trial's pods are one number; elsewhere each of its roles has replicas."""
_REPLICAS = re.compile(r"^ +replicas: (\d+)$", re.MULTILINE)
_OTHERS = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Every other resource is a GPU, whatever the pool calls it."""


def asked(manifests: bytes, launch: bytes, shape: Shape, *, trials: int) -> Run | None:
    """Read resources, pods, parallelism and timeout of a batch; None where they cannot be read."""
    text = manifests.decode(errors="replace")
    amounts = [dict(_AMOUNT.findall(found[2])) for found in _REQUESTS.finditer(text[:MOST])]
    try:
        trial = amounts[0]
        gpus = sum(int(amount) for name, amount in trial.items() if name not in _OTHERS)
        return Run(
            resources=Resources(trial["cpu"], trial["memory"], gpus),
            parallelism=int(_PARALLELISM.findall(text)[0]) if shape is Shape.INDEXED else trials,
            nodes=_pods(text, shape),
            timeout_seconds=int(json.load(launch)["timeout_seconds"]),
        )
    except (IndexError, KeyError, TypeError, ValueError):
        return None


MOST = 64 * 1024
"""Characters that are searched: every trial is alike, and the first one's object is shorter."""


def _pods(text: str, shape: Shape) -> int:
    if not shape.is_distributed:
        return 1
    if shape in _PODS:
        return int(_PODS[shape].findall(text[:MOST])[0])
    first = text.split("\n---\n")[1]
    return sum(map(int, _REPLICAS.findall(first)))
