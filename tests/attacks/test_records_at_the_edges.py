"""Records at the edges of numbers, times, texts and JSON: each is refused with a reason, and the collector goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.repo.results_volume import VolumeResults
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox

MEMBERS: dict[str, dict[str, object]] = {
    "wrong-type:seconds": {"seconds": True},
    "wrong-value:seconds": {"seconds": 10**22},
    "wrong-value:finished": {"finished": "2026-12-31T23:59:60Z"},
    "wrong-value:started": {"started": "0000-01-01T00:00:00Z"},
    "wrong-value:metrics": {"metrics": {"score": 1, "\ud800": 1}},
    "wrong-value:node": {"node": "\ud800"},
    "wrong-value:disruptions": {"disruptions": 10**30},
    "wrong-value:attempt": {"attempt": 10**30},
    "wrong-value:curves": {"curves": {"loss": [[3, 1.0], [-1, 2.0]]}},
    "wrong-value:bytes": {"artifacts": [{"path": "a", "bytes": 2**70, "sha256": "0" * 64}]},
    "number-too-large": {"shared": 10**300},
    "unknown-version": {"version": True},
}
TEXTS: dict[str, Callable[[str], bytes]] = {
    "duplicate-key": lambda text: (text[:-1] + ',"\\u0073econds":0}').encode(),
    "too-deep": lambda text: text.replace('"details": {}', f'"details": {"[" * 5000}{"]" * 5000}').encode(),
    "not-utf8": lambda text: text.encode("utf-16"),
    "not-json": lambda text: text.replace('"seconds": 1.5', '"seconds": 01.5').encode(),
    "trailing-data": lambda text: (text + "\0").encode(),
    "wrong-type:seconds": lambda text: text.replace('"seconds": 1.5', '"seconds": 1E400').encode(),
    "wrong-type:attempt": lambda text: text.replace('"attempt": 1', '"attempt": 1e0').encode(),
    "too-large": lambda text: (" " * 40_000 + text).encode(),
    "number-too-large": lambda text: text.replace('"score": 0.0', f'"score": {"1" * 20_000}').encode(),
}


def read(sandbox: Sandbox, results: Path, edit: Callable[[str], bytes], **members: object) -> BatchAttempts:
    sandbox.merged()
    batch = stored(sandbox)
    file = leave(results, batch, 0, **members)
    file.write_bytes(edit(file.read_text()))
    return BatchAttempts.read(VolumeResults(results), batch, by_engine=False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("reason", "edit", "members"),
    [
        *((reason, edit, {}) for reason, edit in TEXTS.items()),
        *((reason, str.encode, members) for reason, members in MEMBERS.items()),
    ],
)
def test_records_at_the_edges_are_refused(
    reason: str, edit: Callable[[str], bytes], members: dict[str, object], sandbox: Sandbox, tmp_path: Path
) -> None:
    attempts = read(sandbox, tmp_path, edit, **members)

    assert (attempts.records, attempts.passed_over) == ((), {0: (reason,)})


@pytest.mark.parametrize("seconds", [-0.0, 5e-324, 1e10])
def test_the_smallest_and_largest_times_are_read(seconds: float, sandbox: Sandbox, tmp_path: Path) -> None:
    assert len(read(sandbox, tmp_path, str.encode, seconds=seconds).records) == 1
