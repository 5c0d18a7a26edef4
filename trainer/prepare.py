"""`python -m trainer prepare WORKLOAD [--from FOLDER]`: data made ready for trials, once for each volume.

The published files are verified and become one file in `SWEEP_DATA` that all trials of a node map
(`prepared`). They are looked for there, or in the folder after `--from`, which is only read. For `mnist`
without them, 5,000 digits of an installed package are put there.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainer import data, digits, prepared
from trainer.contract import BAD_SWEEP, Problem, TrialError

USAGE: str = f"prepare {'|'.join(data.WORKLOADS)} [--from FOLDER]"


def command(arguments: Sequence[str], folder: Path | None) -> str:
    """Do what the arguments after `prepare` ask for. Says what it did; raises TrialError."""
    match arguments:
        case [workload]:
            source = None
        case [workload, "--from", named]:
            source = Path(named)
        case [workload, option] if option.startswith("--from="):
            source = Path(option.removeprefix("--from="))
        case _:
            workload = ""
    if workload not in data.WORKLOADS:
        found = " ".join(["prepare", *arguments])[:80]
        raise TrialError([Problem("python -m trainer", f"expected {USAGE}, got {found}", BAD_SWEEP)])
    if folder is None:
        hint = f"`SWEEP_DATA=data python -m trainer prepare {workload}`"
        raise TrialError([Problem("SWEEP_DATA", "must name the folder to prepare", BAD_SWEEP, hint)])
    return prepare(workload, folder, source)


def prepare(
    workload: str,
    folder: Path,
    source: Path | None = None,
    manifests: Mapping[str, data.Manifest] = data.MANIFESTS,
) -> str:
    """Put what trials map into the folder unless it is there. Says what it did; raises TrialError."""
    manifest = manifests.get(workload)
    if manifest is None:
        return digits.prepare(folder)
    path = prepared.place(folder, manifest)
    done = "wrote"
    if path.exists():
        try:
            prepared.load(folder, manifest)
        except TrialError:
            done = "replaced a damaged file by"
        else:
            return f"nothing to do: {path} is right"
    dataset = data.published(source or folder, manifest)
    if dataset is None:
        if data.is_mnist(workload) and source is None:
            return digits.prepare(folder)
        raise TrialError([data.absent(workload, source or folder)])
    prepared.write(folder, manifest, dataset)
    # What is on the disk now, read as trials will.
    prepared.load(folder, manifest)
    images = dataset.train.count + dataset.test.count
    return f"{done} {path} ({images} images of {dataset.name}, {dataset.digest})"


if __name__ == "__main__":
    from trainer.__main__ import main

    sys.exit(main(["prepare", *sys.argv[1:]], os.environ))
