"""Run the trials of a pod: read a row of the table, run the user's command, write one record.

It needs the standard library alone, in Python 3.8 or newer, and can be mounted into any image: this file, and
the parts beside it, one a subject. Those that few trials need are imported by these.
This is a summary of docs/launcher.md, which lists the variables of the command, too.

Arguments: none, or `--` and the command that a reviewer has read, which runs only if the row gives the same.

Environment
  SWEEP_LAUNCH    path of launch.json: columns, shards, command, metric, seed, timeout, limits and options
  SWEEP_TABLE     folder of the table's files; only the one with the row is opened, and its digest is verified
  SWEEP_CODE      folder of the locked code; the command starts in a private copy of it, and never here
  SWEEP_RESULTS   the trial's own folder on the results volume, created if it is missing
  SWEEP_SCRATCH   folder for temporary files
  SWEEP_INDEX     row, counted from 0; default: JOB_COMPLETION_INDEX
  SWEEP_ROWS      several rows instead, first and last: 20-39. Each has a process, a record and a folder
                  `<index>/` below SWEEP_RESULTS; its uid is the pod's, a hyphen and the index
  SWEEP_RANK      number of the pod within its trial, default 0; only rank 0 writes results
  SWEEP_CHECKPOINT_VOLUME, SWEEP_ARTIFACT_VOLUME
                  the trial's own folders on other volumes; default: SWEEP_RESULTS
  SWEEP_POD_UID   id of the attempt; default: a new one
  SWEEP_FAILURES  how often the trial has failed; default: the number of its records
  SWEEP_DISRUPTIONS  how often the cluster has ended a pod of the trial; default: 0
  SWEEP_PARENT       checkpoints of another trial, from which this one continues
  SWEEP_PARENT_ID    that trial, for the record
  SWEEP_RAN, SWEEP_NODE   what runs (default: process) and where, for the record
  SWEEP_TERMINATION_LOG   file for the termination message, if it exists; default: /dev/termination-log
  SWEEP_CODE_STATE, SWEEP_DATA_STATE   of the code and of SWEEP_DATA: if one changes, no result counts
  SWEEP_EARLIER   JSON file: by row, record, output and artifacts of an earlier attempt that exited with 0 and
                  without a metric; its output is read by the metric of launch.json, and no command starts
  SWEEP_COPIES    if set, no other launcher runs this trial, and what nobody changed of a copy is used again
  SWEEP_OVERLAY   folder of the attempt with all folders, the code by an overlay: nothing is copied
  SWEEP_ENVIRONMENTS  folder for the lists of distributions of several trials; default: environments/

Exit codes: 0 for ok and pruned, 42 diverged, 43 no trial could succeed, 44 too many disruptions, 70 a fault
of the launcher, 74 volume or scratch folder failed, 124 timeout, else the command's; of several the worst.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from types import CodeType


class Uncached(SourceFileLoader):
    """Reads a part from its text alone: compiled files beside it could be of somebody else."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the name of the base class
        """Compile the text."""
        return self.source_to_code(self.get_data(self.path), self.path)


# Its parts are beside it. Python adds the folder itself, but not under -I and -P.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path_importer_cache[HERE] = FileFinder(HERE, (Uncached, [".py"]))

from launch_contract import read_launch
from launch_files import Refused, need
from launch_processes import Signals, adopt_orphans
from launch_trial import (
    hold_standard_streams,
    own_index,
    own_rank,
    own_rows,
    own_uid,
    reported,
    run_row,
    shown_command,
    warm_up,  # noqa: F401 - for programs that fork launchers
)


def run(signals: Signals) -> int:
    """Run the row or the rows of this pod; return the exit code."""
    uid, rank = own_uid(), own_rank()
    shown_command(sys.argv[1:])
    launch = read_launch(need("SWEEP_LAUNCH"))
    rows = own_rows(launch)
    if rows is None:
        return run_row(launch, own_index(), signals)
    if rank:
        raise Refused(f"a trial of several pods has one row, got SWEEP_RANK {rank} and several rows")
    need("SWEEP_RESULTS")
    from launch_pod import Pod

    return Pod(launch, rows, uid, signals).run()


def main() -> int:
    """Run the trials of this pod."""
    hold_standard_streams()
    adopt_orphans()
    return reported(lambda: run(Signals()))


if __name__ == "__main__":
    sys.exit(main())
