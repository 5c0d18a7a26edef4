"""What a repository costs after years: collector and commands with thousands of archived batches.

python benchmarks/years.py [BATCHES] [TRIALS] [FOLDER], by default 10,000 batches of 16 trials, and 200 active ones

A folder keeps the repository, which takes long to build, and a later run measures the same one.

One sweep is generated and recorded for real, four batches of it; the others are copies under other names with other
numbers, written by `git fast-import`. Twenty batches are recorded in one commit.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import Used, measured  # noqa: E402
from sweepledger.formats import record_json, yaml  # noqa: E402
from sweepledger.operations.collection.record_store import on_volume  # noqa: E402
from sweepledger.operations.collection.results_commit import commit_results  # noqa: E402
from sweepledger.operations.generation.next_batch import generate_batches as generate  # noqa: E402
from sweepledger.operations.repository.batch_records import expected_trials  # noqa: E402
from sweepledger.operations.repository.workspace import Target, Workspace  # noqa: E402
from sweepledger.repo import batches  # noqa: E402
from sweepledger.repo.batches import StoredBatch  # noqa: E402
from sweepledger.structs.values import blob_id, bytes_digest  # noqa: E402
from tests.builders import a_record  # noqa: E402
from tests.cluster.processes import free_ports  # noqa: E402
from tests.repository import Sandbox, followed_by  # noqa: E402

PER_SWEEP = 4
PER_COMMIT = 20
ACTIVE = 200
POINTS = 20
RUNS = 3
SEED = 20
SPEC = """name: {name}
description: Which learning rate and width train fastest?
method: grid
metric: {{name: score, goal: maximize}}
parameters:
  learning_rate: {{values: [{rates}]}}
  width: {{values: [64, 128, 256, 512]}}
  momentum: {{value: 0.9}}
  weight_decay: {{value: 0.0005}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: 4
  timeout: 1h
  shape: indexed
"""
NUMBER = re.compile(rb"(?<=0\.)[0-9]{8,}")
TRIAL = re.compile(rb"\bt[0-9a-f]{5}([0-9a-f]{6})\b")
DEFAULT_BARS = (1.5, 150)
COLLECTOR_DISK = 60


def leave(results: Path, batch: StoredBatch, random: Random) -> None:
    """Leave the records of a batch as its launchers would, with curves."""
    for trial in expected_trials(batch):
        points = tuple((step, random.random()) for step in range(1, POINTS + 1))
        record = a_record(
            trial.index,
            trial=trial.trial,
            row=trial.row,
            batch=batch.name,
            code=batch.lock.program.code.tree,
            data=None,
            metrics={"score": random.random(), "loss": random.random()},
            curves={"score": points},
        )
        path = results / batch.name / str(trial.index) / f"{record.uid}.json"
        path.parent.mkdir(parents=True)
        path.write_text(record_json.to_line(record) + "\n")


def write_spec(sandbox: Sandbox, name: str, trials: int, batches_of: int) -> None:
    """Write a spec with so many batches of so many trials."""
    rates = ", ".join(f"{1 / (number + 2):.6f}" for number in range(trials // 4 * batches_of))
    sandbox.write(f"sweeps/{name}.yaml", SPEC.format(name=name, rates=rates))


def prototype(sandbox: Sandbox, trials: int, volume: Path) -> None:
    """Make four recorded batches of one sweep, and an active one of another."""
    random = Random(SEED)  # noqa: S311 - the same numbers every time
    sandbox.write("sweepledger.yaml", followed_by("flux"))
    for number in range(1, PER_SWEEP + 1):
        write_spec(sandbox, "model", trials, number)
        generate(sandbox.workspace)
        sandbox.commit("Batch")
        sandbox.push()
        (active,) = (batch for batch in batches.in_work_tree(sandbox.root) if batch.is_active)
        leave(volume, active, random)
        commit_results(
            Target(sandbox.workspace.repository, "origin", "main"), on_volume(volume), {active.name}
        )
        sandbox.pull()
    write_spec(sandbox, "next", trials, 1)
    generate(sandbox.workspace)
    sandbox.commit("Active")
    sandbox.push()


@dataclass(frozen=True)
class Copies:
    """The files of a sweep under other names."""

    files: Mapping[str, bytes]
    sweep: str

    def named(self, name: str, random: Random) -> Iterator[tuple[str, bytes]]:
        """Yield each file of a copy, with other numbers; locks name what the copies are.

        Recorded trials get other ids, so that no two sweeps have the same ones.
        """
        own = f"{random.getrandbits(20):05x}".encode()
        old, new = f"{self.sweep}-b".encode(), f"{name}-b".encode()
        made: dict[str, bytes] = {}
        for path, content in self.files.items():
            other = path.replace(f"{self.sweep}-b", f"{name}-b").replace(f"/{self.sweep}", f"/{name}")
            text = content.replace(old, new).replace(f'"{self.sweep}"'.encode(), f'"{name}"'.encode())
            text = text.replace(f"sweeps/{self.sweep}.".encode(), f"sweeps/{name}.".encode())
            text = text.replace(f"name: {self.sweep}\n".encode(), f"name: {name}\n".encode())
            if path.startswith("results/"):
                text = NUMBER.sub(lambda at: f"{random.getrandbits(64):020d}".encode()[: len(at[0])], text)
            if "overlays/active" not in path:
                text = TRIAL.sub(lambda at: b"t" + own + at[1], text)
            made[other] = text
        for path, text in made.items():
            if path.endswith("/batch.json"):
                yield path, self._lock(path, text, made, name)
            else:
                yield path, text

    def _lock(self, path: str, text: bytes, made: Mapping[str, bytes], name: str) -> bytes:
        data, folder = yaml.load(text), path.rpartition("/")[0]
        spec, former = made[f"sweeps/{name}.yaml"], data["spec"]["digest"]
        text = text.replace(former.encode(), bytes_digest(spec).encode())
        for file, digest in data["files"].items():
            content = made.get(f"{folder}/{file}")
            if content is not None:
                text = text.replace(digest.encode(), bytes_digest(content).encode())
                if file in data.get("blobs", {}):
                    text = text.replace(data["blobs"][file].encode(), blob_id(content).encode())
        return text


def stream(sandbox: Sandbox, size: int) -> Iterator[bytes]:
    """Yield the history as `git fast-import` reads it."""
    random, serial = Random(SEED), count(1_700_000_000)  # noqa: S311 - likewise
    model, active = (_files_of(sandbox, sweep) for sweep in ("model", "next"))
    sweeps = size // PER_SWEEP
    for first in range(0, sweeps, PER_COMMIT // PER_SWEEP):
        yield _commit(next(serial), "results(several): recorded", is_first=first == 0)
        for number in range(first, min(sweeps, first + PER_COMMIT // PER_SWEEP)):
            for path, content in model.named(f"sweep-{number:06d}", random):
                yield _file(path, content)
    yield _commit(next(serial), "generate(several): trials")
    for number in range(ACTIVE):
        for path, content in active.named(f"run-{number:06d}", random):
            yield _file(path, content)


def _files_of(sandbox: Sandbox, sweep: str) -> Copies:
    places = (
        "overlays/archive/",
        "overlays/active/",
        f"results/{sweep}/",
        f"sweeps/{sweep}.yaml",
        "clusters/flux/active/",
    )
    listed = sandbox.git("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
    paths = [path for path in listed if path.startswith(places) and f"/{sweep}" in path]
    return Copies({path: (sandbox.root / path).read_bytes() for path in paths}, sweep)


def _commit(time: int, message: str, *, is_first: bool = False) -> bytes:
    base = "from refs/heads/main^0\n" if is_first else ""
    return (
        f"commit refs/heads/main\ncommitter B <b@example.org> {time} +0000\n"
        f"data {len(message)}\n{message}\n{base}"
    ).encode()


def _file(path: str, content: bytes) -> bytes:
    return b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content)


def build(sandbox: Sandbox, size: int) -> None:
    """Import the history, pack it, and check it out."""
    for key, value in (("maintenance.auto", "false"), ("gc.auto", "0")):
        sandbox.git("config", key, value)
    command = ["git", "-C", str(sandbox.root), "fast-import", "--quiet", "--force"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as importer:
        assert importer.stdin is not None
        for part in stream(sandbox, size):
            importer.stdin.write(part)
    assert importer.returncode == 0
    sandbox.git("reset", "-q", "--hard", "main")
    sandbox.push()
    subprocess.run(["git", "-C", str(sandbox.remote), "config", "uploadpack.allowFilter", "true"], check=True)
    subprocess.run(["git", "-C", str(sandbox.remote), "repack", "-q", "-a", "-d"], check=True)
    sandbox.git("fetch", "-q")


def disk(folder: Path) -> float:
    """Return what a folder takes, in MiB."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 2**20


def report(name: str, use: Used, bars: tuple[float, float]) -> None:
    """Print one row of the table."""
    seconds, mebibytes = bars
    late = use.seconds > seconds or (mebibytes and use.mebibytes > mebibytes)
    mark = ", **missed**" if late else ""
    print(
        f"| {name} | {use.seconds:.2f}{mark} | {use.mebibytes:.0f} | {seconds:g} | {mebibytes or ''} |",
        flush=True,
    )


@contextmanager
def served(remote: Path) -> Iterator[str]:
    """Serve the remote with git's own server: what it uses does not count for its clients."""
    (port,) = free_ports(1)
    command = ["git", "daemon", "--export-all", "--enable=receive-pack", f"--base-path={remote.parent}"]
    server = subprocess.Popen([*command, "--listen=127.0.0.1", f"--port={port}", str(remote)])
    url = f"git://127.0.0.1:{port}/{remote.name}"
    try:
        while subprocess.run(["git", "ls-remote", "-q", url], capture_output=True, check=False).returncode:
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


def collector(sandbox: Sandbox, url: str, scratch: Path, volume: Path) -> None:
    """Measure the collector from its clone to the push of one batch."""
    (sandbox.root / "clusters").mkdir(exist_ok=True)
    command = yaml.load((ROOT / "base/platform/team/v1/collector.yaml").read_bytes())
    (clone,) = command["spec"]["jobTemplate"]["spec"]["template"]["spec"]["initContainers"]
    name = next(path.name for path in sorted((sandbox.root / "overlays/active").iterdir()) if path.is_dir())
    (batch,) = (one for one in batches.in_work_tree(sandbox.root) if one.name == name)
    leave(volume, batch, Random(SEED))  # noqa: S311 - likewise
    place = scratch / "collector"
    options = clone["command"][: clone["command"].index("--branch=<branch>")]
    cloned = measured([*options, "--branch=main", "--", url, str(place)], scratch)
    report("collector: clone", cloned, (6.0, 256))
    words = ["cluster", "collect", "--push", f"--results={volume}", f"--state={scratch / 'no-state'}"]
    collected = measured([sys.executable, "-m", "sweepledger.cli", *words], place)
    both = replace(
        collected,
        seconds=cloned.seconds + collected.seconds,
        mebibytes=max(cloned.mebibytes, collected.mebibytes),
    )
    report("collector: clone and push of one batch", both, (6.0, 256))
    size = disk(place)
    print(
        f"collector: disk {size:.0f} MiB (at most {COLLECTOR_DISK}){'' if size <= COLLECTOR_DISK else ', missed'}"
    )


def pods(sandbox: Sandbox, url: str, scratch: Path) -> None:
    """Measure how a pod gets its code."""
    patch = yaml.load((ROOT / "base/components/clone/v1/patch.yaml").read_bytes())
    (container,) = patch["spec"]["template"]["spec"]["initContainers"]
    place = scratch / "pod"
    (place / "code").mkdir(parents=True)
    script = container["command"][-1].replace("/sweep/clone", str(place)).replace("/code", f"{place}/code")
    values = {
        "CODE_BRANCH": "main",
        "CODE_PATH": "code",
        "CODE_TREE": sandbox.git("rev-parse", "main:code").strip(),
        "CODE_URL": url,
    }
    variables = [f"{name}={value}" for name, value in values.items()]
    use = measured(["env", *variables, "sh", "-ceu", script], scratch)
    report(f"a pod's clone: disk {disk(place):.1f} MiB", use, (6.0, 512))


def commands(sandbox: Sandbox) -> None:
    """Measure what people run."""
    sweep = [sys.executable, "-m", "sweepledger.cli"]
    trial = next(Workspace.find(sandbox.root).root.glob("results/sweep-000001/summary.csv")).read_text()
    reading = {
        "status": ["status"],
        "log --last 50": ["log", "--last", "50"],
        "show TRIAL": ["show", trial.splitlines()[1].split(",")[0]],
        "results NAME": ["results", "sweep-000001"],
    }
    for name, words in reading.items():
        first = measured([*sweep, *words], sandbox.root)
        uses = [measured([*sweep, *words], sandbox.root) for _ in range(RUNS)]
        best = min(uses, key=lambda use: use.seconds)
        report(f"`sweep {name}` (the first time {first.seconds:.2f} s)", best, DEFAULT_BARS)
    spec = sandbox.root / "sweeps/run-000000.yaml"
    spec.write_text(spec.read_text().replace("0.0005", "0.0004"))
    report("`sweep generate NAME`", measured([*sweep, "generate", "run-000000"], sandbox.root), (2.0, 0))
    report("`sweep generate`, all specs", measured([*sweep, "generate"], sandbox.root), (2.0, 0))
    sandbox.commit("One more batch")
    uses = [measured([*sweep, "check"], sandbox.root) for _ in range(RUNS)]
    report("`sweep check`, one spec changed", min(uses, key=lambda use: use.seconds), (2.5, 0))


def growth(sandbox: Sandbox) -> None:
    """Print what one batch adds to archive and results, uncompressed."""
    for title, place in (("overlays/archive", "overlays/archive/model-b*"), ("results", "results/model")):
        held = sum(
            path.stat().st_size
            for folder in sandbox.root.glob(place)
            for path in folder.rglob("*")
            if path.is_file()
        )
        print(f"growth of {title}: {held / PER_SWEEP / 1000:.0f} KB per batch")


def world(folder: Path, size: int, trials: int) -> Sandbox:
    """Build a repository with its remote in a folder; return one that is already there as it was built."""
    if (folder / "built").is_file():
        sandbox = Sandbox(folder / "remote.git", folder / "work tree")
        for place in (sandbox.remote, sandbox.root):
            subprocess.run(["git", "-C", str(place), "update-ref", "refs/heads/main", "built"], check=True)
        sandbox.git("reset", "-q", "--hard")
        sandbox.git("clean", "-q", "-ffdx")
        return sandbox
    sandbox = Sandbox.create(folder)
    prototype(sandbox, trials, folder / "volume")
    growth(sandbox)
    build(sandbox, size)
    sandbox.git("tag", "built")
    sandbox.git("push", "-q", "origin", "built")
    (folder / "built").touch()
    return sandbox


def main() -> int:
    """Build, then measure the collector and the commands."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 16  # noqa: PLR2004
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        sandbox = world(Path(sys.argv[3]) if len(sys.argv) > 3 else scratch, size, trials)  # noqa: PLR2004
        place = f"the remote takes {disk(sandbox.remote):.0f} MiB"
        print(f"{size:,} archived batches of {trials} trials, {ACTIVE} active; {place}")
        print("| what | CPU s | MiB | limit, CPU s | limit, MiB |\n|---|---|---|---|---|")
        with served(sandbox.remote) as url:
            pods(sandbox, url, scratch)
            commands(sandbox)
            collector(sandbox, url, scratch, scratch / "records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
