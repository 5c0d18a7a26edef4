"""What a round costs, and what a search by rounds finds.

    python benchmarks/search.py times             # CPU seconds of a round over many records, imports included
    python benchmarks/search.py values [VALUES …]  # CPU seconds of a proposal where a parameter has so many categories
    python benchmarks/search.py quality [METHOD]  # median regret beside Optuna's own loop, and beside chance
    python benchmarks/search.py quality bayes --only branin --seeds 30 --trials 48
    python benchmarks/search.py quality tpe --candidates 24  # which Optuna's loop weighs; else as many as we

Every time is that of a process of its own. Optuna's own loop asks for a batch, tells it, and keeps its state.
Medians of few searches differ much by chance alone: the interval says how far, and holds their ratio in 90 %.
"""

import argparse
import json
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.functions import FUNCTIONS, LOG, Function, Values  # noqa: E402 - only now on the path
from sweepledger.search.adaptive import Observation, SearchEnd  # noqa: E402
from sweepledger.search.adaptive.rounds import next_round  # noqa: E402
from sweepledger.search.adaptive.tpe import CANDIDATES  # noqa: E402
from sweepledger.search.candidates import feasible_configurations  # noqa: E402
from sweepledger.spec import ParsedSpec, parse  # noqa: E402
from sweepledger.structs.record import Status  # noqa: E402
from sweepledger.structs.settings import Settings  # noqa: E402
from sweepledger.structs.sweep import Sweep  # noqa: E402
from sweepledger.structs.values import digest  # noqa: E402

BATCH = 8
TIMED = (("tpe", 1_000), ("tpe", 10_000), ("bayes", 500), ("cma-es", 10_000), ("nsga2", 10_000))
NUMBERS_ONLY = ("branin", "hartmann 6", "ackley 4", "rosenbrock 3")
BAR_SEEDS = 20
"""That the bar is a median of."""
RESAMPLED = 2_000

RANGES = {"rate": {"min": 0.0, "max": 1.0}, "momentum": {"min": 0.0, "max": 0.99}}
FIVE = {
    "rate": {"min": 1e-5, "max": 0.1, **LOG},
    "momentum": {"min": 0.0, "max": 0.99},
    "width": {"min": 16, "max": 512},
    "dropout": {"min": 0.0, "max": 0.9},
    "optimizer": {"values": ["adam", "sgd", "lion"]},
}


def a_sweep(
    method: str, parameters: Values, *, seed: int = 1, size: int = BATCH, ahead: int = 1, **keys: Any
) -> Sweep:
    """Parse a spec with a method; further keys replace those that it has otherwise."""
    spec = {
        "name": "bench",
        "method": method,
        "seed": seed,
        "rounds": {"size": size, "max": 100_000, **({"ahead": ahead} if ahead > 1 else {})},
        "metric": {"name": "loss"},
        "parameters": parameters,
        "command": ["train", "${args}"],
        **keys,
    }
    result = parse(json.dumps(spec, indent=1).encode(), "sweeps/bench.yaml", Settings())
    assert isinstance(result, ParsedSpec), result
    return result.sweep


def observed(assignment: Values, value: float, number: int) -> Observation:
    return Observation(assignment, 0, Status.OK, (value,), number, digest(assignment))


# What a round costs


