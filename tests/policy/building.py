"""What the generator really renders, and ways into it."""

import shutil
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sweepledger.repo import files, kustomize
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from tests.sweeps import BASE, a_batch, overlay_of, some_bases

Rendered = dict[Shape, tuple[str, tuple[Any, ...]]]


def rendered(folder: Path, sweep: Sweep, settings: Settings, **program: Any) -> Rendered:
    """Render a batch of each shape: its name, and what kustomize makes of it."""
    shutil.copytree(BASE, folder / "base")
    made = {}
    for shape in Shape:
        requested = replace(sweep, run=replace(sweep.run, nodes=2 if shape.is_distributed else 1))
        batch = overlay_of(a_batch(shape, sweep=requested, **program), some_bases(), settings)
        target = folder / "overlays/active" / batch.name
        files.write_folder(target, batch.tree)
        made[shape] = (batch.name, kustomize.build(target))
    return made


def of_kind(manifests: list[Any], kind: str) -> dict[str, Any]:
    document: dict[str, Any] = next(manifest for manifest in manifests if manifest["kind"] == kind)
    return document


def job(manifests: list[Any]) -> dict[str, Any]:
    return of_kind(manifests, "Job")


def pod(manifests: list[Any]) -> dict[str, Any]:
    spec: dict[str, Any] = job(manifests)["spec"]["template"]["spec"]
    return spec


def container(manifests: list[Any]) -> dict[str, Any]:
    document: dict[str, Any] = pod(manifests)["containers"][0]
    return document


def context(manifests: list[Any]) -> dict[str, Any]:
    security_context: dict[str, Any] = container(manifests)["securityContext"]
    return security_context


def volume(manifests: list[Any], name: str) -> dict[str, Any]:
    document: dict[str, Any] = next(each for each in pod(manifests)["volumes"] if each["name"] == name)
    return document


def mount(manifests: list[Any], name: str) -> dict[str, Any]:
    document: dict[str, Any] = next(
        each for each in container(manifests)["volumeMounts"] if each["name"] == name
    )
    return document
