"""The data of a workload, verified byte for byte before use. Nothing is ever downloaded.

`mnist` and `fashion-mnist` are the four published IDX files, as they are or with `.gz` added. For `mnist`,
the 5,000 digits of `mnist-5k` do where the four are absent, under their own name.

torch stays outside: this module and the loaders beneath it know bytes, `model` makes tensors of them.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from trainer import digits, idx
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.images import CLASSES, Dataset, Images

__all__ = ["CLASSES", "MANIFESTS", "WORKLOADS", "Dataset", "Images", "load"]

MANIFESTS: Mapping[str, idx.Manifest] = MappingProxyType(
    {manifest.name: manifest for manifest in (idx.MNIST, idx.FASHION_MNIST)}
)
"""What is published whole, by the name of its workload."""
WORKLOADS = (*sorted(MANIFESTS), digits.NAME)


def load(workload: str, folder: Path | None, manifests: Mapping[str, idx.Manifest] = MANIFESTS) -> Dataset:
    """Read and verify a workload's data; without a folder, the digits of a package. Raises TrialError."""
    smaller = workload in (idx.MNIST.name, digits.NAME)
    if folder is None and not smaller:
        raise TrialError([Problem("SWEEP_DATA", f"must name the folder that holds {workload}", BAD_SWEEP)])
    found = None
    if folder is not None and workload in manifests:
        found = idx.load(folder, manifests[workload])
    if found is None and smaller:
        found = digits.load(folder)
    if found is None:
        raise TrialError([_absent(workload, folder)])
    return found


def _absent(workload: str, folder: Path | None) -> Problem:
    accepted = [f"the four IDX files of {workload}"] if workload != digits.NAME else []
    hint = None
    if workload in (idx.MNIST.name, digits.NAME):
        accepted.insert(0, digits.ROWS_FILE)
        hint = "`python -m trainer prepare mnist` puts 5,000 digits there"
    but = "holds neither" if len(accepted) > 1 else "does not"
    return Problem(str(folder), f"must hold {' or '.join(accepted)}, but {but}", BAD_SWEEP, hint)
