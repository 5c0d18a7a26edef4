"""Runs an engine in a process of its own, to be killed: `driver.py ROOT RETRIES DIE_AT [WORDS…]`.

DIE_AT is `never`, or `module.function:N` or `module.Class.method:N`: the process kills itself where it
would make the N-th such call. Without words nothing is desired: all is pruned.
"""

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent.parent), str(Path(__file__).parent.parent)]

from tests.engine.batches import Machine, indexed  # noqa: E402 - once it can be found


def arm(place: str) -> None:
    """Make the N-th call of a function the end of this process."""
    path, _, number = place.partition(":")
    module, *owners, name = path.split(".")
    owner = importlib.import_module(f"sweepledger.engine.local.{module}")
    for inner in owners:
        owner = getattr(owner, inner)
    real = getattr(owner, name)
    left = [int(number)]

    def deadly(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(owner, name, deadly)


def main() -> None:
    """Drive one batch to its end, or to ours."""
    root, retries, die_at, *words = sys.argv[1:]
    machine = Machine(Path(root))
    if die_at != "never":
        arm(die_at)
    made = [indexed(words, parallelism=3, retries=int(retries))] if words else []
    with machine.engine() as engine:
        machine.drive(engine, *made, seconds=120)


main()
