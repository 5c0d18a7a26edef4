"""Several rows in one pod, each in a process of its own."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from launch_attempt import Slot
from launch_files import (
    BAD_HYPERPARAMETERS,
    COUNT,
    STORAGE_FAILED,
    TERMINATION_BYTES,
    VERSION,
    WORST_FIRST,
    delete_folder,
    make_temporary_folder,
    say,
    sha256,
    write_termination_message,
)
from launch_json import dump
from launch_processes import PATIENCE, adopt_orphans, descendants, kill_all, reap
from launch_trial import load_parts, reported, run_row

if TYPE_CHECKING:
    from launch_processes import Signals


class Pod:
    """Runs the rows of one pod, each in a process of its own that is a launcher of that row."""

    def __init__(self, launch: Mapping[str, Any], rows: range, uid: str, signals: Signals) -> None:
        self.launch, self.uid, self.signals = launch, uid, signals
        self.waiting = list(rows)
        self.at_once: int = min(launch.get("pack", {}).get("at_once", 1), len(rows))
        self.threads = self.threads_of_a_row()
        self.running: dict[int, int] = {}
        self.slots = {row: Slot() for row in rows}
        self.codes: dict[int, int] = {}

    def threads_of_a_row(self) -> int:
        """Divide the pod's threads."""
        text = os.environ.get("OMP_NUM_THREADS", "")
        if COUNT.fullmatch(text):
            threads = int(text)
        else:
            has_affinity = hasattr(os, "sched_getaffinity")  # not on every system
            threads = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
        return max(1, threads // self.at_once)

    def run(self) -> int:
        """Run all rows; return the exit code of the pod."""
        load_parts(self.launch)
        gc.freeze()  # a collection in the process of a row would copy all memory that it shares
        is_stopping, kill_at = False, math.inf
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.at_once and not self.signals.stop:
                self.start(self.waiting.pop(0))
            if self.signals.stop and not is_stopping:
                is_stopping = True
                # Each launcher needs its grace, and its patience with processes and pipes.
                kill_at = time.monotonic() + self.launch["grace_seconds"] + 4 * PATIENCE
                self.codes.update((row, 128 + self.signals.stop) for row in self.waiting)
                self.waiting.clear()
                self.signal_rows(signal.SIGTERM)
            if time.monotonic() >= kill_at:
                kill_all(descendants())
                kill_at += PATIENCE
            self.collect()
            if self.running and not (self.waiting and len(self.running) < self.at_once):
                self.signals.wait(kill_at - time.monotonic())
                self.collect()
        write_termination_message(self.message())
        return worst(list(self.codes.values()))

    def start(self, row: int) -> None:
        """Start the launcher of a row."""
        sys.stdout.flush()
        sys.stderr.flush()
        together = [*self.running.values(), row]
        for each in together:  # before the fork: a row may write its record before this process goes on
            self.slots[each].most = max(self.slots[each].most, len(together))
        try:
            pid = os.fork()
        except OSError as error:
            say(f"the launcher of row {row} cannot be started: {error}")
            self.codes[row] = STORAGE_FAILED
            return
        if pid == 0:
            os._exit(self.launch_row(row))
        self.running[pid] = row

    def launch_row(self, row: int) -> int:
        """Be the launcher of one row, in its own process; return its exit code."""
        self.signals.renew()
        adopt_orphans()
        for name in ("SWEEP_RESULTS", "SWEEP_CHECKPOINT_VOLUME", "SWEEP_ARTIFACT_VOLUME"):
            if os.environ.get(name):
                os.environ[name] = os.path.join(os.environ[name], str(row))
        os.environ.pop("SWEEP_ROWS", None)
        os.environ["SWEEP_INDEX"] = str(row)
        os.environ["SWEEP_POD_UID"] = f"{self.uid}-{row}"
        os.environ["SWEEP_TERMINATION_LOG"] = os.devnull  # the pod writes one message for all rows
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        return reported(lambda: self.run_in_scratch(row))

    def run_in_scratch(self, row: int) -> int:
        """Run a row in a scratch folder that is deleted afterwards: later rows need the space."""
        os.environ["SWEEP_SCRATCH"] = scratch = make_temporary_folder("row-")
        try:
            return run_row(self.launch, row, self.signals, self.slots[row])
        finally:
            delete_folder(scratch)

    def collect(self) -> None:
        """Note the exit codes of rows that have ended."""
        for pid, (code, _) in reap().items():
            row = self.running.pop(pid, None)
            if row is not None:
                self.codes[row] = 128 - code if code < 0 else code
                if code < 0:  # its launcher was killed, and its processes are ours now
                    say(f"the launcher of row {row} was ended by signal {-code}")
                    self.end_strays()

    def end_strays(self) -> None:
        """Kill the processes of rows whose launcher has ended."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            strays = descendants(spared=self.running)
            if not strays:
                return
            kill_all(strays)
            time.sleep(0.005)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def signal_rows(self, number: int) -> None:
        """Send a signal to the launchers of all rows."""
        for pid in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def message(self) -> str:
        """Return the termination message."""
        rows = {str(row): slot.record.hex() if any(slot.record) else None for row, slot in self.slots.items()}
        message = dump({"version": VERSION, "rows": rows})
        if len(message) > TERMINATION_BYTES:
            message = dump({"version": VERSION, "rows_sha256": sha256(message.encode())})
        return message


def worst(codes: Sequence[int]) -> int:
    """Return the exit code of a pod, of those of its rows."""
    for code in WORST_FIRST:
        if code in codes:
            return code
    others = [code for code in codes if code not in (0, BAD_HYPERPARAMETERS)]
    return others[0] if others else max(codes)
