"""Rules for what an overlay of a batch may render."""

import re
from collections import Counter
from collections.abc import Iterator

from generator.policy import jobs
from generator.policy.shape import MALFORMED, OBJECTS, Finding, Manifest, compare
from generator.problems import Problem
from generator.structs.names import LABEL_LENGTH
from generator.structs.settings import Settings

DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
CONFIG_MAP_BYTES = 1024 * 1024


def check(
    batch: str, settings: Settings, manifests: tuple[Manifest, ...], *, place: str
) -> tuple[Problem, ...]:
    """Hold what a batch renders against the rules; `place` is what the problems name as file."""
    config_maps = frozenset(_name(manifest) for manifest in manifests if _kind(manifest)[1] == "ConfigMap")
    found = [
        Problem(place, 0, 0, f"{_title(manifest)}{path}", message, code)
        for manifest in manifests
        for path, message, code in _rules(batch, settings.namespace, manifest, config_maps)
    ]
    for title, count in Counter(map(_title, manifests)).items():
        if count > 1:
            found.append(Problem(place, 0, 0, title, f"must stand once, got {count}", "name-duplicate"))
    return tuple(found)


def _rules(batch: str, namespace: str, manifest: Manifest, config_maps: frozenset[str]) -> Iterator[Finding]:
    kind = _kind(manifest)
    if kind not in OBJECTS:
        allowed = ", ".join(sorted(name for _, name in OBJECTS))
        yield "", f"must be one of {allowed}, got {kind[1]!r} of {kind[0]!r}", "kind-not-allowed"
        return
    compared = tuple(compare(manifest, OBJECTS[kind]))
    yield from compared
    if any(code == MALFORMED for _, _, code in compared):
        return  # the other rules rely on mappings being mappings
    yield from _metadata(batch, namespace, manifest)
    if kind[1] == "ConfigMap":
        yield from _config_map(manifest)
    else:
        yield from jobs.rules(batch, manifest, config_maps)


def _metadata(batch: str, namespace: str, manifest: Manifest) -> Iterator[Finding]:
    name = _name(manifest)
    if name != batch and not name.startswith(f"{batch}-"):
        yield ".metadata.name", f"must begin with the batch's name {batch!r}, got {name!r}", "name-not-ours"
    if len(name) > LABEL_LENGTH or DNS_LABEL.fullmatch(name) is None:
        yield ".metadata.name", f"must be a DNS-1123 label, got {name!r}", "name-invalid"
    found = manifest.get("metadata", {}).get("namespace")
    if found != namespace:
        yield ".metadata.namespace", f"must be {namespace!r}, got {found!r}", "namespace-wrong"


def _config_map(manifest: Manifest) -> Iterator[Finding]:
    if manifest.get("immutable") is not True:
        yield ".immutable", "must be true: a running Job reads it", "config-map-mutable"
    size = sum(len(str(text).encode()) for text in manifest.get("data", {}).values())
    if size > CONFIG_MAP_BYTES:
        yield ".data", f"must be at most {CONFIG_MAP_BYTES} bytes, got {size}", "config-map-too-large"


def _kind(manifest: Manifest) -> tuple[str, str]:
    return str(manifest.get("apiVersion")), str(manifest.get("kind"))


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _title(manifest: Manifest) -> str:
    return f"{manifest.get('kind')}/{_name(manifest)}"
