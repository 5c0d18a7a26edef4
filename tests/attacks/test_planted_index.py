"""The index of recorded sweeps in the state folder: of one that somebody planted or damaged nothing is shown."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sweepledger.errors import StorageError
from sweepledger.operations.reports import status
from sweepledger.operations.reports.recorded_status import INDEX
from sweepledger.operations.reports.status import SweepStatus
from sweepledger.repo.state import state_folder
from tests.operations.test_read import recorded
from tests.repository import Sandbox

DEEP = b"[" * 100_000
DOCUMENTS: dict[str, object] = {
    "many levels": DEEP,
    "many levels of objects": b'{"a":' * 100_000,
    "no text": b"\xff\xfe",
    "half a character": b'{"version":"0.1.0","sweeps":{"peak":{"files":"\\ud800"}}}',
    "a long number": b"9" * 100_000,
    "a list": [],
    "nothing": None,
}
ENTRIES: tuple[object, ...] = ([], "files", None)
MEMBERS: dict[str, tuple[str, object]] = {
    "a list of counts": ("counts", [1]),
    "counts that are text": ("counts", "ok"),
    "a count that is text": ("counts", {"ok": "many"}),
    "a count that is an object": ("counts", {"ok": {}}),
    "a count below zero": ("counts", {"ok": -5}),
    "a count that is true": ("counts", {"ok": True}),
    "a count of four hundred digits": ("counts", {"ok": 10**400}),
    "an unknown state": ("counts", {"\x1b[31mok": 3}),
    "a metric that is a number": ("metric", 1),
    "a metric that is a list": ("metric", ["score"]),
    "a metric that moves the cursor": ("metric", "score\x1b[2J\n"),
    "a best trial that is a number": ("best", 5),
    "a best trial that is a list": ("best", ["a"]),
    "a best trial of two cells": ("best", "x,y"),
    "a best trial whose value is text": ("best", ["t0123456789a", "1"]),
    "a best trial that moves the cursor": ("best", ["\x1b[2J", 1.0]),
    "files that are a list": ("read", []),
    "a front that is a number": ("front", 1),
    "a front that is text": ("front", "abc"),
    "a front of lists": ("front", [[1]]),
    "other files": ("files", 1),
}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    folder = tmp_path_factory.mktemp("indexed")
    sandbox = Sandbox.create(folder)
    recorded(sandbox, folder / "volume", "1, 2")
    return sandbox


def shown(sandbox: Sandbox) -> tuple[SweepStatus, ...]:
    return status.sweep_statuses(sandbox.workspace, state=state_folder(sandbox.workspace.repository))


def index_of(sandbox: Sandbox) -> tuple[Path, dict[str, Any]]:
    shutil.rmtree(sandbox.root / ".sweepledger", ignore_errors=True)
    shown(sandbox)
    path = sandbox.root / ".sweepledger" / INDEX
    return path, json.loads(path.read_text())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_damaged_index_is_computed_again(name: str, indexed: Sandbox) -> None:
    path, _ = index_of(indexed)
    expected = shown(indexed)
    content = DOCUMENTS[name]
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    assert shown(indexed) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("keys", "value"),
    [
        *(pytest.param(("peak", *key), value, id=name) for name, (*key, value) in MEMBERS.items()),
        *(pytest.param((sweep,), value) for sweep in ("peak", "other") for value in ENTRIES),
    ],
)
def test_a_damaged_entry_of_the_index_is_computed_again(
    keys: tuple[str, ...], value: object, indexed: Sandbox
) -> None:
    path, document = index_of(indexed)
    expected = shown(indexed)
    entry = document["sweeps"]
    for key in keys[:-1]:
        entry = entry[key]
    entry[keys[-1]] = value
    path.write_text(json.dumps(document))

    assert shown(indexed) == expected


@pytest.mark.parametrize("way", ["unmarked", "a link", "tracked", "tracked in other letters"])
def test_an_index_from_elsewhere_is_refused(way: str, indexed: Sandbox, tmp_path: Path) -> None:
    path, document = index_of(indexed)
    document["sweeps"]["peak"]["metric"] = "planted"
    state, start = indexed.root / ".sweepledger", indexed.git("rev-parse", "HEAD").strip()
    path.write_text(json.dumps(document))
    match way:
        case "unmarked":
            (state / "clone-id").unlink()
        case "a link":
            state.rename(tmp_path / "state")
            state.symlink_to(tmp_path / "state")
        case "tracked":
            indexed.git("add", "--force", str(path))
        case _:
            place = indexed.root / ".SweepLedger" / INDEX
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(path.read_text())
            indexed.git("add", "--force", str(place))

    with pytest.raises(StorageError):
        shown(indexed)

    indexed.git("reset", "-q", "--hard", start)
    indexed.git("clean", "-q", "-ffdx")
