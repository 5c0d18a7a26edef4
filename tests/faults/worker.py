"""Runs commands in forks of itself, one a line of JSON; `shim.py` starts it with the shim preloaded."""

import ctypes
import json
import mmap
import os
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from sweepledger.cli import app
from tests.faults import writers
from tests.faults.shim import Page
from tests.sweep_server import import_sweep

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: whatever a killed command leaves behind becomes a child of this process."""


def serve(page: Page) -> None:
    """Answer until nobody asks any more."""
    import_sweep()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        document = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                become(document, page, out.fileno(), err.fileno())
            code = await_end(child, document["after"])
            page.armed = 0
            messages = [read(file.fileno()) for file in (out, err)]
        sys.stdout.write(json.dumps({"code": code, "out": messages[0], "err": messages[1]}) + "\n")
        sys.stdout.flush()


def become(document: dict[str, Any], page: Page, out: int, err: int) -> None:
    """Be the command, and never come back."""
    code = 70
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(document["cwd"])
        os.environ.update(document["env"])
        page.group = os.getpid()
        page.armed = 1
        if document["argv"][0].startswith("/"):
            os.execve(document["argv"][0], document["argv"], os.environ)  # noqa: S606 - that is what it is for
        if document["argv"][0] == "publish-row":
            writers.publish_row(Path(document["argv"][1]), document["argv"][2])
            code = 0
        else:
            sys.argv = ["sweep", *document["argv"]]
            app.main()
    except SystemExit as leaving:
        code = cast("int", leaving.code or 0)
    except BaseException:  # noqa: BLE001 - or a fork would go on as the worker
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def await_end(child: int, after: float | None) -> int:
    """Wait for the command, or kill it after a time; leave nothing of it running."""
    if after is not None:
        time.sleep(after)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            for left in Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(left), signal.SIGKILL)
            os.waitpid(-1, 0)
    return os.waitstatus_to_exitcode(status)


def read(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file), "rb") as stream:
        return stream.read().decode(errors="replace")


if __name__ == "__main__":
    with Path(os.environ["FAULTS_PAGE"]).open("r+b") as shared:
        memory = mmap.mmap(shared.fileno(), mmap.PAGESIZE)
    serve(Page.from_buffer(memory))
