"""Searches whose rounds overlap, beside rounds with a barrier and beside Optuna's workers; nothing sleeps.

    python benchmarks/overlap.py walls              # wall time of 64 trials, eight in parallel
    python benchmarks/overlap.py quality [METHOD]   # median regret with seven trials pending, beside Optuna's loop
    python benchmarks/overlap.py quality tpe --blind  # and if a round did not know the pending trials

A trial lasts a log-normal time with a median of ten minutes and sigma 1; both sides start the same durations in the
same order. Between the end of a trial and the start of what follows, the collector needs `--delay` seconds, and
Optuna's workers none.
"""

import argparse
import heapq
import math
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.functions import FUNCTIONS, Function, Values  # noqa: E402 - only now on the path
from benchmarks.search import a_sweep, by_chance, interval, observed, suggested  # noqa: E402 - likewise
from sweepledger.search.adaptive import Observation, Round, Suggestion  # noqa: E402 - likewise
from sweepledger.search.adaptive.rounds import next_round  # noqa: E402 - likewise
from sweepledger.search.adaptive.tpe import CANDIDATES  # noqa: E402 - likewise
from sweepledger.structs.record import Status  # noqa: E402 - likewise
from sweepledger.structs.sweep import Sweep  # noqa: E402 - likewise
from sweepledger.structs.values import digest  # noqa: E402 - likewise

PARALLEL = 8
MEDIAN_SECONDS, SIGMA = 600.0, 1.0
SHAPES = ((8, 1), (4, 2), (2, 4), (1, 8))
"""Sizes of rounds, and how many overlap."""

Evaluate = Callable[[Values], float]


def durations(count: int, seed: int) -> list[float]:
    """Draw how long trials last."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    return [dice.lognormvariate(math.log(MEDIAN_SECONDS), SIGMA) for _ in range(count)]


@dataclass
class Cluster:
    """Batches that run until their slowest trial has ended, and a collector that then asks for the next round."""

    sweep: Sweep
    value: Evaluate
    seconds: Sequence[float]
    delay: float
    blind: bool = False
    recorded: list[Observation] = field(default_factory=list)
    running: list[tuple[float, int, tuple[Suggestion, ...]]] = field(default_factory=list)
    rounds: int = 0
    started: int = 0

    @property
    def pending(self) -> list[Observation]:
        """Return the trials of active batches."""
        return [
            Observation(
                one.configuration, 0, Status.MISSING, None, number, digest(one.configuration), one.parent
            )
            for _, number, suggestions in self.running
            for one in suggestions
        ]

    def search(self) -> float:
        """Run the search; return when its last batch is recorded."""
        assert self.sweep.search
        ahead, now = self.sweep.search.rounds.ahead, 0.0
        while True:
            while self.started < len(self.seconds) and len(self.running) < ahead:
                self.ask(now)
            if not self.running:
                return now
            ended, number, suggestions = heapq.heappop(self.running)
            now = ended + self.delay
            self.recorded += [
                observed(one.configuration, self.value(one.configuration), number) for one in suggestions
            ]

    def ask(self, now: float) -> None:
        """Add the next round to what runs."""
        pending = () if self.blind else self.pending
        self.rounds += 1
        proposal = next_round(self.sweep, self.recorded, number=self.rounds, pending=pending)
        assert isinstance(proposal, Round), proposal
        count = len(proposal.suggestions)
        slowest = max(self.seconds[self.started : self.started + count])
        self.started += count
        heapq.heappush(self.running, (now + slowest, self.rounds, proposal.suggestions))


def workers(study: Any, function: Function, seconds: Sequence[float]) -> float:
    """Let Optuna's workers search: whenever a trial ends, its worker asks for another one."""
    running: list[tuple[float, int, Any, float]] = []
    now, left = 0.0, iter(seconds)
    started = 0
    while True:
        while len(running) < PARALLEL and (lasting := next(left, None)) is not None:
            trial = study.ask()
            value = function.value(suggested(trial, function.parameters))
            started += 1
            heapq.heappush(running, (now + lasting, started, trial, value))
        if not running:
            return now
        now, _, trial, value = heapq.heappop(running)
        study.tell(trial, value)


def optunas(method: str, seed: int) -> Any:
    """Create the study that Optuna's workers share."""
    import optuna  # noqa: PLC0415

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(
            multivariate=True, group=True, constant_liar=True, n_ei_candidates=CANDIDATES, seed=seed
        ),
        "bayes": lambda: optuna.samplers.GPSampler(seed=seed, warn_independent_sampling=False),
        "nsga2": lambda: optuna.samplers.NSGAIISampler(population_size=2 * PARALLEL, seed=seed),
    }
    return optuna.create_study(sampler=samplers[method]())


def walls(trials: int, seeds: range, delay: float) -> None:
    """Print the wall time of each shape beside that of Optuna's workers."""
    function = FUNCTIONS["branin"]
    print(
        f"hours of {trials} trials, {PARALLEL} in parallel, {delay:g} s from end to start; median of {len(seeds)}\n"
    )
    print("size  ahead   hours  / Optuna's  (each seed: least to most)")
    theirs = [workers(optunas("tpe", seed), function, durations(trials, seed)) for seed in seeds]
    for size, ahead in SHAPES:
        sweep = a_sweep("tpe", function.parameters, size=size, ahead=ahead)
        ours = [Cluster(sweep, function.value, durations(trials, seed), delay).search() for seed in seeds]
        ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{size:4} {ahead:6} {median(ours) / 3600:7.2f} {median(ratios):11.2f}  {spread}", flush=True)
    print(f"   Optuna   {median(theirs) / 3600:7.2f}")


def quality(methods: list[str], only: list[str], seeds: range, trials: int, *, blind: bool) -> None:
    """Print the regret of size 1 with eight in parallel, beside that of Optuna's workers."""
    print(
        f"median regret of {len(seeds)} seeds after {trials} trials, one asked for while {PARALLEL - 1} run\n"
    )
    print(
        "method   function           ours     Optuna   ratio  90 % of it       chance" + "  (blind)" * blind
    )
    for method in methods:
        for name, function in FUNCTIONS.items():
            if only and name not in only:
                continue
            ours, theirs, chance = [], [], []
            for seed in seeds:
                seconds = durations(trials, seed)
                sweep = a_sweep(method, function.parameters, seed=seed, size=1, ahead=PARALLEL)
                cluster = Cluster(sweep, function.value, seconds, 0.0, blind)
                cluster.search()
                ours.append(min(one.values[0] for one in cluster.recorded if one.values) - function.best)
                study = optunas(method, seed)
                workers(study, function, seconds)
                theirs.append(study.best_value - function.best)
                chance.append(by_chance(function, seed, trials))
            low, high = interval(ours, theirs)
            ratio = f"{median(ours) / median(theirs):6.2f}  {low:5.2f} to {high:5.2f}"
            print(
                f"{method:8} {name:13} {median(ours):9.3g}  {median(theirs):9.3g}  {ratio}  {median(chance):9.3g}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["walls", "quality"])
    parser.add_argument("method", nargs="*", default=["tpe"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", type=int, default=0, dest="start", help="the first of these seeds")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--delay", type=float, default=15.0)
    parser.add_argument("--only", action="append", default=[], choices=FUNCTIONS)
    parser.add_argument("--blind", action="store_true", help="rounds do not know the pending trials")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if given.what == "walls":
            walls(given.trials, range(given.seeds), given.delay)
        else:
            seeds = range(given.start, given.start + given.seeds)
            quality(given.method, given.only, seeds, given.trials, blind=given.blind)


if __name__ == "__main__":
    main()
