"""The processes of a cluster: started by name, each with a log of its own, looked at and ended by name.

They live in the box, so none outlives it; nothing here knows what they do.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 10.0
"""Seconds between asking and killing."""
TAIL = 30


@dataclass
class Children:
    """Processes by name; each writes `<folder>/<name>.log`, which a restart goes on with."""

    folder: Path
    enter: Sequence[str] = ()
    """Command in front of each, which enters another machine of the box."""
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        """Start a process; `env` is added to a bare environment."""
        assert not self.is_alive(name), f"{name} runs already"
        self.folder.mkdir(parents=True, exist_ok=True)
        bare = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*self.enter, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**bare, **(env or {})},
                cwd=cwd,
                start_new_session=True,  # Ctrl-C ends the tests first, and they end the cluster
            )

    def is_alive(self, name: str) -> bool:
        return name in self._running and self._running[name].poll() is None

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def end(self, name: str) -> None:
        """Ask a process to end, kill it where it does not; one that is not there is left alone."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self, name: str) -> None:
        """Kill a process without a word, as the kernel would."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        """Kill all of them without a word, the last one first."""
        for name in reversed(list(self._running)):
            self.kill(name)

    def end_all(self) -> None:
        for name in reversed(list(self._running)):
            self.end(name)

    def log(self, name: str) -> str:
        """Give what a process has written so far."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.is_file() else ""

    def cpu_seconds(self, name: str) -> float:
        results = Path(f"/proc/{self.pid(name)}/stat").read_text().rpartition(")")[2].split()
        return (int(results[11]) + int(results[12])) / os.sysconf("SC_CLK_TCK")

    def peak_bytes(self, name: str) -> int:
        """Give the most memory that a running process has held."""
        lines = Path(f"/proc/{self.pid(name)}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024

    def tail(self, name: str) -> str:
        """Give the last lines of a log, for an error."""
        return "\n".join(self.log(name).splitlines()[-TAIL:])


def until(what: str, condition: Callable[[], object], *, seconds: float, pause: float = 1.0) -> None:
    """Wait until a function gives something true. Raises AssertionError that says what did not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(pause)
