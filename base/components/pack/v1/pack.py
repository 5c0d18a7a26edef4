"""Run the rows of a pod so that none takes an attempt from another, whatever ends the pod.

It imports the parts of launch.py, beside it in the pod, and has its contract: each row has a process,
a folder, an output, a timeout and a record of its own. launch.py alone runs all rows again that have no final
record, in the same order: a row that ends its pod each time, by its memory or disk, would keep those after
it from ever starting. This program remembers which rows have begun:

1. Rows that have not begun run first, as many at the same time as launch.json says.
2. Rows that were running when an earlier pod ended, and left no record, run after them, one by one: the one
   that ended the pod then ends it alone.
3. A row has `pack.attempts` attempts: those that failed, and those that ended a pod or their launcher alone.
   What a disruption or the neighbours of a row have ended does not count. If no attempt could leave a record,
   this program writes it, with the reason signal-9.
4. A disruption counts for the rows that were running, not for those that had not begun.
5. No row begins beside a file that an earlier one has left in shared memory.

The counts of failures and disruptions with which each pod starts say how the one before it ended.

Environment, in addition to that of launch.py
  SWEEP_RESULTS   the pod's own folder: each row has `<index>/` there, and this program the file `.pack`. If a
                  sidecar has made `.watched` there, it saves rows and says so by `.saved-<index>`, for which
                  this program waits: before the next row if many are not saved, and at its end
  SWEEP_SHARED_MEMORY
                  the folder of the pod's shared memory, which this program empties whenever no row runs
  SWEEP_AT_ONCE   fewer rows at the same time than launch.json says, on a small machine

launch.json: `pack` with `rows`, `at_once` and `attempts`

Exit codes
  0    every row is ok or pruned
  42   every row has ended for good, and some have diverged or failed: another pod has nothing to do
  43, 44   as in launch.py, if one row ended so
  else that of a row which has another attempt, or 128 + the signal that ended the pod
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil  # launchers of rows delete folders by it, too: loaded once, and not by each
import signal
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from types import CodeType
from typing import Any, Mapping, NamedTuple


class Uncached(SourceFileLoader):
    """Reads a part from its text alone: compiled files beside it could be of somebody else."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the name of the base class
        """Compile the text."""
        return self.source_to_code(self.get_data(self.path), self.path)


# As in launch.py.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path_importer_cache[HERE] = FileFinder(HERE, (Uncached, [".py"]))

import launch_attempt
import launch_row
from launch_attempt import Attempt
from launch_contract import read_launch
from launch_environment import read_environment
from launch_files import (
    BAD_HYPERPARAMETERS,
    BAD_SWEEP,
    DISRUPTED,
    FINAL,
    LARGEST_FILE,
    STORAGE_FAILED,
    Refused,
    count_from,
    need,
    say,
    write_all,
    write_termination_message,
)
from launch_pod import Pod, worst
from launch_processes import Signals, adopt_orphans, lock
from launch_record import conclude, records_of
from launch_row import Row, read_row, read_rows
from launch_trial import (
    hold_standard_streams,
    own_rank,
    own_rows,
    own_uid,
    reported,
    shown_command,
    warm_up,
    without_start,
)

BEGUN, ALONE, STOPPED = "begun", "alone", "stopped"
JOURNAL, WATCHED, SAVED = ".pack", ".watched", ".saved"
MOST_UNSAVED = 32  # rows that have ended and are not saved yet: their files take space
LOOK_SECONDS = 0.1
NO_MORE = BAD_HYPERPARAMETERS  # the failure policy of every Job starts no other pod after it
FAILED = 1
STOPPED_REASON = f"signal-{int(signal.SIGTERM)}"
LOST = (
    "its pod ended, or its launcher was killed, while no other trial was to blame, and it left no record:"
    " too much memory, for example"
)


