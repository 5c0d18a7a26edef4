"""Every hostile pull request of the catalogue, one process each: CPU seconds, memory, programs left, network.

    python benchmarks/pull_requests.py [ROW]...

Each check runs in a network namespace without interfaces where that can be had (as root), as a child of
a process that inherits what it leaves behind. Memory is the largest resident set of the check or of a
program that it ran.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.repository import Sandbox
from tests.workflows.hostile_changes import CHANGES, MARK, Change, State, brought, specs

ROOT = Path(__file__).parents[1]
PR_SET_CHILD_SUBREAPER = 36
VERDICTS = {0, 1, 3, 5}
CPU_SECONDS = 2.0
MEBIBYTES = {False: 256, True: 512}
"""Without kustomize, and with it."""


@dataclass(frozen=True, slots=True, order=True)
class Measured:
    cpu: float
    mebibytes: int
    row: str
    code: int
    has_built: bool
    left: int

    @property
    def is_good(self) -> bool:
        within = self.cpu <= CPU_SECONDS and self.mebibytes <= MEBIBYTES[self.has_built]
        return within and self.code in VERDICTS and not self.left


def main() -> int:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    requested: dict[str, Change | State | bytes] = {**dict(specs()), **CHANGES}
    chosen = {
        row: what
        for row, what in requested.items()
        if not sys.argv[1:] or re.split(r"[- ]", row)[0] in sys.argv[1:]
    }
    with tempfile.TemporaryDirectory(prefix="sweep pull requests ") as scratch:
        sandbox = Sandbox.create(Path(scratch))
        sandbox.merged("first", xs="1, 2")
        measurements = [_measured(sandbox, Path(scratch), row, what) for row, what in chosen.items()]
        ran = (Path(scratch) / MARK).exists()
    bad = [item for item in measurements if not item.is_good]
    for measurement in bad:
        print(measurement)
    for has_built in (False, True):
        those = [item for item in measurements if item.has_built is has_built]
        if those:
            worst, largest = max(those), max(those, key=lambda entry: entry.mebibytes)
            kind = "with kustomize" if has_built else "without kustomize"
            print(f"{len(those)} {kind}: at most {worst.cpu:.2f} CPU s ({worst.row}),", end=" ")
            print(f"{largest.mebibytes} MiB ({largest.row})")
    print(
        f"executed: {'SOMETHING' if ran else 'nothing'}; left behind: {sum(item.left for item in measurements)}"
    )
    return bool(bad) or ran


def _measured(sandbox: Sandbox, scratch: Path, row: str, what: Change | State | bytes) -> Measured:
    brought(sandbox, what)
    report = scratch / "report"
    boxed = ["unshare", "--net", "--"] if os.geteuid() == 0 else []
    argv = [sys.executable, "-P", "-m", "sweepledger.cli", "check", "--base", "main"]
    process = subprocess.Popen(
        [*boxed, *argv, "--format", "github", "--report", str(report)],
        cwd=sandbox.root,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "MARK": str(scratch / MARK),
            "HOME": "/nonexistent",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    try:
        os.waitpid(-1, os.WNOHANG)
        left = 1
    except ChildProcessError:
        left = 0
    data = json.loads((report / "check.json").read_text())["data"] or {}
    built = bool(data.get("built"))
    cpu, kibibytes = used.ru_utime + used.ru_stime, used.ru_maxrss
    return Measured(cpu, kibibytes // 1024, row, process.returncode, built, left)


if __name__ == "__main__":
    sys.exit(main())
