"""Names in the settings that end in Kubernetes or on git's command line."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
GIT_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]{0,198}[A-Za-z0-9_-])?", re.ASCII)


def object_names(draft: Draft) -> Iterator[Problem]:
    """Namespaces, claims and datasets are named by DNS labels."""
    places: list[Path] = [("namespace",), ("results", "claim")]
    places += [("datasets", name, "claim") for name in draft.names("datasets")]
    found = [(place, draft.get(*place, kind=str), False) for place in places]
    found += [(("datasets", name), name, True) for name in draft.names("datasets")]
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
    if name is not None and (name == "default" or name.startswith("kube-")):
        message = f"must be a namespace of its own, not 'default' or 'kube-…', got {shown(name)}"
        yield draft.problem(("namespace",), message, code="cluster-name", hint="for example sweeps")


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


def digests(draft: Draft) -> Iterator[Problem]:
    """Data are what their digest says."""
    for name in draft.names("datasets"):
        place: Path = ("datasets", name, "digest")
        digest = draft.get(*place, kind=str)
        if digest is not None and not DIGEST.fullmatch(digest):
            message = f"must be sha256: and 64 lower-case hex digits, got {shown(digest)}"
            yield draft.problem(place, message, code="data-digest")