class Journal:
    """What the pods of these rows have begun: a file with a line for each event, which trials may spoil."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, JOURNAL)
        self.disruptions = count_from("SWEEP_DISRUPTIONS", 0)
        self.failures = count_from("SWEEP_FAILURES", 0)
        self.events: dict[int, dict[str, set[str]]] = {}
        """By row, the events of each earlier pod."""
        self.disrupted: set[str] = set()
        """The earlier pods that the cluster ended."""
        self.failed: set[str] = set()
        """Those that failed, as the cluster counts; others were disrupted, or deleted with their Job."""

    def read(self) -> bool:
        """Read the events of earlier pods, and return whether there were any; other lines do not matter."""
        try:
            with open(self.path, "rb") as file:
                lines = file.read(LARGEST_FILE).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return False
        counts: dict[str, tuple[int, int]] = {}
        for line in lines:
            try:
                event, uid, row, *own = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if [type(each) for each in (event, uid, row, *own)] == [str, str, int, int, int]:
                self.events.setdefault(row, {}).setdefault(uid, set()).add(event)
                counts[uid] = (own[0], own[1])
        later = [*list(counts.values())[1:], (self.disruptions, self.failures)]
        for (uid, (disruptions, failures)), after in zip(counts.items(), later):
            if after[0] > disruptions:
                self.disrupted.add(uid)
            if after[1] > failures:
                self.failed.add(uid)
        return True

    def add(self, event: str, uid: str, row: int) -> None:
        """Add an event. Raises OSError."""
        line = json.dumps([event, uid, row, self.disruptions, self.failures])
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
        try:
            write_all(file, f"{line}\n".encode())
        finally:
            os.close(file)


class Past(NamedTuple):
    """What earlier pods made of a row."""

    code: int | None = None
    """The exit code of its final record; None without one."""
    failures: int = 0
    """Attempts that failed, as a record says."""
    ends: int = 0
    """Attempts that ended their pod alone, and left no record."""
    losses: int = 0
    """Attempts that a pod ended, for whatever cause, unless the cluster asked it to end."""
    disruptions: int = 0
    """Pods that the cluster ended while the row was running."""

    @property
    def attempts(self) -> int:
        """The attempts that count."""
        return self.failures + self.ends


def past_of(row: Row, folder: str, journal: Journal) -> Past:
    """Return what the records of a row and the journal of its pods say."""
    records = records_of(row, folder) if os.path.isdir(folder) else []
    for record in records:
        if record.get("status") in FINAL:
            already = f"{record['status']} already, by attempt {record['uid']}"
            say(f"{row.trial}: {already}: nothing to do")
            return Past(FINAL[record["status"]])
    reasons = {record["uid"]: record.get("reason") for record in records}
    failures, ends, losses, disruptions = len(reasons), 0, 0, 0
    for uid, events in journal.events.get(row.number, {}).items():
        reason = reasons.get(f"{uid}-{row.number}", "")
        is_stopped, is_its_own = STOPPED in events, ALONE in events and uid in journal.failed
        disruptions += uid in journal.disrupted
        if reason and not (is_stopped and reason == STOPPED_REASON):
            continue  # the record says all
        losses += uid in journal.failed or not is_stopped
        if reason:
            failures -= not is_its_own
        else:
            ends += is_its_own
    return Past(None, failures, ends, losses, disruptions)


class Pack(Pod):
    """Runs the rows of one pod, after what earlier pods have left."""

    def __init__(
        self, instructions: Mapping[str, Any], rows: range, uid: str, signals: Signals, folder: str
    ) -> None:
        super().__init__(instructions, rows, uid, signals)
        self.rows, self.folder = rows, folder
        self.most_attempts: int = instructions["pack"].get("attempts", 1)
        self.journal = Journal(folder)
        self.past = dict.fromkeys(rows, Past())
        self.is_alone = self.at_once == 1
        self.over: set[int] = set()
        """Rows that have had all their attempts, as a record says."""
        self.given_up: set[int] = set()
        """Rows that have had all their attempts, of which no record says so yet."""
        self.unsaved = set(rows)
        self.is_watched = os.path.lexists(os.path.join(folder, WATCHED))

    def threads_of_a_row(self) -> Any:
        """Return what the manifest says, which is for one row: it computes as in a pod of its own."""
        return os.environ.get("OMP_NUM_THREADS") or super().threads_of_a_row()

    def run(self) -> int:
        """Run what is left of all rows; return the exit code of the pod."""
        self.look_back()
        left = [row for row in self.rows if row not in self.codes]
        if left:
            self.prepare_rows(left[0])
        self.run_these([row for row in left if not self.past[row].losses])
        self.is_alone, self.at_once = True, 1
        # The one that has ended most pods comes last: all others have had their turn by then.
        suspects = [row for row in left if self.past[row].losses]
        self.run_these(sorted(suspects, key=lambda row: (self.past[row].losses, row)))
        self.given_up.update(row for row in left if self.was_killed(row) and self.is_last(row))
        self.run_these([] if self.signals.stop else sorted(self.given_up))
        self.wait_until_saved(0)
        write_termination_message(self.message())
        return self.verdict()

    def look_back(self) -> None:
        """Read what earlier pods have left."""
        table, has_begun = need("SWEEP_TABLE"), self.journal.read()
        for row in self.rows:
            folder = os.path.join(self.folder, str(row))
            if not has_begun and not os.path.isdir(folder):
                continue
            self.past[row] = past = past_of(read_row(self.launch, table, row), folder, self.journal)
            if past.code is not None:
                self.codes[row] = past.code
            elif past.attempts >= self.most_attempts:
                self.codes[row] = FAILED
                (self.over if past.failures else self.given_up).add(row)

    def prepare_rows(self, row: int) -> None:
        """Do once what the launcher of each row would do; what fails here fails there."""
        with contextlib.suppress(Refused, OSError):
            rows = read_rows(self.launch, need("SWEEP_TABLE"), row)

            def prepared_rows(launch: Mapping[str, Any], folder: str, index: int) -> Any:
                is_there = rows.first <= index < rows.first + len(rows.lines)
                return rows if is_there else read_rows(launch, folder, index)

            launch_row.read_rows = prepared_rows
            warm_up()
            environment = read_environment(self.launch)
            launch_attempt.read_environment = lambda launch: environment  # noqa: ARG005 - its name is the other's

    def run_these(self, rows: list[int]) -> None:
        """Run some rows."""
        self.waiting = rows
        if rows:
            super().run()

    def start(self, row: int) -> None:
        """Start the launcher of a row, and remember that it has begun."""
        self.wait_until_saved(MOST_UNSAVED)
        if self.signals.stop:
            self.codes[row] = 128 + self.signals.stop
            return
        if not self.running and not self.empty_shared_memory():
            self.codes[row] = STORAGE_FAILED
            return
        if row in self.given_up or self.note(ALONE if self.is_alone else BEGUN, row):
            super().start(row)
        else:
            self.codes[row] = STORAGE_FAILED

    def empty_shared_memory(self) -> bool:
        """Delete what rows have left in shared memory; return whether nothing is left there."""
        folder = os.environ.get("SWEEP_SHARED_MEMORY")
        if not folder:
            return True
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            try:
                os.remove(path)
            except OSError:
                shutil.rmtree(path, ignore_errors=True)
        left = os.listdir(folder)
        if left:
            say(f"shared memory cannot be emptied for the next trial: {min(left)!r} is left")
        return not left

    def wait_until_saved(self, most: int) -> None:
        """Wait until a sidecar, if there is one, has saved all rows that have a record but some."""
        while self.is_watched and not self.signals.stop:
            ended = set(filter(self.has_record, self.unsaved))
            if len(ended) > most:
                saved = set(filter(self.is_saved, ended))
                self.unsaved -= saved
                ended -= saved
            if len(ended) <= most:
                return
            self.signals.wait(LOOK_SECONDS)
            self.collect()

    def is_saved(self, row: int) -> bool:
        """Return whether a sidecar has saved what this pod leaves of a row."""
        return os.path.lexists(os.path.join(self.folder, f"{SAVED}-{row}"))

    def note(self, event: str, row: int) -> bool:
        """Add an event to the journal; return whether that was possible."""
        try:
            self.journal.add(event, self.uid, row)
        except OSError as error:
            say(f"the results volume failed: {error}")
            return False
        return True

    def signal_rows(self, number: int) -> None:
        """Send a signal to all rows, and remember which ones it ends."""
        for row in self.running.values():
            self.note(STOPPED, row)
        super().signal_rows(number)

    def collect(self) -> None:
        """Note how rows ended: a launcher that was killed while its pod goes on ended by its own row."""
        running = set(self.running.values())
        super().collect()
        for row in running.difference(self.running.values()):
            if self.was_killed(row) and not self.signals.stop:
                self.note(ALONE, row)

    def launch_row(self, row: int) -> int:
        """Be the launcher of one row, whose attempts and disruptions count for it alone."""
        os.environ["SWEEP_FAILURES"] = str(self.past[row].attempts)
        # Trials can write to the journal, but not to the count of the cluster.
        most = (self.launch["max_disruptions"] + 1) * len(self.rows)
        if self.journal.disruptions <= most:
            os.environ["SWEEP_DISRUPTIONS"] = str(self.past[row].disruptions)
        return int(super().launch_row(row))

    def run_in_scratch(self, row: int) -> int:
        """Run a row, or write the record that its last attempt could not."""
        return self.record_loss(row) if row in self.given_up else int(super().run_in_scratch(row))

    def record_loss(self, row: int) -> int:
        """Record that a row has had its attempts; return its exit code."""
        read = read_row(self.launch, need("SWEEP_TABLE"), row)
        folder = os.path.abspath(need("SWEEP_RESULTS"))
        os.makedirs(folder, exist_ok=True)
        shown, slot = shown_command(sys.argv[1:]), self.slots[row]
        uid, count = own_uid(), self.past[row].disruptions
        attempt = Attempt(self.launch, read, uid, self.most_attempts, folder, 0, shown, count, slot)
        return int(conclude(attempt, without_start("signal-9", LOST, FAILED)))

    def has_record(self, row: int) -> bool:
        """Return whether this pod has written a record of a row."""
        return any(self.slots[row].record)

    def was_killed(self, row: int) -> bool:
        """Return whether a signal ended the launcher of a row in this pod."""
        return self.codes.get(row, 0) > 128 and not self.has_record(row)

    def is_last(self, row: int) -> bool:
        """Return whether the attempt of this pod is the last that a row has."""
        return self.past[row].attempts + 1 >= self.most_attempts

    def has_more(self, row: int) -> bool:
        """Return whether another pod could do something for a row."""
        if self.codes[row] in (*FINAL.values(), BAD_SWEEP, DISRUPTED):
            return False
        if not self.has_record(row):
            return row not in self.over
        return row not in self.given_up and not self.is_last(row)

    def verdict(self) -> int:
        """Return the exit code of the pod."""
        if BAD_SWEEP in self.codes.values():
            return int(BAD_SWEEP)
        if self.signals.stop:
            return 128 + int(self.signals.stop)
        again = [self.codes[row] for row in self.rows if self.has_more(row)]
        if again:
            return int(worst(again))
        if DISRUPTED in self.codes.values():
            return int(DISRUPTED)
        return int(NO_MORE) if any(self.codes.values()) else 0


def run(signals: Signals) -> int:
    """Run the rows of this pod; return the exit code."""
    uid = own_uid()
    instructions = read_launch(need("SWEEP_LAUNCH"))
    rows = own_rows(instructions)
    if rows is None or own_rank():
        raise Refused("launch.json must have pack.rows, and SWEEP_RANK must be 0: a pack is one pod")
    fewer = count_from("SWEEP_AT_ONCE", 0)
    folder = os.path.abspath(need("SWEEP_RESULTS"))
    os.makedirs(folder, exist_ok=True)
    lock(folder, signals)  # pods of the same rows take turns
    pack = Pack(instructions, rows, uid, signals, folder)
    pack.at_once = min(pack.at_once, fewer or pack.at_once)
    return pack.run()


def main() -> int:
    """Run the rows of this pod."""
    hold_standard_streams()
    adopt_orphans()
    return int(reported(lambda: run(Signals())))


if __name__ == "__main__":
    sys.exit(main())
