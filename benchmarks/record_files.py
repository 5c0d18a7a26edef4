"""Read a results volume as the collector does: every file judged, each fault counted for what it is.

    python benchmarks/record_files.py [FILES]      100,000 by default; the bar is 5 s of CPU and 100 MiB

Every twentieth file is corrupted, in one of ten ways in turn. The files are written by one process and read
by another, which holds none of what it has counted.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from sweepledger.formats import record_json  # noqa: E402
from sweepledger.formats.record_json import CorruptRecord, to_line  # noqa: E402
from sweepledger.repo import results_volume  # noqa: E402
from tests.builders import a_record  # noqa: E402

BATCH = "lr-b1-3f9a1c2e"
FILES = 100_000
ONE_IN = 20
BARS = {"cpu_seconds": 5.0, "mebibytes": 100.0}

WAYS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "truncated": lambda good: good[: len(good) // 2],
    "trailing-data": lambda good: good + good,
    "not-utf8": lambda good: good.decode().encode("utf-16"),
    "not-json": lambda good: b"\0" * len(good),
    "too-deep": lambda good: good.replace(
        b'"details":{', b'"details":{"a":' + b"[" * 50 + b"]" * 50 + b",", 1
    ),
    "duplicate-key": lambda good: b'{"uid":"other",' + good[1:],
    "wrong-value:metrics": lambda good: good.replace(b"0.94", b'"0.94"'),
    "unknown-version": lambda good: good.replace(b'"version":1', b'"version":3'),
    "missing:row": lambda good: good.replace(b'"row":"' + b"ab" * 32 + b'",', b""),
}
"""What is done to a good file, by what is said of it then."""


def good(index: int) -> bytes:
    """Write the record that a launcher would."""
    text = to_line(a_record(index, row="ab" * 32, batch=BATCH, code="c0de" * 10, data=None, node="node-1"))
    return f"{text}\n".encode()


def write(results: Path, files: int) -> Counter[str]:
    """Fill a volume; give what there is of each kind."""
    ways, counts = list(WAYS.items()), Counter[str]()
    for index in range(files):
        folder = results / BATCH / str(index)
        folder.mkdir(parents=True)
        content, kind = good(index), "record"
        if index % ONE_IN == 0:
            kind, spoil = ways[index // ONE_IN % len(ways)]
            content = spoil(content)
        (folder / f"pod-{index}.json").write_bytes(content)
        counts[kind] += 1
    return counts


def read(results: Path, files: int) -> Counter[str]:
    """Read it as the collector does; count what is found."""
    counts = Counter[str]()
    for index in range(files):
        for judged in map(record_json.read, results_volume.attempt_records(results, BATCH, str(index))):
            counts[judged.reason if isinstance(judged, CorruptRecord) else "record"] += 1
    return counts


def measured(results: Path, files: int) -> dict[str, object]:
    """Read in a process of its own; give counts, CPU seconds and the most memory it ever had."""
    done = subprocess.run(
        [sys.executable, __file__, "--read", str(results), str(files)],
        check=True,
        capture_output=True,
        text=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def tell(results: Path, files: int) -> None:
    """Be that process."""
    begin = time.process_time()
    counts = read(results, files)
    seconds = time.process_time() - begin
    # Not getrusage: what it says of the most memory begins with that of whoever started this process.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"found": dict(counts), "cpu_seconds": round(seconds, 2), "mebibytes": round(peak, 1)}))


def main() -> int:
    """Write, read, compare."""
    if sys.argv[1:2] == ["--read"]:
        tell(Path(sys.argv[2]), int(sys.argv[3]))
        return 0
    files = int(sys.argv[1]) if sys.argv[1:] else FILES
    with tempfile.TemporaryDirectory() as folder:
        counts = write(Path(folder), files)
        answer = measured(Path(folder), files)
    print(f"{files} files, {files - counts['record']} of them corrupted in {len(WAYS)} ways")
    print(f"counts exact: {answer['found'] == dict(counts)}")
    for name, bar in BARS.items():
        print(f"{name}: {answer[name]} (bar: {bar:g} for {FILES} files)")
    return 0 if answer["found"] == dict(counts) else 1


if __name__ == "__main__":
    sys.exit(main())
