"""Runs `sweep check` in this process and counts what it does: connections, programs, code, children.

`python -m tests.workflows.counting ROOT` reads arguments as JSON, a line a run, and says what it counted; an
audit hook of Python's sees every try.
"""

import ctypes
import io
import json
import os
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")


def main() -> None:
    # What a child leaves behind becomes a child of this process, and can be seen.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    root = Path(sys.argv[1]).resolve()
    counts: Counter[str] = Counter()

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NETWORK:
            counts["network"] += 1
        elif event == "subprocess.Popen":
            counts[f"program {Path(os.fsdecode(arguments[0])).name}"] += 1
        elif event in {"os.system", "os.exec", "os.posix_spawn", "pty.spawn"}:
            counts["program unknown"] += 1
        elif event == "exec" and getattr(arguments[0], "co_filename", "").startswith(f"{root}/"):
            counts["code of the change"] += 1

    from sweepledger.cli import app  # noqa: PLC0415 - what is not the change's is loaded before

    os.chdir(root)
    sys.addaudithook(seen)
    for line in sys.stdin:
        counts.clear()
        sys.stdout.write(f"{json.dumps(_checked(app, json.loads(line), counts))}\n")
        sys.stdout.flush()


def _checked(app: Any, arguments: list[str], counts: Counter[str]) -> dict[str, Any]:
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = app._run_command_line(["check", *arguments])  # noqa: SLF001 - as `main` runs it, without its signals
    try:
        left = os.waitpid(-1, os.WNOHANG)[0]
        counts["children"] += 1
    except ChildProcessError:
        left = 0
    return {
        "code": code,
        "counts": dict(counts),
        "left": left,
        "said": output.getvalue(),
        "mebibytes": _peak_kibibytes() // 1024,
    }


def _peak_kibibytes() -> int:
    """Give the most memory that this process had. Beware of ru_maxrss: it begins with that of the parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise LookupError("VmHWM")


if __name__ == "__main__":
    main()
