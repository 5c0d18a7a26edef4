"""A change makes two batches, or two sweeps, share what belongs to one: a name, a folder of results, a spec."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.errors import SpecError
from tests.attacks.changing import Change
from tests.attacks.edits import Edit, codes

pytestmark = pytest.mark.usefixtures("needs_kustomize")

ACTIVE, ARCHIVE = "overlays/active", "overlays/archive"


def batch(root: Path, sweep: str) -> Path:
    (folder,) = root.glob(f"overlays/*/{sweep}-b1-*")
    return folder


def copied(sweep: str, place: str, name: Callable[[str], str] = str, *, renames: bool = False) -> Edit:
    """Copy a batch under another name; with `renames` its files use that name, too."""

    def change(root: Path) -> None:
        before = batch(root, sweep)
        after = root / place / name(before.name)
        shutil.copytree(before, after)
        for file in after.iterdir() if renames else ():
            file.write_text(file.read_text().replace(before.name, after.name))

    return change


def replaced(file: str, old: str, new: str) -> Edit:
    """Replace a text in a file of the new batch; {} is the batch of another sweep."""

    def change(root: Path) -> None:
        path, other = batch(root, "new") / file, batch(root, "running").name
        before = path.read_text()
        after = before.replace(old.format(path.parent.name), new.format(other))
        assert after != before
        path.write_text(after)

    return change


def linked(path: str, target: str) -> Edit:
    return lambda root: (root / path).symlink_to(target)


def put(path: str, text: str = "") -> Edit:
    def change(root: Path) -> None:
        place = root / path.format(new=batch(root, "new").name, running=batch(root, "running").name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    return change


BATCHES: dict[str, tuple[Edit, str]] = {
    "active and archived": (copied("running", ARCHIVE), "batch-active-twice"),
    "new and archived": (copied("new", ARCHIVE), "batch-moved"),
    "recorded and active again": (copied("peak", ACTIVE), "batch-active-twice"),
    "under the name of a recorded sweep": (
        copied("new", ACTIVE, lambda name: name.replace("new-", "peak-"), renames=True),
        "batch-forged",
    ),
    "in capital letters": (copied("running", ACTIVE, str.upper), "file-name"),
    "with a capital letter": (copied("running", ACTIVE, str.capitalize), "file-name"),
    "with a dot at the end": (copied("running", ACTIVE, lambda name: f"{name}."), "file-name"),
    "with a blank at the end": (copied("running", ACTIVE, lambda name: f"{name} "), "file-name"),
    "with a zero before its number": (
        copied("running", ACTIVE, lambda name: name.replace("-b1-", "-b01-"), renames=True),
        "overlay-layout",
    ),
    "with the next number": (
        copied("running", ACTIVE, lambda name: name.replace("-b1-", "-b2-"), renames=True),
        "batch-forged",
    ),
    "with another digest": (
        copied("running", ACTIVE, lambda name: f"{name[:-8]}{'0' * 8}", renames=True),
        "batch-forged",
    ),
    "that writes to the folder of another": (replaced("job.yaml", "{}/", "{}/"), "volume-not-allowed"),
    "whose lock has the name of another": (replaced("batch.json", "{}", "{}"), "batch-forged"),
    "whose lock has another number": (replaced("batch.json", '"number": 1', '"number": 2'), "batch-forged"),
    "whose lock has the spec of another": (
        replaced("batch.json", "sweeps/new.yaml", "sweeps/running.yaml"),
        "batch-forged",
    ),
    "results behind a link": (linked("results/new", "peak"), "file-mode"),
    "records of a batch that runs": (
        put("results/running/records/{running}.jsonl"),
        "history-unsigned",
    ),
    "records of a batch that is new": (put("results/new/records/{new}.jsonl"), "history-unsigned"),
    "results in other letters": (put("results/Peak/summary.csv"), "file-name"),
    "results of a sweep that is new": (
        lambda root: shutil.copytree(root / "results/peak", root / "results/new"),
        "history-unsigned",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BATCHES)
def test_no_two_batches_have_one_folder_of_results(name: str, change: Change) -> None:
    edit, code = BATCHES[name]
    edit(change.sandbox.root)

    assert code in codes(change.sandbox)


@pytest.mark.parametrize("place", ["sweeps/other.yaml", "sweeps/running.yml", "sweeps/Running.yaml"])
def test_no_two_specs_are_of_one_sweep(place: str, change: Change) -> None:
    change.sandbox.write(place, (change.sandbox.root / "sweeps/running.yaml").read_text())

    with pytest.raises(SpecError):
        change.sandbox.check(base="origin/main")
