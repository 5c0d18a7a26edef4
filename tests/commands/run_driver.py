"""Plays `sweep run` and kills itself at a chosen moment: a real SIGKILL, no hook in the product.

Usage: run_driver.py REPOSITORY NAME MOMENT COUNT — at the COUNT-th event named MOMENT; `never` plays to the end.
With `HandOver` it hands over instead, and dies when the branch has moved for the COUNT-th time.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.run import RunOptions, SweepRun
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state

root, name, moment, count = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hand_over() -> None:
    run, moves = Repository.run, list[str]()

    def run_and_die(repository: Repository, *arguments: str, **options: Any) -> str:
        said: str = run(repository, *arguments, **options)
        if arguments[0] == "update-ref":
            moves.append(said)
            if len(moves) == count:
                die()
        return said

    Repository.run = run_and_die  # type: ignore[assignment,method-assign]
    SweepRun.prepare(workspace, (name,)).hand_over(state)


workspace = Workspace.find(root)
state = create_state(workspace.repository)
if moment == "HandOver":
    hand_over()
    sys.exit()
seen = 0
for event in SweepRun.prepare(workspace, (name,)).run(RunOptions(state)):
    if type(event).__name__ == moment:
        seen += 1
        if seen == count:
            die()
