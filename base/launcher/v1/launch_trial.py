"""One row, from its earlier records to its new one; and what the pod says of it."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Callable, Mapping

from launch_attempt import Attempt, Outcome, Verdict, read_again, run_command, utc
from launch_command import parameter_variables
from launch_contract import MOST_ROWS
from launch_environment import distribution_of
from launch_files import (
    BAD_SWEEP,
    COUNT,
    DISRUPTED,
    FINAL,
    LAUNCHER_FAULT,
    STORAGE_FAILED,
    CodeChanged,
    Refused,
    Stopped,
    count_from,
    make_temporary_folder,
    need,
    say,
    write_termination_message,
)
from launch_lines import METRIC_TEXT
from launch_metrics import Report
from launch_processes import load_prctl, lock
from launch_record import conclude, records_of
from launch_row import count_rows, read_row

if TYPE_CHECKING:
    from launch_attempt import Slot
    from launch_processes import Signals

UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def own_index() -> int:
    """Return the row of this pod."""
    text = os.environ.get("SWEEP_INDEX") or need("JOB_COMPLETION_INDEX")
    if not COUNT.fullmatch(text):
        raise Refused(f"the index must be a whole number, got {text!r}")
    return int(text)


def own_rows(launch: Mapping[str, Any]) -> range | None:
    """Return the rows of this pod; None if it has the one of its index."""
    text, size = os.environ.get("SWEEP_ROWS", ""), launch.get("pack", {}).get("rows")
    if text:
        match = re.fullmatch("([0-9]{1,9})-([0-9]{1,9})", text)
        rows = range(int(match[1]), int(match[2]) + 1) if match else range(0)
        if not 1 <= len(rows) <= MOST_ROWS:
            raise Refused(f"SWEEP_ROWS must be the first and the last of 1 to {MOST_ROWS} rows, got {text!r}")
        return rows
    if size is None:
        return None
    first = own_index() * size
    if first >= count_rows(launch):
        raise Refused(f"row {first} is beyond the table, which has {count_rows(launch)} rows")
    return range(first, min(first + size, count_rows(launch)))


def own_rank() -> int:
    """Return the number of this pod within its trial."""
    text = os.environ.get("SWEEP_RANK") or "0"
    if not COUNT.fullmatch(text):
        raise Refused(f"the rank must be a whole number, got {text!r}")
    return int(text)


def own_uid() -> str:
    """Return the id of this attempt."""
    uid = os.environ.get("SWEEP_POD_UID") or os.urandom(16).hex()
    if not UID.fullmatch(uid):
        raise Refused(f"SWEEP_POD_UID must be letters, digits, dots, underscores and hyphens, got {uid!r}")
    return uid


def shown_command(arguments: list[str]) -> list[str] | None:
    """Return the command in the manifest, if there is one."""
    if arguments and arguments[0] != "--":
        raise Refused(f"the arguments must be none, or -- and a command, got {arguments!r}")
    return arguments[1:] if arguments else None


def run_row(launch: Mapping[str, Any], index: int, signals: Signals, slot: Slot | None = None) -> int:
    """Run one row to its record; return the exit code."""
    rank, row = own_rank(), read_row(launch, need("SWEEP_TABLE"), index)
    folder = os.path.abspath(need("SWEEP_RESULTS"))
    os.makedirs(folder, exist_ok=True)
    # Attempts take turns; the other ranks of one attempt run at the same time.
    if rank == 0 and "SWEEP_COPIES" not in os.environ:
        lock(folder, signals)
    earlier = records_of(row, folder)
    for record in earlier:
        for status, exit_code in FINAL.items():
            if record.get("status") == status:
                say(f"{row.trial}: {status} already, by attempt {record['uid']}: nothing to do")
                return exit_code
    if rank:
        folder = make_temporary_folder("rank-")
    number = 1 + count_from("SWEEP_FAILURES", len(earlier))
    shown, disruptions = shown_command(sys.argv[1:]), count_from("SWEEP_DISRUPTIONS", 0)
    attempt = Attempt(launch, row, own_uid(), number, folder, rank, shown, disruptions, slot)
    if disruptions > launch["max_disruptions"]:
        why = (
            f"the cluster ended {disruptions} of its pods, and max_disruptions is {launch['max_disruptions']}"
        )
        return conclude(attempt, without_start("disrupted", why, DISRUPTED))
    try:
        outcome = read_again(attempt) or run_command(attempt, signals)
    except CodeChanged as error:  # another attempt has what is locked again
        outcome = without_start(error.reason, str(error), 1)
    except Refused as error:
        outcome = without_start(error.reason, str(error), BAD_SWEEP)
    return conclude(attempt, outcome)


def without_start(reason: str, why: str, exit_code: int) -> Outcome:
    """Return the outcome of an attempt whose command was not started."""
    return Outcome(Verdict("failed", reason, exit_code), Report({}, {}, reason, why), utc(), 0.0)


def reported(work: Callable[[], int]) -> int:
    """Do work; every failure is one line on stderr and an exit code."""
    try:
        return work()
    except Refused as error:
        say(str(error))
        write_termination_message(f"{error}\n")
        return BAD_SWEEP
    except Stopped as stopped:
        say(f"stopped by signal {stopped} before the command began")
        return 128 + int(stopped.args[0])
    except OSError as error:
        say(f"results volume, scratch folder or node failed: {error}")
        return STORAGE_FAILED
    except Exception as error:  # noqa: BLE001 - a traceback tells the author of a sweep nothing
        say(f"this is a fault of the launcher, please report it: {type(error).__name__}: {error}")
        return LAUNCHER_FAULT


def hold_standard_streams() -> None:
    """Keep our own files from becoming 0, 1 or 2 if one of those was closed."""
    while True:
        file = os.open(os.devnull, os.O_RDWR)
        if file > 2:
            os.close(file)
            return


def warm_up() -> None:
    """Do once what the launcher of each trial would do: for programs that fork launchers."""
    load_prctl()
    re.compile(METRIC_TEXT)
    parameter_variables({"x": 0}, [{"name": "x", "type": "number"}])  # these compile patterns as well
    distribution_of("", "x-1.dist-info")


def load_parts(launch: Mapping[str, Any]) -> None:
    """Load once what the launchers of several rows would load each."""
    if {"config", "hyperparams_file"} & launch.keys():
        import launch_config  # noqa: F401
    if {"stop", "thresholds_file"} & launch.keys():
        import launch_stopping  # noqa: F401
    if launch["metric"]["format"] == "tensorboard":
        import launch_events  # noqa: F401
