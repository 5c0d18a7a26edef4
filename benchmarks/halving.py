"""Halving on the Fashion-MNIST grid by real trainings, held against the whole grid's recorded ones.

python benchmarks/halving.py FOLDER [--size 27] [--seed 7]

FOLDER holds `fashion-mnist/`, as `SWEEP_DATA` names it. The rounds are those that `sweep cluster next` would ask for;
each promoted trial finds its own last checkpoint in `$SWEEP_PARENT`, as under the launcher.
"""

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import grids  # noqa: E402 - only now on the path
from sweepledger.search.adaptive import Observation, SearchEnd, Suggestion  # noqa: E402 - likewise
from sweepledger.search.adaptive.rounds import next_round  # noqa: E402 - likewise
from sweepledger.spec import ParsedSpec, parse  # noqa: E402 - likewise
from sweepledger.structs.record import Status  # noqa: E402 - likewise
from sweepledger.structs.settings import Settings  # noqa: E402 - likewise
from sweepledger.structs.sweep import Sweep  # noqa: E402 - likewise
from sweepledger.structs.trial import Trial  # noqa: E402 - likewise

SPEC = """name: halving
method: halving
seed: {seed}
rounds: {{size: {size}}}
resource: {{parameter: epochs, min: 1, max: {epochs}, eta: 3}}
metric: {{name: test_accuracy, goal: maximize}}
parameters:
{parameters}
program: train.py
"""
PROGRAM = "0" * 64


def a_sweep(size: int, seed: int) -> Sweep:
    """Read the spec of the search over the grid's values."""
    parameters = "".join(f"  {name}: {{values: {list(values)}}}\n" for name, values in grids.GRID.items())
    text = SPEC.format(seed=seed, size=size, epochs=grids.EPOCHS, parameters=parameters.rstrip())
    spec = parse(text.encode(), "sweeps/halving.yaml", Settings())
    assert isinstance(spec, ParsedSpec), spec
    return spec.sweep


def train(folder: Path, checkpoints: Path, suggestion: Suggestion) -> tuple[Observation, int]:
    """Run a trial; give what came of it, and how many epochs it trained itself."""
    trial = Trial(suggestion.configuration, PROGRAM)
    own = checkpoints / trial.id
    own.mkdir()
    variables = {"SWEEP_CHECKPOINTS": str(own)}
    if suggestion.parent is not None:
        variables["SWEEP_PARENT"] = str(checkpoints / suggestion.parent)
    curve = grids.run("fashion-mnist", folder, dict(suggestion.configuration), variables)  # type: ignore[arg-type]
    before = 0 if suggestion.parent is None else PARENTS[suggestion.parent]
    PARENTS[trial.id] = int(str(suggestion.configuration["epochs"]))
    observed = Observation(
        suggestion.configuration, 0, Status.OK, (curve[-1],), 1, trial.digest, suggestion.parent
    )
    return observed, PARENTS[trial.id] - before


PARENTS: dict[str, int] = {}
"""The epochs that a trial has come to, its parents' included."""


def main() -> int:
    """Search, and say what was found and what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=27)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    sweep, observations, trained = a_sweep(chosen.size, chosen.seed), list[Observation](), 0
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="halving-") as scratch,
        ThreadPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool,
    ):
        for number in range(1, 100):
            outcome = next_round(sweep, observations, number=number)
            if isinstance(outcome, SearchEnd):
                print(f"finished: {outcome.reason}")
                break
            play = partial(train, chosen.folder.resolve(), Path(scratch))
            results = list(pool.map(play, outcome.suggestions))
            observations += [observed for observed, _ in results]
            trained += sum(epochs for _, epochs in results)
            best = max(observation.values[0] for observation, _ in results if observation.values)
            print(
                f"round {number}: {len(results)} trials, best {best:.4f}, {trained} epochs so far", flush=True
            )
    grid = grids.load("fashion-mnist")
    whole, top = sum(len(curve.values) for curve in grid), max(curve.values[-1] for curve in grid)
    best = max(observation.values[0] for observation in observations if observation.values)
    print(f"grid: {len(grid)} trials, {whole} epochs, best {top:.4f}")
    print(f"halving: best {best:.4f} ({best - top:+.4f}) at {trained / whole:.1%} of the epochs")
    print(f"{time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
