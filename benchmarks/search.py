"""What a round costs, and what a search by rounds finds.

    python benchmarks/search.py times             # CPU seconds of a round over many records, imports included
    python benchmarks/search.py quality [METHOD]  # median regret beside Optuna's own loop, and beside chance
    python benchmarks/search.py quality bayes --only branin --seeds 5 --trials 48

Every time is that of a process of its own. Optuna's own loop asks for a batch, tells it, and keeps its state.
"""

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from generator.search.adaptive import Finished, Observation, next_round  # noqa: E402
from generator.search.adaptive.chance import feasible  # noqa: E402
from generator.spec import parse  # noqa: E402
from generator.structs.record import Status  # noqa: E402
from generator.structs.settings import Settings  # noqa: E402
from generator.structs.sweep import Sweep  # noqa: E402
from generator.structs.values import digest  # noqa: E402

BATCH = 8
LOG = {"distribution": "log_uniform_values"}
TIMED = (("tpe", 1_000), ("tpe", 10_000), ("bayes", 500), ("cma-es", 10_000), ("nsga2", 10_000))

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Function:
    parameters: dict[str, Any]
    value: Callable[[Values], float]
    best: float
    is_smooth: bool = True


def branin(at: Values) -> float:
    x, y = at["x"], at["z"]
    bowl = (y - 5.1 * x**2 / (4 * math.pi**2) + 5 * x / math.pi - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


HARTMANN_A = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
HARTMANN_P = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]


def hartmann(at: Values) -> float:
    point = [at[f"x{number}"] for number in range(6)]
    total = 0.0
    for weight, a, p in zip((1.0, 1.2, 3.0, 3.2), HARTMANN_A, HARTMANN_P, strict=True):
        inner = sum(ai * (xi - pi / 10_000) ** 2 for ai, xi, pi in zip(a, point, p, strict=True))
        total += weight * math.exp(-inner)
    return -total


def ackley(at: Values) -> float:
    point = list(at.values())
    mean = sum(x * x for x in point) / len(point)
    waves = sum(math.cos(2 * math.pi * x) for x in point) / len(point)
    return -20 * math.exp(-0.2 * math.sqrt(mean)) - math.exp(waves) + 20 + math.e


def rosenbrock(at: Values) -> float:
    point = list(at.values())
    return float(sum(100 * (y - x * x) ** 2 + (1 - x) ** 2 for x, y in pairwise(point)))


def mixed(at: Values) -> float:
    kind = {"adam": 0.0, "sgd": 0.3, "lion": 0.6}[at["optimizer"]]
    return float(
        math.log10(at["rate"] / 1e-3) ** 2 + ((at["depth"] - 4) / 4) ** 2 + (at["drop"] - 0.2) ** 2 + kind
    )


def conditional(at: Values) -> float:
    rate = float(math.log10(at["rate"] / 1e-3) ** 2)
    if at["optimizer"] == "adam":
        return rate + 0.2 + float(at["beta"] - 0.95) ** 2
    return rate + float(at["momentum"] - 0.9) ** 2 + 0.1 * abs(int(at["depth"]) - 3)


def ranges(count: int, low: float, high: float) -> dict[str, Any]:
    return {f"x{number}": {"min": low, "max": high} for number in range(count)}


FUNCTIONS = {
    "branin": Function({"x": {"min": -5.0, "max": 10.0}, "z": {"min": 0.0, "max": 15.0}}, branin, 0.397887),
    "hartmann 6": Function(ranges(6, 0.0, 1.0), hartmann, -3.32237),
    "ackley 4": Function(ranges(4, -32.768, 32.768), ackley, 0.0),
    "rosenbrock 3": Function(ranges(3, -5.0, 10.0), rosenbrock, 0.0),
    "mixed": Function(
        {
            "rate": {"min": 1e-6, "max": 1.0, **LOG},
            "depth": {"min": 1, "max": 12},
            "drop": {"min": 0.0, "max": 0.9},
            "optimizer": {"values": ["lion", "sgd", "adam"]},
        },
        mixed,
        0.0,
        is_smooth=False,
    ),
    "conditional": Function(
        {
            "optimizer": {"values": ["adam", "sgd"]},
            "rate": {"min": 1e-6, "max": 1.0, **LOG},
            "beta": {"min": 0.5, "max": 0.999, "when": {"optimizer": "adam"}},
            "momentum": {"min": 0.0, "max": 0.99, "when": {"optimizer": "sgd"}},
            "depth": {"min": 1, "max": 12, "when": {"optimizer": "sgd"}},
        },
        conditional,
        0.0,
        is_smooth=False,
    ),
}
NUMBERS_ONLY = ("branin", "hartmann 6", "ackley 4", "rosenbrock 3")

FIVE = {
    "rate": {"min": 1e-5, "max": 0.1, **LOG},
    "momentum": {"min": 0.0, "max": 0.99},
    "width": {"min": 16, "max": 512},
    "dropout": {"min": 0.0, "max": 0.9},
    "optimizer": {"values": ["adam", "sgd", "lion"]},
}


