"""Batches for tests of the engine: valid by default, one change a test."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweepledger.engine.local.engine import LocalEngine
from sweepledger.engine.local.events import EngineEvent, PodEnded
from sweepledger.engine.local.local_batch import DesiredBatch, LocalBatch, ResourceAmounts
from sweepledger.engine.local.node import Node, PodExit
from sweepledger.engine.termination import ExpectedRecord
from sweepledger.formats import json
from sweepledger.formats import record_json as record_format
from sweepledger.formats.hyperparams_csv import row_digest
from sweepledger.structs.record import Record
from sweepledger.structs.values import bytes_digest, digest

HERE = Path(__file__).parent
PROGRAM = "ab" * 32
CODE = "cd" * 20
ROOMY = ResourceAmounts(milli_cpus=64_000, memory=1 << 40, gpus=0)
"""A machine on which only `parallelism` limits."""


def trial(index: int) -> str:
    """Name the trial of a row."""
    return f"t{index:011x}"


SMALL = ResourceAmounts(milli_cpus=1000, memory=1 << 30)


def indexed(
    does: Iterable[str],
    *,
    name: str = "lr-b1-00000001",
    parallelism: int = 4,
    retries: int = 0,
    resources: ResourceAmounts = SMALL,
) -> LocalBatch:
    """Make a batch with a row a word list."""
    header, lines = "trial,does", [f'{trial(index)},"{words}"' for index, words in enumerate(does)]
    table = "".join(f"{line}\n" for line in (header, *lines))
    launch = {
        "version": 1,
        "batch": name,
        "program": PROGRAM,
        "code": CODE,
        "data": None,
        "columns": [],
        "shards": [{"file": "hyperparams.csv", "first": 0, "count": len(lines), "digest": "-"}],
        "seed_base": 0,
    }
    files = {
        "launcher/launch.py": (HERE / "fake_launcher.py").read_bytes(),
        "launcher/launch.json": json.dump(launch).encode(),
        "table/hyperparams.csv": table.encode(),
    }
    return LocalBatch(
        name=name,
        digest=digest([{path: bytes_digest(content) for path, content in files.items()}, parallelism]),
        files=files,
        data=None,
        interpreter="python3",
        variables={"OMP_NUM_THREADS": "1"},
        trials=tuple(
            ExpectedRecord(name, index, trial(index), row_digest(PROGRAM, header, line), CODE, None, 0)
            for index, line in enumerate(lines)
        ),
        indexes=tuple(range(len(lines))),
        parallelism=parallelism,
        retries=retries,
        pod_deadline=300,
        grace=2.0,
        requests=resources,
        limits=resources,
        scratch=2 << 30,
    )


@dataclass
class Machine:
    """A folder in which an engine can be run again and again."""

    root: Path
    events: list[EngineEvent] = field(default_factory=list)

    @property
    def state(self) -> Path:
        """The engine's state folder; a space in the path is part of every test."""
        return self.root / "the state"

    def engine(self, **changes: Any) -> LocalEngine:
        """Start an engine on a machine with room."""
        return LocalEngine(self.state, **{"capacity": ROOMY, **changes})

    def desired(self, made: LocalBatch) -> DesiredBatch:
        """Give a batch its locked code."""
        code = self.root / "locked code"
        code.mkdir(exist_ok=True)
        return DesiredBatch(made, code)

    def drive(
        self,
        engine: LocalEngine,
        *batches: LocalBatch,
        until: Callable[[], object] | None = None,
        seconds: float = 120.0,
    ) -> list[EngineEvent]:
        """Step until all is settled, or until something holds."""
        desired = [self.desired(made) for made in batches]
        give_up = time.monotonic() + seconds
        happened: list[EngineEvent] = []
        while time.monotonic() < give_up:
            happened += engine.step(desired)
            if engine.is_settled if until is None else until():
                self.events += happened
                return happened
            engine.wait(0.05)
        raise AssertionError(f"not settled after {seconds} s: {happened}")

    def run(self, *batches: LocalBatch, **changes: Any) -> list[EngineEvent]:
        """Run batches to their end."""
        with self.engine(**changes) as engine:
            return self.drive(engine, *batches)

    def records(self, made: LocalBatch, index: int) -> list[Record]:
        """Read what the attempts at an index left, first attempt first."""
        folder = self.state / "results" / made.name / str(index)
        results = [record_format.read(path.read_bytes()) for path in folder.glob("*.json")]
        return sorted(
            (record for record in results if isinstance(record, Record)), key=lambda item: item.attempt
        )

    def spy(self, made: LocalBatch) -> list[tuple[str, int, int]]:
        """Read the notes of the fake launchers: word, index, process."""
        path = self.state / "results" / made.name / "spy"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(word, int(index), int(pid)) for word, index, pid in (line.split() for line in lines)]

    def starts(self, made: LocalBatch) -> list[int]:
        """List the indexes whose launcher was started, in order."""
        return [index for word, index, _ in self.spy(made) if word == "start"]

    def processes(self) -> list[str]:
        """List live processes whose environment or command names this machine's folder."""
        return list(self._processes())

    def _processes(self) -> Iterator[str]:
        mark = os.fsencode(self.root)
        for entry in Path("/proc").glob("[0-9]*"):
            if int(entry.name) == os.getpid():
                continue
            try:
                seen = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark in seen:
                yield f"{entry.name}: {seen[-200:]!r}"


def ends(happened: Iterable[EngineEvent]) -> list[PodEnded]:
    """Keep the ends of pods."""
    return [event for event in happened if isinstance(event, PodEnded)]


def pod_exits(node: Node, count: int = 1) -> list[PodExit]:
    """Wait for the ends of so many pods of a node."""
    exits: list[PodExit] = []
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        node.wait(0.5)
        exits += node.ended()
        if len(exits) >= count:
            assert len(exits) == count
            return exits
    raise AssertionError("the pod did not end")


def ended(node: Node) -> PodExit:
    (pod_exit,) = pod_exits(node)
    return pod_exit
