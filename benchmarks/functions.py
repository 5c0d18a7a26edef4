"""Six functions to search on, each with its best value, and a space as a spec writes it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LOG = {"distribution": "log_uniform_values"}

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