def a_sweep(method: str, parameters: Values, *, seed: int = 1, size: int = BATCH) -> Sweep:
    spec = {
        "name": "bench",
        "method": method,
        "seed": seed,
        "rounds": {"size": size, "max": 100_000},
        "metric": {"name": "loss"},
        "parameters": parameters,
        "command": ["train", "${args}"],
    }
    found = parse(json.dumps(spec, indent=1).encode(), "sweeps/bench.yaml", Settings())
    assert isinstance(found, Sweep), found
    return found


def observed(assignment: Values, value: float, number: int) -> Observation:
    return Observation(assignment, 0, Status.OK, (value,), number, digest(assignment))


# What a round costs


def one_round(method: str, count: int) -> None:
    """Make a round over so many records, and say how many CPU seconds this process has taken by then."""
    sweep = a_sweep(method, FIVE)
    assert sweep.search
    before = time.process_time()
    known = [
        observed(one, float(at % 97), 1 + at // BATCH)
        for at, one in enumerate(islice(feasible(sweep.search.space, 3), count))
    ]
    recording = time.process_time() - before
    found = next_round(sweep, known, number=1 + -(-count // BATCH))
    assert not isinstance(found, Finished)
    assert len(found.suggestions) == BATCH
    print(f"{time.process_time() - recording:.2f}")


def times() -> None:
    print("CPU seconds of a round of 8 over so many records, with every import; median of 3 processes\n")
    for method, count in TIMED:
        command = [sys.executable, __file__, "round", method, str(count)]
        taken = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
        print(f"{method:8} {count:6,} {median(taken):6.2f}", flush=True)


# What a search finds


def ours(method: str, function: Function, seed: int, trials: int) -> float:
    sweep, known = a_sweep(method, function.parameters, seed=seed), list[Observation]()
    for number in range(1, 1 + trials // BATCH):
        found = next_round(sweep, known, number=number)
        assert not isinstance(found, Finished)
        known += [
            observed(one.assignment, function.value(one.assignment), number) for one in found.suggestions
        ]
    return min(one.values[0] for one in known if one.values) - function.best


def by_chance(function: Function, seed: int, trials: int) -> float:
    search = a_sweep("tpe", function.parameters).search
    assert search
    return min(map(function.value, islice(feasible(search.space, seed), trials))) - function.best


def theirs(method: str, function: Function, seed: int, trials: int) -> float:
    """Let Optuna search by itself, in batches of the same size, over what a person would write."""
    import optuna  # noqa: PLC0415

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Callable[[], optuna.samplers.BaseSampler]] = {
        "tpe": lambda: optuna.samplers.TPESampler(
            multivariate=True, group=True, constant_liar=True, seed=seed
        ),
        "bayes": lambda: optuna.samplers.GPSampler(seed=seed, warn_independent_sampling=False),
        "cma-es": lambda: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        "nsga2": lambda: optuna.samplers.NSGAIISampler(population_size=2 * BATCH, seed=seed),
    }
    study = optuna.create_study(sampler=samplers[method]())
    for _ in range(trials // BATCH):
        asked = [study.ask() for _ in range(BATCH)]
        values = [function.value(suggested(trial, function.parameters)) for trial in asked]
        for trial, value in zip(asked, values, strict=True):
            study.tell(trial, value)
    return study.best_value - function.best


def suggested(trial: Any, parameters: Values) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, domain in parameters.items():
        if any(found.get(parent) != wanted for parent, wanted in domain.get("when", {}).items()):
            continue
        if "values" in domain:
            found[name] = trial.suggest_categorical(name, domain["values"])
        elif isinstance(domain["min"], int):
            found[name] = trial.suggest_int(name, domain["min"], domain["max"])
        else:
            found[name] = trial.suggest_float(
                name, domain["min"], domain["max"], log="distribution" in domain
            )
    return found


def quality(methods: list[str], seeds: int, trials: int, only: list[str]) -> None:
    print(f"median regret of {seeds} seeds after {trials} trials in rounds of {BATCH}\n")
    print("method   function           ours     Optuna      ratio     chance   better than chance")
    for method, name in cases(methods):
        if only and name not in only:
            continue
        function = FUNCTIONS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = median(ours(method, function, seed, trials) for seed in range(seeds))
            other = median(theirs(method, function, seed, trials) for seed in range(seeds))
        chance = median(by_chance(function, seed, trials) for seed in range(seeds))
        beside = f"{mine:9.3g}  {other:9.3g}  {mine / other:9.2f}  {chance:9.3g}  {chance / mine:9.1f}"
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
    single = commands.add_parser("round")
    single.add_argument("method")
    single.add_argument("count", type=int)
    compared = commands.add_parser("quality")
    compared.add_argument("method", nargs="*", default=["tpe", "cma-es", "nsga2"])
    compared.add_argument("--seeds", type=int, default=20)
    compared.add_argument("--trials", type=int, default=200)
    compared.add_argument("--only", action="append", default=[], choices=FUNCTIONS)
    given = parser.parse_args()
    if given.what == "times":
        times()
    elif given.what == "round":
        one_round(given.method, given.count)
    else:
        quality(given.method, given.seeds, given.trials, given.only)


if __name__ == "__main__":
    main()
