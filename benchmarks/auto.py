"""`method: auto` beside each method that it may choose from, and beside random draws, on twelve problems.

    python benchmarks/auto.py                       # all problems, median of 20 seeds
    python benchmarks/auto.py --only levy --seeds 5

Ten problems are functions and the recorded grids of `benchmarks/data`; two let trials continue from epoch to epoch
along the recorded curves. Regret is the distance from the best value. Nothing sleeps: overlapping rounds run with
simulated durations, as in `benchmarks/overlap.py`. Searches of a problem have the same number of configurations, or
the same number of epochs.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import grids  # noqa: E402 - only now on the path
from benchmarks.functions import FUNCTIONS, Function, Values, ranges  # noqa: E402 - likewise
from benchmarks.overlap import Cluster, durations  # noqa: E402 - likewise
from benchmarks.search import a_sweep  # noqa: E402 - likewise
from sweepledger.search.adaptive import Observation, Round  # noqa: E402 - likewise
from sweepledger.search.adaptive.rounds import next_round  # noqa: E402 - likewise
from sweepledger.search.candidates import feasible_configurations  # noqa: E402 - likewise
from sweepledger.structs.record import Status  # noqa: E402 - likewise
from sweepledger.structs.sweep import Sweep  # noqa: E402 - likewise
from sweepledger.structs.values import digest  # noqa: E402 - likewise

TOLERANCE = 1.1
"""A regret up to a tenth above the best counts as best."""
MODELS = ("tpe", "bayes", "cma-es", "nsga2")
PROMOTING = ("asha", "hyperband", "halving")


def levy(at: Values) -> float:
    w = [1 + (x - 1) / 4 for x in at.values()]
    waves = sum((a - 1) ** 2 * (1 + 10 * math.sin(math.pi * a + 1) ** 2) for a in w[:-1])
    ends = math.sin(math.pi * w[0]) ** 2 + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return float(waves + ends)


def styblinski(at: Values) -> float:
    return float(sum(x**4 - 16 * x * x + 5 * x for x in at.values()) / 2)


def recorded(workload: str) -> Function:
    """Return the last value of a recorded grid, as a function that is searched without its curves."""
    curves = {digest(dict(curve.assignment)): curve.values for curve in grids.load(workload)}
    parameters = {name: {"values": list(values)} for name, values in grids.GRID.items()}
    best = max(values[-1] for values in curves.values())
    return Function(parameters, lambda at: -curves[digest(dict(at))][-1], -best, is_smooth=False)


@dataclass(frozen=True)
class Problem:
    """A function, and the budget and the parallelism of a search."""

    function: Function
    trials: int
    size: int = 8
    ahead: int = 1

    def regret(self, method: str, seed: int) -> float:
        """Search once."""
        if method == "random":
            search = self.sweep("tpe", seed).search
            assert search
            values = map(
                self.function.value, islice(feasible_configurations(search.space, seed), self.trials)
            )
            return min(values) - self.function.best
        cluster = Cluster(self.sweep(method, seed), self.function.value, durations(self.trials, seed), 0.0)
        cluster.search()
        return min(one.values[0] for one in cluster.recorded if one.values) - self.function.best

    def sweep(self, method: str, seed: int) -> Sweep:
        """Return the search."""
        rounds: dict[str, Any] = {"size": self.size, "max": self.trials // self.size, "ahead": self.ahead}
        return a_sweep(method, self.function.parameters, seed=seed, rounds=rounds)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that can search its space."""
        return MODELS if self.function.is_smooth else tuple(one for one in MODELS if one != "cma-es")


