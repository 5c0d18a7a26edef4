"""Plays `sweep run` and kills itself at a chosen moment: a real SIGKILL, no hook in the product.

Usage: run_driver.py REPOSITORY NAME MOMENT COUNT — at the COUNT-th event named MOMENT; `never` plays to the end.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.run import RunOptions, SweepRun
from sweepledger.repo.state import create_state

root, name, moment, count = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after() -> None:
    time.sleep(count / 1000)
    die()


workspace = Workspace.find(root)
state = create_state(workspace.repository)
if moment == "Milliseconds":
    threading.Thread(target=die_after, daemon=True).start()
seen = 0
for event in SweepRun.prepare(workspace, (name,)).run(RunOptions(state)):
    if type(event).__name__ == moment:
        seen += 1
        if seen == count:
            die()
