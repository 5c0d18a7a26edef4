"""What the generator renders, run here under the launcher that overlays carry."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.engine.local.engine import LocalEngine
from sweepledger.engine.local.local_batch import DesiredBatch, LocalBatch, local_batch
from sweepledger.engine.local.store import batch_conditions
from sweepledger.formats import record_json as record_format
from sweepledger.structs.record import Record, Status
from sweepledger.structs.run_config import Shape
from tests.engine.batches import ROOMY, Machine
from tests.sweeps import SETTINGS, a_batch, a_sweep, overlay_of, real_bases, real_launcher

TRAIN = """\
import json, os, sys, time
given = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
if float(given["learning_rate"]) < 0.01:
    sys.exit(42)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"accuracy": 0.5, "given": given, "words": sys.argv, "home": os.environ["HOME"]}, file)
"""


KILL = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)\n"
"""A program that ends its launcher before that can write a record."""


def rendered(shape: Shape, **changes: Any) -> LocalBatch:
    run = replace(a_sweep().run, data=None, **changes.pop("run", {}))
    sweep = a_sweep(run=run, command=("python", "train.py", "${args}", "/sweep/scratch"), **changes)
    made = overlay_of(a_batch(shape, sweep=sweep), real_bases(), SETTINGS)
    return local_batch(made.lock, made.tree.files, real_launcher())


def played(
    machine: Machine, batch: LocalBatch, program: str, *, launcher: Path | None = None
) -> dict[int, Record]:
    code = machine.root / "locked code"
    code.mkdir()
    (code / "train.py").write_text(program)
    with LocalEngine(machine.state, capacity=ROOMY, launcher=launcher) as engine:
        engine.step([DesiredBatch(batch, code)])
        while not engine.is_settled:
            engine.wait(0.2)
            engine.step([DesiredBatch(batch, code)])
    assert {entry.name for entry in code.iterdir()} == {"train.py"}
    records = {}
    for path in (machine.state / "results" / batch.name).glob("*/*.json"):
        record = record_format.read(path.read_bytes())
        assert isinstance(record, Record), record
        records[record.index] = record
    return records


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOBS], ids=str)
def test_a_rendered_batch_runs_unchanged(machine: Machine, shape: Shape) -> None:
    batch = rendered(shape)

    records = played(machine, batch, TRAIN)

    assert {index: record.status for index, record in records.items()} == {0: Status.OK, 1: Status.DIVERGED}
    assert records[0].metrics == {"accuracy": 0.5}
    assert records[0].details["words"][-1] == "/sweep/scratch", "what is shown is what runs, path or not"
    assert records[0].details["given"] == {"learning_rate": "0.1", "name": 'say "on"'}
    assert str(machine.state) in records[0].details["home"]
    assert records[0].ran == "process"
    assert batch_conditions(machine.state)[batch.name] is not None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOBS], ids=str)
def test_the_engines_record_has_the_seed_of_its_replicate(machine: Machine, shape: Shape) -> None:
    run = {"seed_base": 100, "retries": 0}
    batch = rendered(shape, run=run, replicates=3)

    records = played(machine, batch, KILL)

    assert {record.reason for record in records.values()} == {"killed"}
    assert sorted(record.seed for record in records.values()) == [100, 100, 101, 101, 102, 102]
