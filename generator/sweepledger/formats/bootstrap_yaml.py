"""`clusters/bootstrap.yaml`: the options of the platform files, and the digest of each written file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from sweepledger.formats import yaml
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller
from sweepledger.structs.values import as_data

BOOTSTRAP_FILE = "clusters/bootstrap.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Options of `sweep cluster bootstrap`, and the digest of every file that it wrote."""

    version: Literal[1] = 1
    controller: Controller
    url: str
    branch: str
    shapes: tuple[Shape, ...]
    public: bool
    files: Mapping[str, str]


def write(bootstrap: Bootstrap, *, banner: str) -> str:
    """Return the text of the file."""
    return yaml.dump(as_data(bootstrap), banner=banner)


def read(content: bytes) -> Bootstrap:
    """Return the content of the file. Raises ValueError for unknown versions and other content."""
    try:
        return msgspec.convert(yaml.load(content), Bootstrap)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a bootstrap file of version 1: {error}") from error
