"""Overlays of tests, built by the real kustomize beside the real bases."""

import shutil
from pathlib import Path
from typing import Any

from sweepledger.render.overlay import Overlay
from sweepledger.repo import files, kustomize
from sweepledger.structs.batch import Batch
from sweepledger.structs.settings import Settings
from tests.render.judging import check_batch, refusals
from tests.render.platforms import trial_policy
from tests.sweeps import BASE, SETTINGS, overlay_of, some_bases


def rendered(batch: Batch, settings: Settings = SETTINGS) -> Overlay:
    return overlay_of(batch, some_bases(), settings)


def built(batch: Batch, folder: Path, settings: Settings = SETTINGS) -> tuple[Any, ...]:
    return _build(rendered(batch, settings), folder)


def accepted(batch: Batch, folder: Path, settings: Settings = SETTINGS) -> tuple[Overlay, tuple[Any, ...]]:
    """Render and build a batch, once, and see that the check accepts it and admission its Jobs and their pods."""
    made = rendered(batch, settings)
    manifests = _build(made, folder)
    assert check_batch(made.name, settings, manifests, file="x") == ()
    for job in (manifest for manifest in manifests if manifest["kind"] == "Job"):
        for judged in (job, job["spec"]["template"]):
            assert refusals(trial_policy(settings), judged) == set()
    return made, manifests


def codes(manifests: tuple[Any, ...], settings: Settings, image: str) -> set[str]:
    """Return the codes of what the check says of a built batch."""
    (name,) = {one["metadata"]["labels"]["sweepledger.dev/batch"] for one in manifests}
    return {one.code for one in check_batch(name, settings, manifests, file="overlay", image=image)}


def _build(made: Overlay, folder: Path) -> tuple[Any, ...]:
    if not (folder / "base").exists():
        shutil.copytree(BASE, folder / "base", ignore=shutil.ignore_patterns("__pycache__"))
    target = folder / "overlays/active" / made.name
    files.write_folder(target, made.tree)
    return kustomize.build(target)


def job_of(manifests: tuple[Any, ...]) -> dict[str, Any]:
    return next(manifest for manifest in manifests if manifest["kind"] == "Job")


def pod_of(manifests: tuple[Any, ...]) -> dict[str, Any]:
    spec: dict[str, Any] = job_of(manifests)["spec"]["template"]["spec"]
    return spec


def pod_templates(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, dict) and isinstance(node.get("spec"), dict) and "containers" in node["spec"]:
        return [node]
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list | tuple) else ()
    return [template for part in parts for template in pod_templates(part)]


def named(items: list[dict[str, Any]], name: str, key: str = "name") -> dict[str, Any]:
    (document,) = [item for item in items if item[key] == name]
    return document


def unordered(value: Any) -> Any:
    """Sort lists of named things: Kubernetes takes them as sets, and kustomize orders them its own way."""
    if isinstance(value, dict):
        return {key: unordered(item) for key, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        made = [unordered(item) for item in value]
        return sorted(made, key=lambda item: (str(item.get("mountPath", "")), str(item.get("name", ""))))
    return value
