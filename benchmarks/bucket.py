"""Trials whose results go to a real S3 server: records lost under faults, the collector's cost, a large checkpoint.

python benchmarks/bucket.py faults [TRIALS]      1,000 by default; the bar is no record lost, every doubt reported
python benchmarks/bucket.py records [RECORDS]    10,000; 6 s of CPU, 256 MiB, 2 requests per trial
python benchmarks/bucket.py checkpoint [BYTES]   1 GB; saved within 30 s of SIGTERM, restored equal
python benchmarks/bucket.py start                what the sidecar adds to a trial without artifacts; 0.5 s
"""

import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "generator")]

from sweepledger.bucket import layout, trial_sidecar  # noqa: E402
from sweepledger.bucket.layout import ObjectKind, ObjectName  # noqa: E402
from sweepledger.bucket.objects import SMALL_AT_ONCE, Bucket  # noqa: E402
from sweepledger.bucket.results import BucketResults  # noqa: E402
from sweepledger.bucket.trial_sidecar import Sidecar, SidecarOptions, Stop  # noqa: E402
from sweepledger.formats import record_json  # noqa: E402
from tests.bucket import servers  # noqa: E402
from tests.bucket.pods import BATCH, Pod  # noqa: E402
from tests.bucket.servers import StorageServer  # noqa: E402
from tests.builders import a_record  # noqa: E402

SEED = 21
FAULTS = ("none", "none", "killed", "outage", "expired", "duplicate", "forged", "lost")


@contextmanager
def server() -> Iterator[tuple[StorageServer, Path]]:
    """Run an S3 server with an empty bucket."""
    with tempfile.TemporaryDirectory(prefix="sweep-bucket-") as folder:
        (Path(folder) / "server").mkdir()
        with servers.running("s3", Path(folder) / "server") as running:
            yield running, Path(folder)


def content(index: int, **changes: Any) -> bytes:
    """Return the record that a launcher writes."""
    fields = {"batch": BATCH, "uid": f"pod-{index}", "index": index, **changes}
    return (
        record_json.to_line(a_record(index, **{k: v for k, v in fields.items() if k != "index"})).encode()
        + b"\n"
    )


class Trial:
    """A trial under one fault: its sidecars, and what its pods say at the end."""

    def __init__(self, running: StorageServer, folder: Path, index: int) -> None:
        self.running, self.folder, self.index = running, folder / str(index), index
        self.messages: list[tuple[str, str, dict[str, Any]]] = []
        """Of each pod: its uid, and what launcher and sidecar said."""

    def attempt(
        self,
        uid: str,
        text: bytes,
        *,
        kill_after: int | None = None,
        grace: float = 10,
        reported: bool = True,
    ) -> None:
        """Let a launcher write a record and a sidecar save it, or be killed after so many requests."""
        place = self.folder / uid
        for name in ("results", "state"):
            (place / name).mkdir(parents=True)
        (place / "log").touch()
        options = SidecarOptions(
            self.running.url, BATCH, self.index, uid, str(place / "results"), str(place / "state"),
            secrets=self.running.secrets, grace=grace, log=str(place / "log"),
        )  # fmt: skip
        stop = Stop()
        moved = Sidecar(options, stop, lambda _: None)
        if kill_after is not None:
            limit_requests(moved.bucket, kill_after)
        try:
            moved.restore()
            (place / "results" / f"{uid}.json").write_bytes(text)
            (place / "results" / f"{uid}.out").write_bytes(b"output\n")
            stop.request(grace)
            moved.save()
        except KilledError:
            pass
        if reported:
            said = json.loads((place / "log").read_text() or "{}")
            self.messages.append((uid, text.decode(), said if kill_after is None else {}))


class KilledError(BaseException):
    """The node is gone."""


def limit_requests(bucket: Bucket, most: int) -> None:
    """Let the process of a sidecar end at a request."""
    left, perform = [most], bucket._try  # noqa: SLF001 - where every request goes through

    def counted(key: str, action: Callable[..., Any]) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError
        return perform(key, action)

    bucket._try = counted  # type: ignore[method-assign] # noqa: SLF001


