"""What every method that goes by rounds is held to, on one sweep of each."""

from typing import Any

from sweepledger.search.adaptive import Round
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.structs.methods import Method
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import digest
from tests.search.searches import a_search, history, searched

EPOCHS = {"parameter": "epochs", "min": 1, "max": 9, "eta": 3}

NUMBERS: dict[str, Any] = {
    "rate": {"min": 1e-5, "max": 0.1, "distribution": "log_uniform_values"},
    "momentum": {"min": 0.0, "max": 0.99},
    "noise": {"distribution": "truncated_normal", "mu": 0, "sigma": 0.1, "min": -0.2, "max": 0.2},
    "width": {"distribution": "q_uniform", "min": 32, "max": 512, "q": 32},
}

EVERYTHING: dict[str, Any] = {
    **NUMBERS,
    "depth": {"min": 1, "max": 6},
    "layers": {"values": [1, 2]},
    "optimizer": {"values": ["adam", "sgd", "lion"], "probabilities": [0.5, 0.3, 0.2]},
    "nesterov": {"values": [True, False], "when": {"optimizer": "sgd"}},
    "heads": {"values": [2, 4, 8]},
    "size": {"values": ["s", "m", "l"]},
    "scale": {"distribution": "q_log_normal", "q": 1},
    "epsilon": {"value": 1e-8},
}


def a_sweep_of(method: Method, **changes: Any) -> Sweep:
    return a_search(
        **{
            "method": str(method),
            "rounds": {"size": 5, "max": 6},
            "parameters": EVERYTHING,
            "zip": [["heads", "size"]],
            "derived": {"decay": "rate / 10"},
            "constraints": ["width * depth <= 2048"],
            **({"resource": EPOCHS} if not method.has_model else {}),
            **changes,
        }
    )


def score(assignment: Any) -> float:
    return float(
        abs(assignment["momentum"] - 0.9) + abs(assignment["width"] - 256) / 512 + assignment["depth"]
    )


def digest_of_rounds(method: Method) -> str:
    """Sum up a search: its first rounds, and one after a longer history."""
    sweep = a_sweep_of(method)
    trials = searched(sweep, score, 3)
    seen: list[Any] = [[dict(observation.configuration), observation.parent] for observation in trials]
    if method.has_model:
        outcome = next_round(
            sweep, history(sweep, score, 24), number=6
        )  # with a model, which takes ten trials to begin
        assert isinstance(outcome, Round)
        seen += [dict(suggestion.configuration) for suggestion in outcome.suggestions]
    return digest(seen)[:16]
