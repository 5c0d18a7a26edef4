"""The rules of the admission policies, in CEL: the same that `sweep check` has, once more at the gate.

Here is what all rules are made of. Only what every supported API server and every CEL implementation knows is
used: no optional types.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generator.render.platform.names import Manifest
from generator.structs.errands import COMPONENT_LABEL, PROOF, READER
from generator.structs.labels import BATCH_LABEL


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold, and what is said where it does not."""

    message: str
    expression: str


def variables(template: str) -> list[Manifest]:
    """Name the parts of a pod that rules look at, absent ones as empty; `template` has spec and metadata."""
    named = {
        "pod": f"{template}.spec",
        "labels": f"has({template}.metadata) && has({template}.metadata.labels)"
        f" ? {template}.metadata.labels : {{}}",
        "containers": "variables.pod.containers"
        " + (has(variables.pod.initContainers) ? variables.pod.initContainers : [])",
        "volumes": "has(variables.pod.volumes) ? variables.pod.volumes : []",
        "proves": _errand(PROOF.component, PROOF.command),
        "reads": f"{_errand(READER.component, READER.command)} && variables.volumes.all(v,"
        " !has(v.persistentVolumeClaim) || (has(v.persistentVolumeClaim.readOnly)"
        " && v.persistentVolumeClaim.readOnly))",
        # The folder of the results volumes in which this pod may write.
        "folder": f"variables.proves ? {text(PROOF.component)} : {_label(BATCH_LABEL)}",
    }
    return [{"name": name, "expression": expression} for name, expression in named.items()]


def _errand(component: str, command: Sequence[str]) -> str:
    """Know a pod of the tool's own: by its label alone anybody could call a pod so."""
    return (
        f"{_label(COMPONENT_LABEL)} == {text(component)} && variables.containers.size() == 1"
        " && variables.containers.all(c, !has(c.args)"
        f" && has(c.command) && c.command == {texts(command)})"
    )


def _label(name: str) -> str:
    return f"({text(name)} in variables.labels ? variables.labels[{text(name)}] : '')"


def owned_by(kinds: Iterable[str]) -> str:
    """Say that a controller made the object for another one.

    Git cannot: the owner's identifier is the cluster's, and what names a wrong one is deleted.
    """
    return (
        "(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o,"
        f" o.kind in {texts(kinds)} && has(o.controller) && o.controller))"
    )


def text(words: str) -> str:
    """Write a text in CEL."""
    return json.dumps(words)


def texts(words: Iterable[str]) -> str:
    """Write a list of texts in CEL."""
    return json.dumps(list(words))
