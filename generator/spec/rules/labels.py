"""Labels, and what has their form: nobody's are taken away, least of all our own."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.ASCII)
LONGEST_PREFIX = 253
CONTROLLERS = (
    "sweepledger.dev",
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "argoproj.io",
    "fluxcd.io",
    "kubeflow.org",
)
"""Domains whose labels tell programs what to do with an object."""
UNPREFIXED = frozenset({"controller-uid", "job-name"})
"""What Kubernetes itself still writes on a Job's pods."""


def is_key(text: str) -> bool:
    """Tell whether a text is a label's key: a name, with or without a domain before it."""
    prefix, slash, name = text.rpartition("/")
    fits = PREFIX.fullmatch(prefix) and len(prefix) <= LONGEST_PREFIX
    return NAME.fullmatch(name) is not None and bool(fits if slash else not prefix)


def is_resource(text: str) -> bool:
    """Tell whether a text can be the name of an extended resource: never one without a domain."""
    return "/" in text and is_key(text) and not _is_of(text, ("kubernetes.io",))


def labels(draft: Draft) -> Iterator[Problem]:
    """Labels have Kubernetes' form."""
    maps: list[Path] = [("labels",), *(("pools", name, "selector") for name in draft.names("pools"))]
    for place in maps:
        for key in draft.names(*place):
            yield from _key(draft, (*place, key), key, at_key=True)
            yield from _value(draft, (*place, key))
    for name in draft.names("pools"):
        yield from _value(draft, ("pools", name, "gpu_type"))
        for place, _ in draft.items("pools", name, "tolerations"):
            yield from _key(draft, (*place, "key"), draft.get(*place, "key", kind=str))
            yield from _value(draft, (*place, "value"))


def reserved(draft: Draft) -> Iterator[Problem]:
    """Labels that programs act on are for these programs to write."""
    for key in draft.names("labels"):
        if key in UNPREFIXED or _is_of(key, CONTROLLERS):
            message = f"must not be a label that a program acts on, got {shown(key)}"
            hint = "take a domain of your own, for example example.org/team"
            yield draft.problem(("labels", key), message, code="label-reserved", hint=hint, at_key=True)


def _is_of(key: str, domains: tuple[str, ...]) -> bool:
    prefix = key.rpartition("/")[0]
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _key(draft: Draft, place: Path, text: str | None, *, at_key: bool = False) -> Iterator[Problem]:
    if text is not None and not is_key(text):
        message = f"must be a label's key such as example.org/team, got {shown(text)}"
        yield draft.problem(place, message, code="label", at_key=at_key)


def _value(draft: Draft, place: Path) -> Iterator[Problem]:
    text = draft.get(*place, kind=str)
    if text and not NAME.fullmatch(text):
        message = (
            "must be at most 63 letters, digits and inner - _ ., "
            f"beginning and ending with a letter or digit, got {shown(text)}"
        )
        yield draft.problem(place, message, code="label")
