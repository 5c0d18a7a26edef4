"""Results to write to stores: made of values, without a repository."""

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.stores.contents import FinishedTrial, SweepContents
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Status

HOSTILE = "a|b`c\n<script>"


def a_trial(number: int, **changes: object) -> FinishedTrial:
    """A trial with two curves, one of three points, the second of which is not finite."""
    values: dict[str, object] = {
        "id": f"t{number:011x}",
        "batch": "peak-b1-3f9a1c2e",
        "replicate": 0,
        "seed": number,
        "status": Status.OK,
        "parameters": {
            "rate": 0.001 * (number + 1),
            "width": 64,
            "kind": ("a", "b")[number % 2],
            "layers": [1, 2],
        },
        "metrics": {"score": float(number), "loss": 0.5},
        "curves": {"loss": ((5, 0.75), (10, 0.5)), "score": ((0, 0.1), (5, None), (10, float(number)))},
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:01:00Z",
        "code": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "ran": "process",
    }
    return FinishedTrial(**{**values, **changes})  # type: ignore[arg-type]


def some_contents(count: int = 4, **changes: object) -> SweepContents:
    """A sweep with trials of each final status."""
    statuses = (Status.OK, Status.OK, Status.PRUNED, Status.DIVERGED)
    values: dict[str, object] = {
        "sweep": "peak",
        "description": f"Where is it? {HOSTILE}",
        "commit": "0" * 40,
        "version": "1" * 40,
        "metrics": (Metric("score", Goal.MAXIMIZE),),
        "domains": {
            "rate": LogUniform(1e-4, 1.0),
            "width": Constant(64),
            "kind": Choice(("a", "b", HOSTILE)),
            "layers": Choice(([1, 2], [3])),
        },
        "trials": tuple(a_trial(number, status=statuses[number % 4]) for number in range(count)),
        "best": f"t{1:011x}",
        "data": None,
        "unfinished": 1,
    }
    return SweepContents(**{**values, **changes})  # type: ignore[arg-type]
