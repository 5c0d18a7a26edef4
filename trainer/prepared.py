"""The prepared file, `NAME.u8`: a dataset as it is trained on, which all trials of a node map and share.

    4,096 bytes  one line of JSON (name, digest of the published files, SHA-256 of the rest) and spaces
    the rest     training pixels, training classes, test pixels, test classes: a byte each

It is verified whole at every start (a tenth of a second for CIFAR-10, against two for its archive): of what
can be had everywhere the sum stands in the manifest, of what cannot the file's own guards against damage.
"""

import json
from pathlib import Path
from typing import Protocol

from trainer import files
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.images import Dataset, Images, Layout

HEADER = 4096
"""Bytes: a page, so that the pixels begin on one."""


class Published(Protocol):
    """What a manifest of any form tells about its dataset."""

    @property
    def name(self) -> str:
        """The dataset's name."""

    @property
    def layout(self) -> Layout:
        """How many images of which form it has."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of all forms in which it is published."""

    @property
    def prepared(self) -> str | None:
        """SHA-256 of what comes after the header; None where it is not known."""


def place(folder: Path, manifest: Published) -> Path:
    """Say where a dataset's prepared file is."""
    return folder / f"{manifest.name}.u8"


def load(folder: Path, manifest: Published) -> Dataset | None:
    """Map and verify the prepared file; None where there is none. Raises TrialError."""
    path, layout = place(folder, manifest), manifest.layout
    if not path.exists():
        return None
    content = files.mapped(path, length=HEADER + layout.length)
    found = files.sha256(content[HEADER:])
    header = bytes(content[:HEADER])
    digest = next((it for it in manifest.digests if header == _header(manifest.name, it, found)), None)
    if digest is None or manifest.prepared not in (None, found):
        message = f"must be what is prepared of {manifest.name}, got other bytes (their SHA-256: {found})"
        hint = f"`python -m trainer prepare {manifest.name}` makes it anew; nothing was trained on it"
        raise TrialError([Problem(str(path), message, BAD_SWEEP, hint)])
    train = HEADER + layout.train * (layout.image + 1)
    return Dataset(
        manifest.name,
        digest,
        _images(content[HEADER:train], layout, layout.train),
        _images(content[train:], layout, layout.test),
    )


def write(folder: Path, manifest: Published, dataset: Dataset) -> Path:
    """Write the prepared file of a dataset that has been verified. Raises TrialError."""
    body = b"".join(
        part for images in (dataset.train, dataset.test) for part in (images.pixels, images.labels)
    )
    path = place(folder, manifest)
    files.write(path, _header(dataset.name, dataset.digest, files.sha256(body)), body)
    return path


def _header(name: str, digest: str, body: str) -> bytes:
    line = json.dumps({"body": f"sha256:{body}", "data": digest, "name": name}, sort_keys=True)
    return line.encode().ljust(HEADER - 1) + b"\n"


def _images(part: memoryview, layout: Layout, count: int) -> Images:
    pixels = count * layout.image
    return Images(part[:pixels], part[pixels:], channels=layout.channels, side=layout.side)
