"""What the collector needs, and what comes to git, when every trial of a batch forges its records.

    python benchmarks/forged.py [TRIALS]      1,000 by default; the bars are 256 MiB, 64 KB a trial, 50 MB in all,
    and no charge beyond timeout times attempts of what ran

Each row is one way to be large: many records, long ones, ones of many small values, lists of artifacts, and records
of other trials. Bytes in git are those of the file and of what the commit adds to a packed repository.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cluster_collect import a_record, collect, finished  # noqa: E402
from benchmarks.scaling import git  # noqa: E402
from sweepledger.formats.record_json import to_line  # noqa: E402
from sweepledger.operations.repository.batch_records import expected_trials  # noqa: E402
from sweepledger.operations.repository.costs import usage_in  # noqa: E402
from sweepledger.repo.batches import StoredBatch  # noqa: E402
from sweepledger.results.bounds import MOST_TRIAL_BYTES  # noqa: E402

TRIALS, FILES = 1000, 4
MOST_BATCH_BYTES = 50_000_000
MOST_MEBIBYTES = 256

RNG = Random(18)  # noqa: S311 - the same forgeries every time
LISTED = [{"path": RNG.randbytes(100).hex(), "bytes": 1, "sha256": "0" * 64} for _ in range(900)]

WAYS: dict[str, Callable[[int], dict[str, Any]]] = {
    "many records, one of them honest": lambda number: (
        {"details": {}} if number == 0 else {"status": "failed", "reason": "exit-1"}
    ),
    "long texts": lambda _: {"details": {"noise": RNG.randbytes(15_000).hex()}},
    "many small values": lambda number: {"details": {"values": [[] for _ in range(10_000 * (number > 0))]}},
    "absurd times": lambda _: {"seconds": 1e10, "started": "0001-01-01T00:00:00Z"},
    "no times": lambda _: {"seconds": 0},
    "reasons of the collector": lambda number: {"status": "failed", "reason": "corrupt"} if number else {},
    "artifacts": lambda number: {"artifacts": LISTED[: 900 if number else 80]},
    "curves and metrics": lambda number: {
        "curves": {"loss": [[step, RNG.random()] for step in range(200)]},
        "metrics": {f"metric-{one:03}-{RNG.randbytes(20).hex()}": RNG.random() for one in range(100)}
        | {"loss": number},
    },
    "rows of other trials, one honest": lambda number: (
        {"details": {"noise": RNG.randbytes(15_000).hex()}} | ({"row": "0" * 64} if number else {})
    ),
}


def forge(way: Callable[[int], dict[str, Any]]) -> Callable[[Path, StoredBatch], None]:
    """Return what leaves the records of a way; the contents repeat from trial to trial, but for who they are."""
    changes = [way(number) for number in range(FILES)]

    def leave(results: Path, batch: StoredBatch) -> None:
        for trial in expected_trials(batch):
            folder = results / batch.name / str(trial.index)
            folder.mkdir(parents=True)
            for number, change in enumerate(changes):
                uid = f"3f9a1c2e-{number:04}-4000-8000-{trial.index:012}"
                record = json.loads(to_line(a_record(batch, trial, uid)))
                (folder / f"{uid}.json").write_text(json.dumps({**record, **change}))

    return leave


def packed(clone: Path) -> int:
    """Return the bytes of a clone's objects, packed."""
    git(clone, "gc", "-q", "--prune=now")
    return sum(path.stat().st_size for path in (clone / ".git/objects/pack").glob("*.pack"))


def main() -> int:
    """Measure each way; 1 if a bar is missed."""
    trials = int(sys.argv[1]) if sys.argv[1:] else TRIALS
    allowed = min(MOST_BATCH_BYTES, trials * MOST_TRIAL_BYTES)
    print(f"{trials} trials with {FILES} records each; at most {MOST_MEBIBYTES} MiB and {allowed:,} bytes")
    missed = 0
    for name, way in WAYS.items():
        with tempfile.TemporaryDirectory() as scratch:
            clone, results = finished(Path(scratch), (trials, 1, 1, 1, 1), forge(way))
            before = packed(clone)
            written = sum(path.stat().st_size for path in results.rglob("*.json"))
            used, records = collect(clone, results)
            size = len(records)
            largest = max(map(len, by_trial(records).values()))
            charged = max(one.seconds for one in usage_in(records.encode()).values())
            grown = packed(clone) - before
        is_met = used.mebibytes <= MOST_MEBIBYTES and size <= allowed and largest <= MOST_TRIAL_BYTES
        missed += not is_met
        print(
            f"{name:34} {written / 1e6:6.0f} MB written {used.seconds:6.1f} CPU s {used.mebibytes:5.0f} MiB"
            f" {size / 1e6:6.2f} MB of records, {largest:6,} a trial, {grown / 1e6:6.2f} MB packed,"
            f" at most {charged:.0f} s charged before the bound"
            f"{'' if is_met else '   MISSED'}",
            flush=True,
        )
    return 1 if missed else 0


def by_trial(records: str) -> dict[str, str]:
    """Return the lines of each trial."""
    trials: dict[str, str] = {}
    for line in records.splitlines(keepends=True):
        trial = json.loads(line).get("trial", "the first line")
        trials[trial] = trials.get(trial, "") + line
    return trials


if __name__ == "__main__":
    sys.exit(main())
