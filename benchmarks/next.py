"""CPU seconds and memory of `sweep cluster next` over a long history: git, locks, tables, records, and the engine.

    python benchmarks/next.py [RECORDS ...]        1,000 and 10,000 by default; the bars are 1.5 and 4 s, and 200 MiB

A search by `tpe` over 5 parameters, 8 trials a round. A sweep has at most 999 batches, so beyond that the
rounds before were larger. Each is measured three times, in a process of its own; the median counts.
"""

import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402
from sweepledger.formats.record_json import to_line  # noqa: E402
from sweepledger.operations.repository.batch_builder import RenderInputs, build_overlay  # noqa: E402
from sweepledger.operations.repository.batch_records import expected_trials  # noqa: E402
from sweepledger.operations.repository.workspace import Workspace  # noqa: E402
from sweepledger.repo.batches import StoredBatch  # noqa: E402
from sweepledger.structs.batch import Batch  # noqa: E402
from sweepledger.structs.names import MAX_BATCH_NUMBER  # noqa: E402
from sweepledger.structs.program import Code, Program  # noqa: E402
from sweepledger.structs.sweep import Sweep  # noqa: E402
from sweepledger.structs.trial import Trial  # noqa: E402
from tests.builders import a_record  # noqa: E402
from tests.repository import Sandbox  # noqa: E402

SIZE = 8
RECORDS = (1_000, 10_000)
BARS = {1_000: 1.5, 10_000: 4.0}
MEMORY_BAR = 200
"""MiB."""
RUNS = 3
ENGINE = f"optuna {version('optuna')}"
SPEC = f"""name: long
method: tpe
seed: 7
rounds: {{size: {SIZE}, max: 2000}}
metric: {{name: score, goal: maximize}}
parameters:
  learning_rate: {{distribution: log_uniform_values, min: 0.0001, max: 1.0}}
  momentum: {{min: 0.0, max: 0.99}}
  width: {{distribution: int_uniform, min: 8, max: 256}}
  dropout: {{min: 0.0, max: 0.8}}
  optimizer: {{values: [sgd, adam, rmsprop]}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: {SIZE}
"""


def assignments() -> Iterator[Mapping[str, Any]]:
    """Draw points of the space."""
    chance = random.Random(0)  # noqa: S311 - a history to look at, the same on every run
    while True:
        yield {
            "learning_rate": 10 ** chance.uniform(-4, 0),
            "momentum": chance.uniform(0, 0.99),
            "width": chance.randint(8, 256),
            "dropout": chance.uniform(0, 0.8),
            "optimizer": chance.choice(["sgd", "adam", "rmsprop"]),
        }


def score(assignment: Mapping[str, Any]) -> float:
    """Give every point a value."""
    return 1 - float((assignment["momentum"] - 0.9) ** 2) - float(assignment["dropout"]) / 10


def write(sandbox: Sandbox, records: int) -> None:
    """Commit a search of which so many trials are recorded."""
    sandbox.write("sweeps/long.yaml", SPEC)
    sandbox.commit("Ask for a long search")
    workspace = sandbox.workspace
    (sweep,) = workspace.sweeps(["long"])
    tree = sandbox.git("rev-parse", "HEAD:code").strip()
    program = Program("local", sweep.command, Code("code", tree), None)
    size = max(SIZE, -(-records // (MAX_BATCH_NUMBER - 1)))
    old: list[StoredBatch] = []
    documents = assignments()
    for number in range(1, records // size + 1):
        trials = tuple(Trial(next(documents), program.digest) for _ in range(size))
        old.append(
            round_of(
                sandbox,
                workspace,
                sweep,
                Batch(sweep, program, trials, round=number, engine=ENGINE),
                old[-1:],
            )
        )
    for place in ("active", "archive"):
        sandbox.write(f"overlays/{place}/.gitkeep", "")
    sandbox.commit("Record it")
    sandbox.push()


def round_of(
    sandbox: Sandbox, workspace: Workspace, sweep: Sweep, request: Batch, before: list[StoredBatch]
) -> StoredBatch:
    """Write a recorded round."""
    made = build_overlay(request, before, RenderInputs.of(workspace))
    batch = StoredBatch(f"overlays/archive/{made.name}", made.tree)
    for path, content in made.tree:
        target = sandbox.root / batch.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    lines = (
        to_line(
            a_record(
                trial.index,
                trial=trial.trial,
                row=trial.row,
                batch=made.name,
                code=request.program.code.tree,
                data=None,
                metrics={"score": score(trial.assignment)},
            )
        )
        for trial in expected_trials(batch)
    )
    sandbox.write(f"results/{sweep.name}/records/{made.name}.jsonl", "".join(f"{line}\n" for line in lines))
    return batch


def cost_of_next(root: Path) -> tuple[float, float]:
    """Ask for the next round; give CPU seconds of the process tree, and the most memory in MiB."""
    command = [sys.executable, "-m", "sweepledger.cli", "cluster", "next", "long", "--check"]
    used = measured(command, root, code=5)  # a round is due
    return used.seconds, used.mebibytes


def main() -> int:
    """Measure, and say whether every bar is met."""
    sizes = tuple(map(int, sys.argv[1:])) or RECORDS
    is_good = True
    for records in sizes:
        with tempfile.TemporaryDirectory() as folder:
            sandbox = Sandbox.create(Path(folder))
            write(sandbox, records)
            results = [cost_of_next(sandbox.root) for _ in range(RUNS)]
        cpu = statistics.median(value for value, _ in results)
        bar = BARS.get(records)
        peak = max(peak for _, peak in results)
        is_good &= (bar is None or cpu <= bar) and peak <= MEMORY_BAR
        message = "" if bar is None else f", bar {bar} s"
        print(f"{records:,} records: {cpu:.2f} CPU s{message}; at most {peak:.0f} MiB, bar {MEMORY_BAR}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
