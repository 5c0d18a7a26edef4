"""`clusters/bootstrap.yaml`: the options of the platform files, and the digest of each written file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

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
        if data["version"] != VERSION:
            raise ValueError(f"a bootstrap file must have version {VERSION}, but got {data['version']!r}")
        return msgspec.convert({**data, "is_public": data["public"]}, Bootstrap)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise ValueError(f"not a bootstrap file of version {VERSION}: {error!r}") from error
