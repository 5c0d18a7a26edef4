"""What early stopping would have saved on real curves, and whether the best trial would have lived.

python benchmarks/early_stopping.py [--orders 200] [--batch 10]

The recorded grids (`benchmarks/grids.py`) are asked for in seeded random orders, batch by batch, as a sweep
would: the rules are compiled from what the batches before have left, by the generator's own function, and
the curves go through the launcher's own follower. What it ends leaves the curve up to there.
"""

import argparse
import importlib
import random
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import grids  # noqa: E402 - only now on the path
from sweepledger.stopping.hyperband import HyperbandStop  # noqa: E402 - likewise
from sweepledger.stopping.percentile import PercentileStop  # noqa: E402 - likewise
from sweepledger.structs.early_stopping import LearningCurve, StopPolicy  # noqa: E402 - likewise
from sweepledger.structs.metric import Goal, Metric  # noqa: E402 - likewise

METRIC = Metric(grids.METRIC, Goal.MAXIMIZE)
sys.path.insert(0, str(ROOT / "base/launcher/v1"))
complete_metric = importlib.import_module("launch_contract").complete_metric
Follower = importlib.import_module("launch_stopping").Follower
Files = importlib.import_module("launch_reports").Files

RULES: Mapping[str, StopPolicy] = {
    "median, min_iter 3": PercentileStop(min_iter=3),
    "percentile 25, min_iter 3": PercentileStop(percentile=25, min_iter=3),
    "hyperband, min_iter 3, eta 3": HyperbandStop(min_iter=3),
    "hyperband, min_iter 3, eta 2": HyperbandStop(min_iter=3, eta=2),
}


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of one order."""

    saved: float
    """Of the epochs that all trials together would have trained."""
    kept: bool
    """Whether a trial of the best final value ran to its end."""


def replay(curves: Sequence[grids.Curve], rule: StopPolicy, size: int) -> Replay:
    """Ask for the trials batch by batch, in the order given."""
    left: list[LearningCurve] = []
    trained, whole, best = 0, 0, max(curve.values[-1] for curve in curves)
    kept = False
    for first in range(0, len(curves), size):
        rules = rule.compile(METRIC, left)
        ended = [(curve, *ends(curve, rules)) for curve in curves[first : first + size]]
        for curve, step, is_whole in ended:
            trained, whole = trained + step, whole + len(curve.values)
            kept = kept or (step == len(curve.values) and curve.values[-1] == best)
            left.append(LearningCurve(tuple(enumerate(curve.values[:step], start=1)), is_whole))
    return Replay(1 - trained / whole, kept)


def ends(curve: grids.Curve, rules: Sequence[Mapping[str, Any]]) -> tuple[int, bool]:
    """Say after which step a trial ends, and whether that makes it ok."""
    if not rules:
        return len(curve.values), True
    metric = complete_metric({"name": grids.METRIC, "source": "stdout"})
    follower = Follower({"stop": rules, "metric": metric}, Files(""), list)
    for step, value in enumerate(curve.values, start=1):
        follower.take(step, value)
        if follower.broken is not None:
            return step, not follower.broken.is_behind
    return len(curve.values), True


def orders(curves: Sequence[grids.Curve], count: int) -> Iterator[Sequence[grids.Curve]]:
    """Shuffle the trials, each time by a seed of its own."""
    for seed in range(count):
        yield random.Random(seed).sample(curves, len(curves))  # noqa: S311 - no secret


def main() -> int:
    """Print a line for each grid and rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--batch", type=int, default=10)
    chosen = parser.parse_args()
    started = time.process_time()
    for workload in grids.WORKLOADS:
        curves = grids.load(workload)
        print(f"{workload}: {len(curves)} trials, {chosen.orders} orders, batches of {chosen.batch}")
        for name, rule in RULES.items():
            replays = [replay(order, rule, chosen.batch) for order in orders(curves, chosen.orders)]
            saved = statistics.median(item.saved for item in replays)
            least = min(item.saved for item in replays)
            kept = sum(item.kept for item in replays) / len(replays)
            print(f"  {name:30} saved {saved:5.1%} (least {least:5.1%}), best trial kept {kept:6.1%}")
    print(f"{time.process_time() - started:.0f} CPU seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