def faults(trials: int) -> None:  # noqa: PLR0915 - one case after the other
    """Run trials under faults, and compare what the collector accepts with what their launchers wrote."""
    trial_sidecar.FIRST_PAUSE = 0.1
    chance = random.Random(SEED)  # noqa: S311 - a choice of faults
    with server() as (running, folder):
        written: dict[int, set[bytes]] = {}
        pods: dict[int, list[tuple[str, str, dict[str, Any]]]] = {}
        kinds: Counter[str] = Counter()
        expected_doubts: set[int] = set()
        for index in range(trials):
            fault = chance.choice(FAULTS)
            kinds[fault] += 1
            trial, text = Trial(running, folder, index), content(index)
            written[index] = {text}
            secret = running.secrets / "AWS_SECRET_ACCESS_KEY"
            match fault:
                case "killed":
                    trial.attempt(f"pod-{index}", text, kill_after=chance.randrange(1, 9))
                case "outage":
                    running.stop()
                    trial_without_bucket(trial, index, text)
                    running.start()
                    expected_doubts.add(index)
                case "expired":
                    trial_without_bucket(trial, index, text, secret=secret)
                    expected_doubts.add(index)
                case "duplicate":
                    other = content(index, uid=f"twin-{index}")
                    written[index].add(other)
                    trial.attempt(f"pod-{index}", text)
                    trial.attempt(f"twin-{index}", other)
                case "forged":
                    forged = content(index, uid=f"forged-{index}", metrics={"test_accuracy": 1.0})
                    trial.attempt(f"pod-{index}", text)
                    name = ObjectName(
                        BATCH, ObjectKind.RECORD, index, f"forged-{index}", layout.digest(forged)
                    )
                    Bucket(running.url, secrets=running.secrets).put(name.key, forged)
                    expected_doubts.add(index)
                case "lost":  # the node is gone with its message; the next pod finds the record
                    trial.attempt(f"pod-{index}", text, reported=False)
                    trial.attempt(f"next-{index}", text)
                    uid, _, said = trial.messages.pop()
                    trial.messages.append((uid, "", said))
                case _:
                    trial.attempt(f"pod-{index}", text)
            pods[index] = trial.messages
        lost, false, doubts = judge(running, written, pods)
        print(f"{trials} trials: {dict(sorted(kinds.items()))}")
        print(f"lost {len(lost)}, recorded without being written {len(false)}, doubts reported {len(doubts)}")
        silent = expected_doubts - doubts
        print(f"doubtful and not reported: {len(silent)}")
        assert not lost, sorted(lost)[:10]
        assert not false, sorted(false)[:10]
        assert not silent, sorted(silent)[:10]


def trial_without_bucket(trial: Trial, index: int, text: bytes, *, secret: Path | None = None) -> None:
    """Let the bucket be out of reach from the end of the program until the pod is gone."""
    place = trial.folder / f"pod-{index}"
    for name in ("results", "state"):
        (place / name).mkdir(parents=True)
    (place / "log").touch()
    (place / "state" / "ready").write_text("{}")
    (place / "results" / f"pod-{index}.json").write_bytes(text)
    options = SidecarOptions(
        trial.running.url, BATCH, index, f"pod-{index}", str(place / "results"), str(place / "state"),
        secrets=trial.running.secrets, grace=1.2, log=str(place / "log"),
    )  # fmt: skip
    if secret:
        good = secret.read_text()
        secret.write_text("expired")
    stop = Stop()
    moved = Sidecar(options, stop, lambda _: None)
    stop.request(options.grace)
    moved.save()
    if secret:
        secret.write_text(good)
    trial.messages.append((f"pod-{index}", text.decode(), json.loads((place / "log").read_text())))


def judge(
    running: StorageServer,
    written: dict[int, set[bytes]],
    pods: dict[int, list[tuple[str, str, dict[str, Any]]]],
) -> tuple[set[int], set[int], set[int]]:
    """Return the trials whose records are lost, those with a false one, and those that are reported as doubtful."""
    from tests.bucket import test_threats as threats  # noqa: PLC0415 - it imports pytest

    trials = [a_record(index, batch=BATCH) for index in sorted(written)]
    ended = tuple(
        threats.pod(uid, index, message, said or None)
        for index in written
        for uid, message, said in pods[index]
    )
    stored = BucketResults(Bucket(running.url, secrets=running.secrets))
    account = threats.account(stored, *trials, ended=ended)
    accepted: dict[int, set[bytes]] = {}
    for record in (*account.confirmed, *account.records()):
        accepted.setdefault(record.index, set()).add(record_json.to_line(record).encode() + b"\n")
    lost = {index for index, texts in written.items() if not accepted.get(index, set()) & texts}
    false = {index for index, texts in accepted.items() if texts - written[index]}
    return lost, false, {*account.doubts(), *account.incomplete}


