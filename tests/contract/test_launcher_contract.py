"""What the generator writes is what the launcher reads: two programs that share no code."""

import json
import sys
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.formats import record_json
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs import kubernetes
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Record, Status
from sweepledger.structs.run_config import Shape
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.space import Parameter, SearchSpace
from tests.command_line import captured
from tests.launcher.folders import launch
from tests.sweeps import BASE, SETTINGS, a_batch, a_sweep, overlay_of, real_bases, real_launcher
from tests.tiers import parameters

SCHEMA = json.loads((BASE / "launcher/v1/record.schema.json").read_text())
REAL = real_bases()

SPACE = SearchSpace(
    (
        Parameter("rate", Choice((1e-05, 2.0))),
        Parameter("label", Constant('say "1e-4", on')),
        Parameter("flag", Constant(value=True)),
        Parameter("sizes", Constant((64, 128.5))),
        Parameter("none", Constant(None)),
    )
)

PYTHON = (sys.executable, "-I", "-S")
"""Without site-packages, which nothing here needs: it starts in a third of the time."""

DUMP = """
import json, os, sys
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": 1, "argv": sys.argv[1:], "env": dict(os.environ)}, file)
"""


def launched(shape: Shape, index: int, folder: Path, *, replicates: int = 1) -> tuple[StoredBatch, Record]:
    """Render a batch, run one of its rows under the launcher, read the record back."""
    command = (*PYTHON, "-c", DUMP, "${args}", "s=${seed}")
    sweep = a_sweep(design=GridSearch(SPACE), metric=Metric("score", Goal.MAXIMIZE), command=command)
    sweep = replace(sweep, replicates=replicates, run=replace(sweep.run, seed_base=40))
    made = overlay_of(a_batch(shape, sweep=sweep), REAL, SETTINGS)
    for path, content in (*made.tree, *real_launcher().items()):
        (folder / path).write_bytes(content)
    environment = {
        "SWEEP_LAUNCH": str(folder / "launch.json"),
        "SWEEP_TABLE": str(folder),
        "SWEEP_CODE": str(folder / "code"),
        "SWEEP_RESULTS": str(folder / "results"),
        "SWEEP_SCRATCH": str(folder / "scratch"),
        "SWEEP_POD_UID": "uid-1",
        "SWEEP_RAN": "process",
        "SWEEP_INDEX": str(index),
    }
    for name in ("scratch", "code"):
        (folder / name).mkdir()
    launcher = [*PYTHON, str(folder / "launch.py")]
    captured(launcher, cwd=folder / "scratch", env=environment, check=True)
    content = (folder / "results/uid-1.json").read_bytes()
    jsonschema.validate(json.loads(content), SCHEMA)
    record = record_json.read(content)
    assert isinstance(record, Record)
    return StoredBatch(f"overlays/active/{made.name}", made.tree), record


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", list(Shape), ids=str)
@pytest.mark.parametrize("index", parameters((0, 1), (1,), "more rows"))
def test_a_row_arrives_exact_and_is_recorded(shape: Shape, index: int, tmp_path: Path) -> None:
    stored, record = launched(shape, index, tmp_path)

    wanted = expected_trials(stored)[index]
    assert (record.trial, record.row, record.index) == (wanted.trial, wanted.row, index)
    assert (record.batch, record.status, record.ran, record.seed) == (stored.name, Status.OK, "process", 40)
    assert record.code == stored.lock.program.code.tree
    assert stored.lock.program.data
    assert record.data == stored.lock.program.data.digest
    rate = ("1e-05", "2.0")[index]
    arguments = [
        f"--rate={rate}",
        *('--label=say "1e-4", on', "--flag=True", "--sizes=[64, 128.5]", "--none=None"),
    ]
    assert record.details["argv"] == [*arguments, "s=40"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", parameters(Shape, (Shape.INDEXED, Shape.JOBS), "more shapes"), ids=str)
def test_a_replicate_has_a_seed_of_its_own_and_the_values_of_the_first(shape: Shape, tmp_path: Path) -> None:
    stored, record = launched(shape, 2, tmp_path, replicates=2)

    wanted = expected_trials(stored)
    assert [trial.replicate for trial in wanted] == [0, 1, 0, 1]
    assert [trial.assignment["rate"] for trial in wanted] == [1e-05, 1e-05, 2, 2]
    assert (record.trial, record.row, record.seed) == (wanted[2].trial, wanted[2].row, 40)
    (tmp_path / "again").mkdir()
    _, second = launched(shape, 3, tmp_path / "again", replicates=2)
    assert (second.trial, second.seed) == (wanted[3].trial, 41)
    assert second.details["argv"][-1] == "s=41"
    assert "SWEEP_PARAM_REPLICATE" not in second.details["env"]
    assert [trial.id for trial in stored.trials] == [trial.trial for trial in wanted]


@pytest.mark.parametrize(
    "name", ["BAD_HYPERPARAMETERS", "BAD_SWEEP", "DISRUPTED", "STORAGE_FAILED", "TIMED_OUT"]
)
def test_the_launcher_and_the_package_have_the_same_exit_codes(name: str) -> None:
    assert getattr(launch, name) == getattr(kubernetes, name)
