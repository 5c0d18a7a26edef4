"""`clusters/bootstrap.yaml`: what the platform was asked for with, and what was written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from generator.formats import yaml
from generator.structs.settings import Controller
from generator.structs.sweep import Shape

BOOTSTRAP_FILE = "clusters/bootstrap.yaml"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What was asked for, and the digest of every file that was written."""

    controller: Controller
    url: str
    branch: str
    shapes: tuple[Shape, ...] = ()
    is_public: bool = False
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def write(bootstrap: Bootstrap, *, banner: str) -> str:
    """Write it as the file holds it."""
    data = {
        "version": VERSION,
        "controller": bootstrap.controller.value,
        "url": bootstrap.url,
        "branch": bootstrap.branch,
        "shapes": [shape.value for shape in bootstrap.shapes],
        "public": bootstrap.is_public,
        "files": dict(sorted(bootstrap.files.items())),
    }
    return yaml.dump(data, banner=banner)


def read(content: bytes) -> Bootstrap:
    """Read it. Raises ValueError if it is not one of a version this program knows."""
    data = yaml.load(content)
    try:
        return _bootstrap(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a bootstrap file of version {VERSION}: {error!r}") from error


def _bootstrap(data: dict[str, Any]) -> Bootstrap:
    if data["version"] != VERSION:
        raise ValueError(f"a bootstrap file must have version {VERSION}, but got {data['version']!r}")
    texts = (data["url"], data["branch"], *data["files"], *data["files"].values())
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a bootstrap file must hold texts for url, branch and files")
    return Bootstrap(
        controller=Controller(data["controller"]),
        url=data["url"],
        branch=data["branch"],
        shapes=tuple(Shape(shape) for shape in data["shapes"]),
        is_public=data["public"] is True,
        files=dict(data["files"]),
    )
