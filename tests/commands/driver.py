"""Plays `sweep cluster local --once` and kills itself at a chosen moment: a real SIGKILL, no hook in the product.

Usage: driver.py URL STATE MOMENT COUNT — at the COUNT-th event named MOMENT; `never` plays to the end.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from sweepledger.commands.local import Event, Options, local

url, state, moment, count = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_record() -> None:
    """Die as soon as a record stands under its name, before the engine can have taken notice."""
    while True:
        if len(list((state / "results").glob("*/*/*.json"))) >= count:
            die()
        time.sleep(0.0005)


if moment == "Record":
    threading.Thread(target=die_at_record, daemon=True).start()

seen = 0
event: Event
for event in local(Options(url, "main", state, once=True)):
    if type(event).__name__ == moment:
        seen += 1
        if seen == count:
            die()
