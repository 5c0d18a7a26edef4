"""Plays `sweep cluster local --once` on a system that has neither /proc, nor prctl, nor CPU affinity.

Usage: without_linux.py URL STATE. The supervisor of each pod is a process of its own, which lacks them, too.
"""

import os
import sys
from pathlib import Path

LACKS = """\
import ctypes, os
for name in ("sched_getaffinity", "sched_setaffinity"):
    delattr(os, name) if hasattr(os, name) else None
class Library:
    def __init__(self, name): pass
ctypes.CDLL = Library
from sweepledger import process_tree
process_tree.PROC = "/nowhere"
"""
"""What macOS lacks, taken away from one process."""

exec(LACKS)  # noqa: S102 - the text above, which each supervisor runs, too

from sweepledger.engine.local import machine, node  # noqa: E402
from sweepledger.operations.cluster_local import Options, local  # noqa: E402

node.SUPERVISOR_SCRIPT = node.SUPERVISOR_SCRIPT.replace(
    "from sweepledger.engine.local", f"exec({LACKS!r}); from sweepledger.engine.local", 1
)
assert not machine.can_pin_cpus()
assert len(machine.cpus()) == os.cpu_count()
list(local(Options(sys.argv[1], "main", Path(sys.argv[2]), once=True)))
