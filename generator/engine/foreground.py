"""One program in the foreground, ended as a pod would be when the person has seen enough."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from generator.errors import ToolError

LAST_SECONDS = 5.0
"""Beyond the program's own grace: for the launcher to end what is left and to write its record."""


def run(
    argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], grace: float, quiet: bool
) -> int:
    """Run a program to its end and give its exit code; `quiet` sends its standard output to standard error.

    Interrupted, it is told to end, waited for, and at last killed with all that it started in its session.
    Raises ToolError if it cannot be started.
    """
    try:
        child = subprocess.Popen(
            argv, cwd=folder, env=environment, stdout=sys.stderr if quiet else None, start_new_session=True
        )
    except OSError as error:
        raise ToolError(f"{argv[0]} cannot be run: {(error.strerror or str(error)).lower()}") from error
    try:
        return child.wait()
    except BaseException:
        child.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace + LAST_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
