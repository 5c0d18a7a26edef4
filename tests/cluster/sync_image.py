"""The image of `sweep sync`: the collector's, and MLflow's client from the libraries of the stores.

It is one more layer on the collector's archive, so it needs neither a registry nor a build of Debian.
"""

import io
import tarfile
from pathlib import Path

from tests.cluster import oci
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.building import ROOT
from tests.cluster.images import Image, Images

NAME = "localhost/sweepledger-sync"
LIBRARIES = ROOT / ".venv/stores/lib/python3.11/site-packages"
"""Of the Python that the collector's Debian has, too."""
LARGE = frozenset(
    {"numpy", "pandas", "pyarrow", "scipy", "sklearn", "wandb", "tensorboard", "tensorflow", "matplotlib"}
)
"""Libraries that a client of a server does without: most of a gigabyte."""
PLACE = "opt/clients"
SEARCHED = "opt/sweepledger/lib/python3.11/site-packages/clients.pth"
"""Lets the collector's Python look there after its own libraries."""


def build(images: Images, folder: Path) -> Image:
    """Make the image in a folder. Raises NoClusterToolsError."""
    if not (LIBRARIES / "mlflow").is_dir():
        raise NoClusterToolsError("no libraries of the stores (`make test-full` installs them)")
    folder.mkdir()
    layer, layout, archive = folder / "layer", folder / "layout", folder / "sync.tar"
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as made:
        for path in sorted(LIBRARIES.iterdir()):
            if path.name.partition(".")[0] not in LARGE and path.name != "__pycache__":
                made.add(path, f"{PLACE}/{path.name}", filter=_for_everybody)
        text = f"/{PLACE}\n".encode()
        entry = tarfile.TarInfo(SEARCHED)
        entry.size = len(text)
        made.addfile(entry, io.BytesIO(text))
    oci.extend(images.collector.archive, layer, layout)
    oci.pack(layout, archive, NAME)
    return Image(NAME, archive, oci.digest(archive))


def _for_everybody(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if entry.name.endswith((".pyc", "__pycache__")):
        return None
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry
