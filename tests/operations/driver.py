"""Plays a command and kills itself at a chosen moment: a real SIGKILL, no hook in the product.

    driver.py local URL STATE MOMENT COUNT          `sweep cluster local --once`
    driver.py run REPOSITORY NAME MOMENT COUNT      `sweep run`; with HandOver it hands over instead

It dies at the COUNT-th event named MOMENT, or at the COUNT-th move of the branch; `never` plays to the end.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sweepledger.operations.cluster_local import Options, local
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.run import RunOptions, SweepRun
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state

command, place, other, moment, count = *sys.argv[1:5], int(sys.argv[5])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_record() -> None:
    """Die as soon as a record stands under its name, before the engine can have taken notice."""
    while True:
        if len(list(Path(other).glob("results/*/*/*.json"))) >= count:
            die()
        time.sleep(0.0005)


def die_at_moves() -> None:
    run, moves = Repository.run, list[str]()

    def run_and_die(repository: Repository, *arguments: str, **options: Any) -> str:
        said: str = run(repository, *arguments, **options)
        if arguments[0] == "update-ref":
            moves.append(said)
            if len(moves) == count:
                die()
        return said

    Repository.run = run_and_die  # type: ignore[assignment,method-assign]


def played() -> Iterator[Any]:
    if command == "local":
        yield from local(Options(place, "main", Path(other), once=True))
        return
    workspace = Workspace.find(Path(place))
    state, run = create_state(workspace.repository), SweepRun.prepare(workspace, (other,))
    if moment == "HandOver":
        die_at_moves()
        run.hand_over(state)
    else:
        yield from run.run(RunOptions(state))


if moment == "Record":
    threading.Thread(target=die_at_record, daemon=True).start()
seen = 0
for event in played():
    seen += type(event).__name__ == moment
    if seen == count:
        die()