def records(count: int) -> None:
    """Read the records of a batch, each in a bucket with its list of files."""
    with server() as (running, _):
        bucket = Bucket(running.url, secrets=running.secrets)
        began = time.monotonic()
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only to fill the bucket

        def write(index: int) -> None:
            text = content(index)
            bucket.put(
                ObjectName(BATCH, ObjectKind.RECORD, index, f"pod-{index}", layout.digest(text)).key, text
            )

        with ThreadPoolExecutor(SMALL_AT_ONCE) as pool:
            list(pool.map(write, range(count)))
        print(f"{count} records written in {time.monotonic() - began:.0f} s")
        before = running.requests()
        script = (
            "import resource, sys\n"
            "from pathlib import Path\n"
            "from sweepledger.bucket.objects import Bucket\n"
            "from sweepledger.bucket.results import BucketResults\n"
            "from sweepledger.formats import record_json\n"
            f"stored = BucketResults(Bucket({running.url!r}, secrets=Path({str(running.secrets)!r})))\n"
            f"read = [record_json.read(text) for i in range({count}) for text in stored.records({BATCH!r}, i)]\n"
            f"assert len(stored.unconfirmed({BATCH!r})) == len(read) == {count}\n"
            "usage = resource.getrusage(resource.RUSAGE_SELF)\n"
            "print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "generator")}
        costs = []
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
            )
            costs.append(tuple(map(float, done.stdout.split())))
        requests = (running.requests() - before) / len(costs)
        seconds, mebibytes = statistics.median(cost[0] for cost in costs), max(cost[1] for cost in costs)
        print(
            f"CPU {seconds:.2f} s (median of 3), {mebibytes:.0f} MiB, {requests / count:.3f} requests per trial"
        )
        assert seconds <= 6  # noqa: PLR2004 - the bars
        assert mebibytes <= 256  # noqa: PLR2004
        assert requests <= 2 * count


def checkpoint(size: int) -> None:
    """Save a checkpoint after SIGTERM, and restore it in another pod."""
    with server() as (running, folder):
        made = Pod(
            folder / "one", running.url, running.secrets, variables={"SWEEP_STORE_GRACE": "30"}
        ).start()
        (made.results / "checkpoints").mkdir()
        digest = hashlib.sha256()
        with (made.results / "checkpoints/state").open("wb") as file:
            for _ in range(0, size, 1 << 20):
                block = os.urandom(1 << 20)
                digest.update(block)
                file.write(block)
        began = time.monotonic()
        made.stop()
        saved = time.monotonic() - began
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        again = Pod(folder / "two", running.url, running.secrets, uid="uid-2")
        began = time.monotonic()
        again.start()
        restored = time.monotonic() - began
        with (again.results / "checkpoints/state").open("rb") as file:
            assert hashlib.file_digest(file, "sha256").digest() == digest.digest()
        again.stop()
        print(f"{size / 1e9:.2f} GB saved in {saved:.1f} s, restored in {restored:.1f} s")
        print(f"memory of the sidecar: {usage.ru_maxrss // 1024} MiB")


def start(times: int = 9) -> None:
    """Measure from the sidecar's start to the launcher's, and from the record to the sidecar's end.

    The program runs for a second, in which the sidecar loads what it needs at the end.
    """
    with server() as (running, folder):
        started, ended, used = [], [], []
        for number in range(times):
            made = Pod(folder / str(number), running.url, running.secrets, index=number)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.monotonic()
            made.start()
            started.append(time.monotonic() - began)
            at_start = _cpu_of(made)
            time.sleep(1)
            (made.results / "uid-1.json").write_bytes(content(number, uid="uid-1"))
            began = time.monotonic()
            made.stop()
            ended.append(time.monotonic() - began)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used.append((at_start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
            assert made.message["complete"], made.said
        start_cpu, all_cpu = (statistics.median(each) for each in zip(*used, strict=True))
        print(
            f"before the program {statistics.median(started):.2f} s, of which {start_cpu:.2f} s CPU;"
            f" after it {statistics.median(ended):.2f} s; {all_cpu:.2f} s CPU in all (medians)"
        )
        print(f"added to a trial: {statistics.median(map(sum, zip(started, ended, strict=True))):.2f} s")


def _cpu_of(pod: Pod) -> float:
    """Return the CPU seconds of a sidecar until now."""
    assert pod.sidecar is not None
    fields = Path(f"/proc/{pod.sidecar.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    """Run one measurement."""
    known: dict[str, tuple[Callable[[int], None], int]] = {
        "faults": (faults, 1000),
        "records": (records, 10_000),
        "checkpoint": (checkpoint, 10**9),
        "start": (start, 9),
    }
    if not arguments or arguments[0] not in known:
        print(__doc__)
        return 2
    measure, default = known[arguments[0]]
    measure(int(arguments[1]) if len(arguments) > 1 else default)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
