"""Kills of `sweep run` while its trials train, and what must hold after them."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sweepledger.engine.local.pod_folders import StateFolders
from tests.command_line import captured

ROOT = Path(__file__).parents[2]
TRIALS = 6
EPOCHS = 8
PROGRAM = """import argparse, fcntl, os, pathlib, time

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=int)
x = parser.parse_args().x
place = pathlib.Path({place!r})
running = open(place / f"running-{{x}}", "a")
with open(place / "notes", "a") as notes:
    try:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("twice", x, file=notes)
    print("begin", x, file=notes, flush=True)
    state = pathlib.Path("state.txt")
    for epoch in range({epochs}):
        before = int(state.read_text()) if state.exists() else 0
        state.write_text(str(before + x))
        time.sleep(0.05)
    print("end", x, file=notes, flush=True)
print(f"score={{state.read_text()}}")
"""
"""It keeps its sum in a file beside it: what an earlier or another trial left there would make it false."""
SPEC = """name: sums
method: grid
metric: {{name: score, goal: maximize, source: stdout}}
parameters: {{x: {{values: {values}}}}}
command: [{python}, train.py, "${{args}}"]
run:
  code: {{path: .}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: 2
  timeout: 10m
"""
PATIENCE = 300.0


@dataclass
class Laptop:
    """A repository whose sweep is run again and again until it is recorded."""

    folder: Path
    killed: int = 0
    """Kills while a trial trained."""
    wrong: list[str] = field(default_factory=list)

    @property
    def lab(self) -> Path:
        return self.folder / "lab"

    def create(self) -> None:
        self.lab.mkdir(parents=True)
        (self.lab / "train.py").write_text(PROGRAM.format(place=str(self.folder), epochs=EPOCHS))
        (self.lab / "sweeps").mkdir()
        values = [*range(1, TRIALS + 1)]
        (self.lab / "sweeps/sums.yaml").write_text(SPEC.format(values=values, python=sys.executable))
        for words in (
            ["init", "-q", "-b", "main"],
            ["config", "user.name", "Ada"],
            ["config", "user.email", "ada@example.org"],
            ["add", "."],
            ["commit", "-q", "-m", "Start"],
        ):
            subprocess.run(["git", *words], cwd=self.lab, check=True)

    def start(self) -> subprocess.Popen[bytes]:
        """Run the sweep in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "sweepledger.cli", "run", "sums"],
            cwd=self.lab,
            env={**os.environ, "PYTHONPATH": str(ROOT / "generator")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def notes(self) -> Counter[str]:
        """Return how often each note of a program is there."""
        file = self.folder / "notes"
        return Counter(file.read_text().splitlines() if file.exists() else [])

    def recorded(self) -> frozenset[int]:
        """Return the values of the trials that have a result, as far as their attempts say."""
        lab_state = self.lab / ".sweepledger"
        records = [json.loads(path.read_text()) for path in lab_state.glob("results/*/*/*.json")]
        return frozenset(record["index"] + 1 for record in records if record["status"] == "ok")

    def kill_while_training(self, chance: random.Random) -> bool:
        """Start the sweep, and kill it a moment after a trial began; return False if it came to its end before."""
        done, began = self.recorded(), self.notes()
        process, until = self.start(), time.monotonic() + PATIENCE
        begins = _begins(began)
        while _begins(self.notes()) == begins and process.poll() is None:
            assert time.monotonic() < until, "no trial began"
            time.sleep(0.01)
        try:
            process.wait(chance.uniform(0, (EPOCHS + 2) * 0.05))
        except subprocess.TimeoutExpired:
            if chance.random() < 0.5:  # the process, or its group
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
            self.killed += 1
        _, errors = process.communicate()
        if process.returncode not in {0, -signal.SIGKILL}:
            self.wrong.append(f"exit {process.returncode}: {errors.decode()[-500:]}")
        again = [x for x in done if self.notes()[f"begin {x}"] > began[f"begin {x}"]]
        self.wrong += [f"x={x} began again although it had a result" for x in again]
        return process.returncode != 0

    def finish(self) -> None:
        """Run the sweep to its end, and compare what is recorded with what is true."""
        with self.start() as process:
            _, errors = process.communicate(timeout=PATIENCE)
        if process.returncode:
            self.wrong.append(f"the last run: exit {process.returncode}: {errors.decode()[-500:]}")
        records = [
            json.loads(line)
            for path in self.lab.glob("results/sums/records/*.jsonl")
            for line in path.read_text().splitlines()
        ]
        rows = sorted(
            (record["index"] + 1, record["status"], record["metrics"].get("score"))
            for record in records
            if "status" in record
        )
        wanted = [(x, "ok", EPOCHS * x) for x in range(1, TRIALS + 1)]
        if rows != wanted:
            self.wrong.append(f"recorded {rows}")
        self.wrong += [note for note in self.notes() if note.startswith("twice")]
        if left := [*StateFolders(self.lab / ".sweepledger").pods.glob("*")]:
            self.wrong.append(f"left behind: {left}")
        status = captured(["git", "status", "--porcelain"], cwd=self.lab, check=True)
        if status.stdout:
            self.wrong.append(f"not committed: {status.stdout}")


def _begins(notes: Counter[str]) -> int:
    return sum(count for note, count in notes.items() if note.startswith("begin"))


def kill_training(folder: Path, kills: int, *, seed: int) -> Iterator[Laptop]:
    """Kill `sweep run` at so many moments while trials train, in as many repositories as that takes; yield each."""
    chance, killed, number = random.Random(seed), 0, 0  # noqa: S311 - moments that can be had again
    while killed < kills:
        laptop = Laptop(folder / str(number))
        laptop.create()
        while killed + laptop.killed < kills and laptop.kill_while_training(chance):
            pass
        laptop.finish()
        killed, number = killed + laptop.killed, number + 1
        yield laptop