@dataclass(frozen=True)
class CurveProblem:
    """A recorded grid whose trials train a few epochs, and may go on; the budget is in epochs."""

    workload: str
    epochs: int
    sizes: Mapping[str, int]
    """Of a round; halving and hyperband start all of their trials in the first."""

    def regret(self, method: str, seed: int) -> float:
        """Search once, until the epochs are used."""
        curves = {digest(dict(curve.assignment)): curve.values for curve in grids.load(self.workload)}
        best = max(values[-1] for values in curves.values())
        if method == "random":
            space = self.sweep("asha", seed).search
            assert space
            drawn = islice(feasible_configurations(space.space, seed), self.epochs // grids.EPOCHS)
            return best - max(curves[digest(dict(at))][-1] for at in drawn)
        sweep, known, used, number = self.sweep(method, seed), list[Observation](), 0, 0
        reached: dict[str, int] = {}
        while used < self.epochs:
            number += 1
            proposal = next_round(sweep, known, number=number)
            if not isinstance(proposal, Round):
                break
            for one in proposal.suggestions:
                at = dict(one.configuration)
                epochs = int(str(at.pop("epochs")))
                key = digest(at)
                used += epochs - reached.get(key, 0)
                if used > self.epochs:
                    break
                reached[key] = epochs
                value = -curves[key][epochs - 1]
                trial = digest(dict(one.configuration))
                known.append(
                    Observation(one.configuration, 0, Status.OK, (value,), proposal.number, trial, one.parent)
                )
        return best + min(one.values[0] for one in known if one.values)

    def sweep(self, method: str, seed: int) -> Sweep:
        """Return the search."""
        parameters = {name: {"values": list(values)} for name, values in grids.GRID.items()}
        size = self.sizes.get(method, self.sizes["asha"])
        resource = {"parameter": "epochs", "min": 1, "max": grids.EPOCHS}
        return a_sweep(method, parameters, seed=seed, rounds={"size": size, "max": 99}, resource=resource)

    methods = PROMOTING


SIZES = {"asha": 6, "halving": 54, "hyperband": 24}
"""Halving and Hyperband use as many epochs as `asha`."""

PROBLEMS: Mapping[str, Problem | CurveProblem] = {
    "branin": Problem(FUNCTIONS["branin"], 48),
    "hartmann 6": Problem(FUNCTIONS["hartmann 6"], 96),
    "ackley 4": Problem(FUNCTIONS["ackley 4"], 64),
    "rosenbrock 3": Problem(FUNCTIONS["rosenbrock 3"], 64, size=2, ahead=4),
    "mixed": Problem(FUNCTIONS["mixed"], 48, size=1, ahead=8),
    "conditional": Problem(FUNCTIONS["conditional"], 64),
    "levy": Problem(Function(ranges(4, -10.0, 10.0), levy, 0.0), 64, size=4, ahead=2),
    "styblinski 5": Problem(Function(ranges(5, -5.0, 5.0), styblinski, -39.16617 * 5), 96, size=32),
    "mnist": Problem(recorded("mnist"), 20, size=4),
    "fashion": Problem(recorded("fashion-mnist"), 20, size=4),
    "mnist, by epochs": CurveProblem("mnist", 162, SIZES),
    "fashion, by epochs": CurveProblem("fashion-mnist", 162, SIZES),
}


def compare(names: Sequence[str], seeds: range) -> None:
    """Print the median regret of each method, and whether the choice is among the best."""
    print(f"median regret of {len(seeds)} seeds; * the choice of auto\n")
    near = better = 0
    for name in names:
        problem = PROBLEMS[name]
        search = problem.sweep("auto", 0).search
        assert search
        chosen = str(search.method)
        regrets = {
            method: median(_each(problem.regret, method, seeds)) for method in (*problem.methods, "random")
        }
        best = min(regret for method, regret in regrets.items() if method != "random")
        is_near, is_better = (
            regrets[chosen] <= TOLERANCE * best,
            regrets[chosen] <= regrets["random"],
        )
        near, better = near + is_near, better + is_better
        row = "  ".join(
            f"{'*' * (method == chosen)}{method} {regret:.3g}" for method, regret in regrets.items()
        )
        verdict = ("best or within a tenth" if is_near else "not best") + (
            "" if is_better else ", WORSE THAN RANDOM"
        )
        print(f"{name:19} {row}: {verdict}", flush=True)
    print(f"\nbest or within a tenth on {near} of {len(names)}; at least as good as random on {better}")


def _each(regret: Callable[[str, int], float], method: str, seeds: range) -> list[float]:
    return [regret(method, seed) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", type=int, default=0, dest="start", help="the first of these seeds")
    parser.add_argument("--only", action="append", default=[], choices=PROBLEMS)
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(given.only or list(PROBLEMS), range(given.start, given.start + given.seeds))


if __name__ == "__main__":
    main()