def one_round(method: str, count: int) -> None:
    """Make a round over so many records, and say how many CPU seconds this process has taken by then."""
    sweep = a_sweep(method, FIVE)
    assert sweep.search
    before = time.process_time()
    known = [
        observed(assignment, float(at % 97), 1 + at // BATCH)
        for at, assignment in enumerate(islice(feasible_configurations(sweep.search.space, 3), count))
    ]
    recording = time.process_time() - before
    outcome = next_round(sweep, known, number=1 + -(-count // BATCH))
    assert not isinstance(outcome, SearchEnd)
    assert len(outcome.suggestions) == BATCH
    print(f"{time.process_time() - recording:.2f}")


def times() -> None:
    print("CPU seconds of a round of 8 over so many records, with every import; median of 3 processes\n")
    for method, count in TIMED:
        command = [sys.executable, __file__, "round", method, str(count)]
        taken = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
        print(f"{method:8} {count:6,} {median(taken):6.2f}", flush=True)


# What a proposal costs where a parameter has many values

VALUES = (2, 22, 38, 100, 150, 1_000)
"""Besides two numbers: auto chooses bayes up to 24 columns, of which each value is one, and bayes models up to 40."""
MOST_SECONDS = 2.0


def values_table(counts: Sequence[int]) -> None:
    print(f"CPU seconds of a proposal over 100 records, imports left out; at most {MOST_SECONDS:g}\n")
    print(f"method   {'  '.join(f'{count:>14,}' for count in counts)}")
    for method in ("tpe", "bayes", "cma-es", "nsga2"):
        cells = [_proposal(method, count) for count in counts]
        print(f"{method:8} {'  '.join(f'{cell:>14}' for cell in cells)}", flush=True)


def _proposal(method: str, values: int) -> str:
    word = {"values": [f"word-{at}" for at in range(values)]}
    sweep = a_sweep(method, {**RANGES, "word": word}, size=1)
    assert sweep.search
    known = [
        observed(assignment, float(at * 7919 % 97), 1 + at)
        for at, assignment in enumerate(islice(feasible_configurations(sweep.search.space, 3), 100))
    ]
    next_round(sweep, known[:10], number=11)  # imports the library
    before = time.process_time()
    outcome = next_round(sweep, known, number=101)
    taken = time.process_time() - before
    assert not isinstance(outcome, SearchEnd)
    return f"{taken:.2f}{' missed' if taken > MOST_SECONDS else ''}{' random' if outcome.unfitted else ''}"


# What a search finds


def ours(method: str, function: Function, seed: int, trials: int) -> float:
    sweep, known = a_sweep(method, function.parameters, seed=seed), list[Observation]()
    for number in range(1, 1 + trials // BATCH):
        outcome = next_round(sweep, known, number=number)
        assert not isinstance(outcome, SearchEnd)
        known += [
            observed(suggestion.configuration, function.value(suggestion.configuration), number)
            for suggestion in outcome.suggestions
        ]
    return min(observation.values[0] for observation in known if observation.values) - function.best


def by_chance(function: Function, seed: int, trials: int) -> float:
    search = a_sweep("tpe", function.parameters).search
    assert search
    return (
        min(map(function.value, islice(feasible_configurations(search.space, seed), trials))) - function.best
    )


def theirs(which: "Compared", function: Function, seed: int) -> float:
    """Let Optuna search by itself, in batches of the same size, over what a person would write."""
    import optuna  # noqa: PLC0415

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Callable[[], optuna.samplers.BaseSampler]] = {
        "tpe": lambda: optuna.samplers.TPESampler(
            multivariate=True,
            group=True,
            constant_liar=True,
            n_ei_candidates=which.candidates,
            seed=seed,
        ),
        "bayes": lambda: optuna.samplers.GPSampler(seed=seed, warn_independent_sampling=False),
        "cma-es": lambda: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        "nsga2": lambda: optuna.samplers.NSGAIISampler(population_size=2 * BATCH, seed=seed),
    }
    study = optuna.create_study(sampler=samplers[which.method]())
    for _ in range(which.trials // BATCH):
        trials = [study.ask() for _ in range(BATCH)]
        values = [function.value(suggested(trial, function.parameters)) for trial in trials]
        for trial, value in zip(trials, values, strict=True):
            study.tell(trial, value)
    return study.best_value - function.best


def suggested(trial: Any, parameters: Values) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, domain in parameters.items():
        if any(document.get(parent) != wanted for parent, wanted in domain.get("when", {}).items()):
            continue
        if "values" in domain:
            document[name] = trial.suggest_categorical(name, domain["values"])
        elif isinstance(domain["min"], int):
            document[name] = trial.suggest_int(name, domain["min"], domain["max"])
        else:
            document[name] = trial.suggest_float(
                name, domain["min"], domain["max"], log="distribution" in domain
            )
    return document


@dataclass(frozen=True)
class Compared:
    method: str
    trials: int
    candidates: int
    """That Optuna's TPE weighs for a proposal."""

    def regrets(self, function: Function, seeds: range) -> tuple[list[float], list[float], list[float]]:
        """Search so often: here, by Optuna's own loop, and by chance."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (
                [ours(self.method, function, seed, self.trials) for seed in seeds],
                [theirs(self, function, seed) for seed in seeds],
                [by_chance(function, seed, self.trials) for seed in seeds],
            )


def interval(mine: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Say between which ratios of medians nine of ten lie, when the same searches are drawn again."""
    dice = random.Random(1)  # noqa: S311 - no secret
    values = sorted(
        median(dice.choices(mine, k=len(mine))) / median(dice.choices(other, k=len(other)))
        for _ in range(RESAMPLED)
    )
    return values[RESAMPLED // 20], values[-RESAMPLED // 20]


HEAD = """median regret of {seeds} seeds after {trials} trials in rounds of {batch}; `first`: of {few} of them

method   function           ours     Optuna   ratio  90 % of it      first     chance  / ours"""


def quality(methods: list[str], seeds: range, only: list[str], trials: int, candidates: int) -> None:
    print(HEAD.format(seeds=len(seeds), trials=trials, batch=BATCH, few=min(len(seeds), BAR_SEEDS)))
    for method, name in cases(methods):
        if only and name not in only:
            continue
        regrets = Compared(method, trials, candidates).regrets(FUNCTIONS[name], seeds)
        mine, other, chance = map(median, regrets)
        first, theirs_first = (median(values[:BAR_SEEDS]) for values in regrets[:2])
        low, high = interval(*regrets[:2])
        ratios = f"{mine / other:6.2f}  {low:5.2f} to {high:5.2f}  {first / theirs_first:5.2f}"
        beside = f"{mine:9.3g}  {other:9.3g}  {ratios}  {chance:9.3g}  {chance / mine:6.1f}"
        print(f"{method:8} {name:13} {beside}", flush=True)


def cases(methods: list[str]) -> Iterator[tuple[str, str]]:
    for method in methods:
        for name in NUMBERS_ONLY if method in {"cma-es", "bayes"} else FUNCTIONS:
            yield method, name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("times")
    large = commands.add_parser("values")
    large.add_argument("values", nargs="*", type=int, default=VALUES)
    single = commands.add_parser("round")
    single.add_argument("method")
    single.add_argument("count", type=int)
    compared = commands.add_parser("quality")
    compared.add_argument("method", nargs="*", default=["tpe", "cma-es", "nsga2"])
    compared.add_argument("--seeds", type=int, default=BAR_SEEDS)
    compared.add_argument("--from", type=int, default=0, dest="start", help="the first of these seeds")
    compared.add_argument("--trials", type=int, default=200)
    compared.add_argument("--candidates", type=int, default=CANDIDATES)
    compared.add_argument("--only", action="append", default=[], choices=FUNCTIONS)
    given = parser.parse_args()
    if given.what == "times":
        times()
    elif given.what == "values":
        values_table(given.values)
    elif given.what == "round":
        one_round(given.method, given.count)
    else:
        seeds = range(given.start, given.start + given.seeds)
        quality(given.method, seeds, given.only, given.trials, given.candidates)


if __name__ == "__main__":
    main()
