"""CPU seconds of ten thousand trials with learning curves from git into data frames, in a fresh process each.

    python benchmarks/frames.py [--trials N] [--points N] [--runs N]

The time includes the start of Python and the imports of pandas or polars. The bar is 1.5 s with pandas.
"""

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "generator"), str(ROOT)]

from benchmarks.meter import measured  # noqa: E402
from sweepledger.formats import records_jsonl, summary_csv  # noqa: E402
from sweepledger.operations.generation.next_batch import generate_batches as generate  # noqa: E402
from sweepledger.operations.repository.batch_records import expected_trials  # noqa: E402
from sweepledger.repo import batches  # noqa: E402
from sweepledger.results.outcomes import BatchRecords, evaluate  # noqa: E402
from tests.builders import a_record  # noqa: E402
from tests.repository import Sandbox  # noqa: E402

BAR = 1.5
SPEC = """\
name: frames
description: How long do data frames take?
method: random
seed: 1
run_cap: {trials}
metric: {{name: score, goal: maximize, format: jsonl}}
parameters:
  rate: {{distribution: log_uniform_values, min: 0.00001, max: 1}}
  momentum: {{min: 0.0, max: 1.0}}
  width: {{min: 16, max: 4096}}
  optimizer: {{values: [sgd, adam, lion]}}
  bias: {{value: 0.5}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: 100
  timeout: 1m
"""
READ = """\
import sweepledger
sweep = sweepledger.open({root!r}).sweep("frames")
trials, curves = sweep.trials.to_{library}(), sweep.curves.to_{library}()
assert (len(trials), len(curves)) == ({trials}, {rows}), (len(trials), len(curves))
"""


def recorded(folder: Path, trials: int, points: int) -> Sandbox:
    """Make a repository in which every trial has a curve."""
    sandbox, rng = Sandbox.create(folder), random.Random(1)  # noqa: S311 - numbers to read
    sandbox.write("sweeps/frames.yaml", SPEC.format(trials=trials))
    generate(sandbox.workspace)
    (batch,) = batches.in_work_tree(sandbox.root)
    code = batch.lock.program.code.tree
    records = tuple(
        a_record(
            trial.index,
            trial=trial.trial,
            row=trial.row,
            batch=batch.name,
            code=code,
            data=None,
            metrics={"score": rng.random(), "loss": rng.random()},
            curves={"score": tuple((step, rng.random()) for step in range(points))},
        )
        for trial in expected_trials(batch)
    )
    (content,) = records_jsonl.write(records)
    outcomes = evaluate(BatchRecords(batch.lock, expected_trials(batch), records)).outcomes
    sandbox.write(f"results/frames/records/{batch.name}.jsonl", content.decode())
    sandbox.write("results/frames/summary.csv", summary_csv.write(outcomes, objective="score"))
    sandbox.git("add", "--all")
    sandbox.git("mv", f"overlays/active/{batch.name}", f"overlays/archive/{batch.name}")
    sandbox.commit("Record it")
    return sandbox


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frames-") as folder:
        (Path(folder) / "s").mkdir()
        root = str(recorded(Path(folder) / "s", options.trials, options.points).root)
        medians = {}
        for library in ("pandas", "polars"):
            rows = options.trials * options.points
            code = READ.format(root=root, library=library, trials=options.trials, rows=rows)
            variables = {"PYTHONPATH": str(ROOT / "generator"), "PATH": "/usr/bin:/bin"}
            read = [sys.executable, "-c", code]
            seconds = sorted(measured(read, ROOT, variables=variables).seconds for _ in range(options.runs))
            medians[library] = statistics.median(seconds)
            spread = f"{seconds[0]:.2f} to {seconds[-1]:.2f}"
            print(
                f"{library}: {options.trials} trials, {rows} points: median {medians[library]:.2f} CPU s ({spread})"
            )
    print(f"bar: {BAR} CPU s with pandas: {'met' if medians['pandas'] <= BAR else 'missed'}")
    return int(medians["pandas"] > BAR)


if __name__ == "__main__":
    sys.exit(main())
