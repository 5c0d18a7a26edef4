"""Rules of the admission policies in CEL, the expressions that rules share, and CEL literals.

Only syntax that all supported API servers and CEL implementations know: no optional types.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sweepledger.render.manifest import Manifest
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    COMPONENT_LABEL,
    DOCTOR_POD,
    DOCTOR_STORE_COMMAND,
    READER_POD,
    RESULTS_PATH,
    STORE_CONTAINER,
)
from sweepledger.structs.settings import Settings


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition, and the message if it is false."""

    message: str
    expression: str


def variables(template: str, settings: Settings | None = None) -> list[Manifest]:
    """Return variables for the parts of a pod, empty if absent; `template` has spec and metadata.

    With settings, containers that the cluster has added are in `added`, and neither they nor volumes that only they
    mount are in any other variable.
    """
    main, before, volumes = (f"has({template}.spec.{key}) ? {template}.spec.{key} : []" for key in PARTS)
    added = {}
    if settings is not None and settings.sidecars:
        known = " || ".join(_is_sidecar(name, settings) for name in sorted(settings.sidecars))
        added["added"] = f"({main}).filter(c, {known}) + ({before}).filter(c, {known})"
        main, before = (f"({part}).filter(c, !({known}))" for part in (main, before))
        theirs = list_literal(sorted({name for one in settings.sidecars.values() for name in one.volumes}))
        volumes = (
            f"({volumes}).filter(v, !(v.name in {theirs}) || variables.containers.exists(c,"
            " has(c.volumeMounts) && c.volumeMounts.exists(m, m.name == v.name)))"
        )
    named = {
        "pod": f"{template}.spec",
        "labels": f"has({template}.metadata) && has({template}.metadata.labels)"
        f" ? {template}.metadata.labels : {{}}",
        **added,
        "main": main,
        "before": before,
        "containers": "variables.main + variables.before",
        "volumes": volumes,
        # Beside it may be the sidecar of a bucket, which other rules describe.
        "proves": _errand(DOCTOR_POD.component, (DOCTOR_POD.command, DOCTOR_STORE_COMMAND), "variables.main")
        + f" && variables.before.all(c, c.name == {literal(STORE_CONTAINER)})",
        "reads": _errand(READER_POD.component, (READER_POD.command,), "variables.containers")
        + " && variables.volumes.all(v, !has(v.persistentVolumeClaim) || (has(v.persistentVolumeClaim.readOnly)"
        " && v.persistentVolumeClaim.readOnly))",
        # The folder of the results volumes in which this pod may write.
        "folder": f"variables.proves ? {literal(DOCTOR_POD.component)} : {_label(BATCH_LABEL)}",
    }
    return [{"name": name, "expression": expression} for name, expression in named.items()]


PARTS = ("containers", "initContainers", "volumes")


def repository_pattern(repositories: Iterable[str]) -> str:
    """Return the regular expression of images of these repositories, with any tag or digest."""
    known = "|".join(re.escape(one).replace(r"\-", "-") for one in sorted(set(repositories)))
    return f"^({known}){REFERENCE}"


REFERENCE = "(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@|$)"


def _is_sidecar(name: str, settings: Settings) -> str:
    """Return the condition that a container is one that the cluster adds."""
    pattern = repository_pattern(settings.with_mirrors([settings.sidecars[name].image]))
    return f"(c.name == {literal(name)} && has(c.image) && c.image.matches({literal(pattern)}))"


def _errand(component: str, commands: Sequence[Sequence[str]], containers: str) -> str:
    """Return the condition that a pod is the helper of this component, whose label anybody could give to a pod.

    The runtime looks for the program in the container's PATH, so no variable may change it, and no mounted file may
    take its place.
    """
    known = " || ".join(f"c.command == {list_literal(command)}" for command in commands)
    return (
        f"{_label(COMPONENT_LABEL)} == {literal(component)} && {containers}.size() == 1"
        f" && {containers}.all(c, !has(c.args) && !has(c.env) && !has(c.envFrom) && !has(c.workingDir)"
        f" && has(c.command) && ({known})"
        f" && (!has(c.volumeMounts) || c.volumeMounts.all(m, m.mountPath == {literal(RESULTS_PATH)})))"
    )


def _label(name: str) -> str:
    return f"({literal(name)} in variables.labels ? variables.labels[{literal(name)}] : '')"


def owned_by(kinds: Iterable[str]) -> str:
    """Return the condition that a controller of certain kinds created the object.

    Git cannot: the owner's identifier is the cluster's, and what names a wrong one is deleted.
    """
    return (
        "(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o,"
        f" o.kind in {list_literal(kinds)} && has(o.controller) && o.controller))"
    )


def literal(words: str) -> str:
    """Write a text in CEL."""
    return json.dumps(words)


def list_literal(words: Iterable[str]) -> str:
    """Write a list of texts in CEL."""
    return json.dumps(list(words))
