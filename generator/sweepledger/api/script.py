"""Functions for training scripts: hyperparameters and reports of metrics. They work inside and outside a trial.

Standard library only: a trial loads nothing else of this package.
"""

import json
import os
from pathlib import Path
from typing import Any, SupportsFloat

STEP = "step"


def values() -> dict[str, Any]:
    """Return the trial's hyperparameters by name; empty if the script does not run as a trial."""
    path = os.environ.get("SWEEP_TRIAL")
    if not path:
        return {}
    parameters: dict[str, Any] = json.loads(Path(path).read_bytes())
    return parameters


def report(step: int | None = None, /, **metrics: SupportsFloat) -> None:
    """Report metrics, at a step if given: as a line of `$SWEEP_RESULT`, or printed outside a trial.

    The spec of a script that reports several times needs `metric: {format: jsonl}`. Raises TypeError for a
    metric that is not a number.
    """
    if STEP in metrics:
        raise TypeError("the step is the first argument, as in report(3, loss=0.1)")
    position = {} if step is None else {STEP: int(step)}
    line = {**position, **{name: _number(name, value) for name, value in metrics.items()}}
    path = os.environ.get("SWEEP_RESULT")
    if not path:
        print(*(f"{name}={value}" for name, value in line.items()), flush=True)  # noqa: T201 - the user's output
        return
    # One write for each line: the launcher may read it immediately, to stop the trial early.
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _number(name: str, value: SupportsFloat) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number, got {value!r}") from error
