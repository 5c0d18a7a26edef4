"""How often real runs end within the interval that `sweep plan` foresees: each is told by all the others.

python benchmarks/makespan.py [RUNS] [FOLDER]

Every run is a sweep of short trials of one program, played by `sweep cluster local`: trials that sleep as long as a
value says, give or take, and start an interpreter each. A folder that holds runs already is only looked at.
On nodes of a cluster: makespan_cluster.py.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from sweepledger.engine.local.events import JobCreated, PodEnded
from sweepledger.formats import records_jsonl
from sweepledger.operations.cluster_local import Options, local
from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.plan.durations import timing_history
from sweepledger.plan.forecast import PlannedTrials, forecast
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import Record
from tests.repository import Sandbox

RUNS = 16
STATE = ".sweepledger"
TOOK = "took.json"
"""Seconds of each run from its first moment to its last end; records tell whole seconds only."""
BAR = (0.75, 0.90)
WIDEST = 3.0
PROGRAM = '''"""Sleep a while."""
import argparse, json, os, random, time
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--width", type=int)
args = parser.parse_args()
time.sleep(1.0 * args.epochs * random.lognormvariate(0, 0.15))
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.epochs}, file)
'''
SPEC = """name: {name}
method: grid
metric: {{name: score, goal: maximize}}
parameters:
  epochs: {{values: {epochs}}}
  width: {{values: {widths}}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 100m, memory: 64Mi}}
  parallelism: {parallelism}
  shape: indexed
  timeout: 2m
"""
Held = tuple[StoredBatch, tuple[Record, ...]]


def random_sweeps(runs: int) -> list[tuple[str, list[int], list[int], int]]:
    """Draw sweeps: name, values of both parameters, and how many trials run at once."""
    chance = random.Random(20261122)  # noqa: S311 - no secret
    return [
        (
            f"run-{number:02d}",
            sorted(chance.sample([2, 3, 4, 5, 6], k=chance.choice([2, 3, 4]))),
            list(range(chance.choice([2, 3, 4]))),
            chance.choice([2, 3, 4]),
        )
        for number in range(runs)
    ]


def play(sandbox: Sandbox, runs: int) -> None:
    """Run sweeps one after the other, as a team would on a machine that does other things as well."""
    took: dict[str, float] = {}
    sandbox.write("code/train.py", PROGRAM)
    sandbox.commit("Write a program")
    sandbox.push()
    for name, epochs, widths, at_once in random_sweeps(runs):
        sandbox.write(
            f"sweeps/{name}.yaml", SPEC.format(name=name, epochs=epochs, widths=widths, parallelism=at_once)
        )
        generate(sandbox.workspace, [name])
        sandbox.commit(f"Ask for {name}")
        sandbox.push()
        moments = [
            time.monotonic()
            for event in local(Options(str(sandbox.remote), "main", sandbox.root / STATE, once=True))
            if isinstance(event, JobCreated | PodEnded)
        ]
        sandbox.pull()
        took[name] = moments[-1] - moments[0]
        (sandbox.root / STATE / TOOK).write_text(json.dumps(took))
        print(f"{name} took {took[name]:.1f} s", flush=True)


def recorded(root: Path) -> list[Held]:
    """Read what every run has left in git."""
    results = []
    for batch in batches.in_work_tree(root):
        lines = records_jsonl.records((root / batch.records_file()).read_bytes())
        results.append((batch, tuple(record for record in lines if isinstance(record, Record))))
    return results


def judged(root: Path, held: Sequence[Held], measured: Mapping[str, float]) -> bool:
    """Foresee each run from all others, print how it went, and tell whether the bars are met."""
    timed = {
        batch.name: [(record, batch.rows[record.index].values) for record in records]
        for batch, records in held
    }
    specs = {sweep.name: sweep for sweep in Workspace.find(root).sweeps()}
    inside, ratios = [], []
    print(f"{'run':8} {'trials':>6} {'at once':>7} {'took':>6} {'low':>6} {'middle':>6} {'high':>6}   (s)")
    for batch, _ in held:
        others = [(name, pairs) for name, pairs in timed.items() if name != batch.name]
        run = specs[batch.sweep].run
        quantiles = forecast(
            PlannedTrials(run, [row.values for row in batch.rows], None, timing_history(others)), seed=1
        ).completion_seconds
        assert quantiles is not None
        took = measured[batch.sweep]
        inside.append(quantiles.low <= took <= quantiles.high)
        ratios.append(quantiles.high / quantiles.low)
        shown = f"{took:6.1f} {quantiles.low:6.1f} {quantiles.median:6.1f} {quantiles.high:6.1f}"
        verdict = "" if inside[-1] else "outside"
        print(f"{batch.sweep:8} {len(batch.rows):6} {run.parallelism:7} {shown}   {verdict}".rstrip())
    share, width = statistics.mean(inside), statistics.median(ratios)
    print(f"inside {sum(inside)} of {len(inside)} = {share:.0%} (bar {BAR[0]:.0%} to {BAR[1]:.0%}), ", end="")
    print(f"median high/low {width:.2f} (bar {WIDEST:g})")
    return BAR[0] <= share <= BAR[1] and width <= WIDEST


def _judged(sandbox: Sandbox) -> int:
    took = json.loads((sandbox.root / STATE / TOOK).read_text())
    return int(not judged(sandbox.root, recorded(sandbox.root), took))


def main() -> int:
    """Play what is not there yet, then judge."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    if len(sys.argv) > 2 and Path(sys.argv[2], "remote.git").exists():  # noqa: PLR2004 - the second argument
        folder = Path(sys.argv[2])
        return _judged(Sandbox(folder / "remote.git", folder / "work tree"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(scratch)  # noqa: PLR2004
        folder.mkdir(exist_ok=True)
        sandbox = Sandbox.create(folder)
        subprocess.run(["git", "config", "user.name", "Bench"], cwd=sandbox.root, check=True)
        subprocess.run(["git", "config", "user.email", "bench@example.org"], cwd=sandbox.root, check=True)
        play(sandbox, runs)
        return _judged(sandbox)


if __name__ == "__main__":
    sys.exit(main())
