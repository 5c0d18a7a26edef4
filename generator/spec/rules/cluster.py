"""Names in the settings that end in Kubernetes or on git's command line."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.structs.names import LABEL_LENGTH
from generator.structs.settings import PEERS

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
GIT_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]{0,198}[A-Za-z0-9_-])?", re.ASCII)


NAMED = ("images", "datasets", "secrets", "egress", "pools")
"""Mappings whose keys a spec uses as names."""

OBJECTS: tuple[Path, ...] = (
    ("namespace",),
    ("results", "claim"),
    ("results", "checkpoints"),
    ("results", "artifacts"),
    ("code", "secret"),
    ("image_pull_secret",),
    ("priority_class",),
)
OBJECTS_OF_EACH = (("datasets", "claim"), ("secrets", "secret"), ("pools", "queue"))

COLLECTOR = "-collector"
LONGEST_NAMESPACE = LABEL_LENGTH - len(COLLECTOR)
LONGEST_EGRESS = LABEL_LENGTH - len("egress-")
"""A pod asks for it by a label of this name."""


def object_names(draft: Draft) -> Iterator[Problem]:
    """What names an object of the cluster, or is named in a spec, is a DNS label."""
    places = [*OBJECTS]
    places += [(top, name, key) for top, key in OBJECTS_OF_EACH for name in draft.names(top)]
    found = [(place, draft.get(*place, kind=str), False) for place in places]
    found += [((top, name), name, True) for top in NAMED for name in draft.names(top)]
    for place, name, at_key in found:
        if name is not None and not LABEL.fullmatch(name):
            message = (
                "must be lower-case letters, digits and inner hyphens and have at most 63 characters, "
                f"got {shown(name)}"
            )
            yield draft.problem(place, message, code="cluster-name", at_key=at_key)


def namespace(draft: Draft) -> Iterator[Problem]:
    """Trials run hostile code, so they never share a namespace with the cluster's own programs."""
    name = draft.get("namespace", kind=str)
    if name is None or not LABEL.fullmatch(name):
        return
    if name == "default" or name.startswith("kube-"):
        message = f"must be a namespace of its own, not 'default' or 'kube-…', got {shown(name)}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint="for example sweeps")
    elif len(name) > LONGEST_NAMESPACE:
        message = f"must have at most {LONGEST_NAMESPACE} characters, got {len(name)}"
        hint = f"the collector's namespace is this one and {COLLECTOR!r}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint=hint)


def egress_names(draft: Draft) -> Iterator[Problem]:
    """The label of an egress has its name in it."""
    for name in draft.names("egress"):
        if name == PEERS:
            message = f"must be another name: pods of distributed trials bear this one, got {shown(name)}"
            yield draft.problem(("egress", name), message, code="cluster-name", at_key=True)
        elif LABEL.fullmatch(name) and len(name) > LONGEST_EGRESS:
            message = f"must have at most {LONGEST_EGRESS} characters, got {len(name)}"
            yield draft.problem(("egress", name), message, code="cluster-name", at_key=True)


def git_names(draft: Draft) -> Iterator[Problem]:
    """Branch and remote are names: no options, no addresses, no ranges."""
    for key in ("branch", "remote"):
        name = draft.get(key, kind=str)
        if name is None:
            continue
        parts = name.split("/")
        fits = GIT_NAME.fullmatch(name) and ".." not in name
        if not fits or any(not part or part.startswith(".") or part.endswith(".lock") for part in parts):
            message = f"must be the name of a {key}, got {shown(name)}"
            yield draft.problem((key,), message, code="git-name")
