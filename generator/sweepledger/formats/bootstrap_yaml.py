"""`clusters/bootstrap.yaml`: the options of the platform files, and the digest of each written file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sweepledger.formats import yaml
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller

BOOTSTRAP_FILE = "clusters/bootstrap.yaml"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Options of `sweep cluster bootstrap`, and the digest of every file that it wrote."""

    controller: Controller
    url: str
    branch: str
    shapes: tuple[Shape, ...] = ()
    is_public: bool = False
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def write(bootstrap: Bootstrap, *, banner: str) -> str:
    """Return the text of the file."""
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
    """Return the content of the file. Raises ValueError for unknown versions and anything else."""
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
    if not isinstance(data["shapes"], list):
        raise TypeError(f"shapes must be a list, but got {data['shapes']!r}")
    return Bootstrap(
        controller=Controller(data["controller"]),
        url=data["url"],
        branch=data["branch"],
        shapes=tuple(Shape(shape) for shape in data["shapes"]),
        is_public=data["public"] is True,
        files=dict(data["files"]),
    )
