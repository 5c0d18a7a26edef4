"""A batch as a shell script: alone, or as a Slurm array. It runs the launchers that the local engine would run. Pure.

The script refers to files below the state folder of the clone, and contains no path of a machine.
"""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path, PurePosixPath

from sweepledger.engine.local.environment import PathTranslation, program_path
from sweepledger.engine.local.local_batch import TEMPORARY, LocalBatch, Parent

MOST_TASKS = 1000
"""Tasks of one array: Slurm allows the indexes 0 to 1000 by default. Each task runs several rows if needed."""
MEBIBYTE = 1 << 20

SCRIPT = r"""
state=${SWEEP_STATE:-${SLURM_SUBMIT_DIR:-$PWD}/.sweepledger}
if [ ! -d "$state/jobs" ] || [ ! -d "$state/$code" ]; then
  echo "$batch: $state lacks its files: export the batch in this clone, and start this script in its root" >&2
  exit 2
fi
code=$state/$code data=$state/$data
stopped= launcher=
trap 'stopped=1; [ -z "$launcher" ] || kill -TERM "$launcher" 2>/dev/null' TERM INT HUP

# An attempt with a record failed. One without was ended by the machine, which counts as a disruption.
count_attempts() {
  failures=0 disruptions=0
  while read -r earlier; do
    if [ -e "$folder/$earlier.json" ]; then failures=$((failures + 1)); else disruptions=$((disruptions + 1)); fi
  done <"$folder/.starts"
}

# Run one row until it has a result or no attempt is left. Exits with the launcher's code.
run_row() {
  local row=$1 try=0 status=1
  local folder=$state/results/$batch/$row
  mkdir -p "$folder" && touch "$folder/.starts" || return 74
  while [ "$try" -le $((retries + max_disruptions)) ]; do
    [ -z "$stopped" ] || exit 143
    count_attempts
    [ "$failures" -le "$retries" ] || return "$status"
    uid=$origin-$row-$try
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/sweep-XXXXXXXX") || return 74
    echo "$uid" >>"$folder/.starts"
    describe_row
    mkdir -p "${folders[@]}" || return 74
    (cd "$scratch" && exec env -u PYTHONPATH "${variables[@]}" "${words[@]}") </dev/null >/dev/null &
    launcher=$!
    wait "$launcher"; status=$?
    while kill -0 "$launcher" 2>/dev/null; do wait "$launcher"; status=$?; done
    launcher=
    rm -rf "$scratch"
    case $status in
      0 | 42) return 0 ;; # ok, pruned or diverged: no attempt could change it
      43 | 44) return "$status" ;;
    esac
    [ "$status" -ne 143 ] || sleep 1 # the signal may reach the launcher before this script
    if [ -n "$stopped" ]; then
      rm -f "$folder/$uid.json" # the machine ended it: this was no failure of the trial
      exit 143
    fi
    try=$((try + 1))
    sleep "$try"
  done
  return "$status"
}
"""
"""The part that is the same for every batch."""

SLURM_MAIN = r"""
origin=slurm-$SLURM_ARRAY_JOB_ID-${SLURM_RESTART_COUNT:-0} node=${SLURMD_NODENAME:-$(uname -n)} worst=0
for ((next = SLURM_ARRAY_TASK_ID; next < trials; next += tasks)); do
  run_row "$next" || worst=$?
  if [ "$worst" -eq 43 ]; then
    scancel "$SLURM_ARRAY_JOB_ID" # the sweep itself is wrong: stop spending
    break
  fi
done
exit "$worst"
"""

SHELL_MAIN = r"""
if [ $# -eq 1 ]; then
  origin=shell-$(uname -n)-$$-$(date +%s) node=$(uname -n)
  run_row "$1"
  status=$?
  [ "$status" -ne 43 ] || exit 255 # the sweep itself is wrong: xargs starts no further row
  exit "$status"
fi
seq 0 $((trials - 1)) | xargs -P "${JOBS:-$parallelism}" -n 1 bash "$0"
"""


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch whose files are in the state folder; paths are relative to it."""

    batch: LocalBatch
    code: PurePosixPath
    max_disruptions: int
    data: PurePosixPath | None = None
    python_path: tuple[PurePosixPath, ...] = ()
    """Folders of the code, relative to it, in which Python looks first."""


def slurm_script(prepared: PreparedBatch) -> str:
    """Return an array job for `sbatch`, which runs what has no result yet."""
    batch, amounts = prepared.batch, prepared.batch.limits
    tasks = min(len(batch.trials), MOST_TASKS)
    limit = f"%{batch.parallelism}" if batch.parallelism < tasks else ""
    directives = [
        f"--job-name={batch.name}",
        f"--array=0-{tasks - 1}{limit}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={max(1, amounts.cpus)}",
        f"--mem={ceil(amounts.memory / MEBIBYTE)}M",
        *([f"--gres=gpu:{amounts.gpus}"] if amounts.gpus else []),
        *_time_limit(batch, rows=ceil(len(batch.trials) / tasks)),
        "--requeue",  # after the loss of a node or a preemption
        "--open-mode=append",
        "--output=slurm-%x.log",
    ]
    submit = "Submit it in the root of the clone with `sbatch`; submitted again, it runs what has no result."
    head = (*_banner(prepared, "a Slurm array", submit), *(f"#SBATCH {text}" for text in directives))
    return _text(head, (*_settings(prepared), f"tasks={tasks}"), SLURM_MAIN)


def shell_script(prepared: PreparedBatch) -> str:
    """Return a script for bash that runs several trials at once with xargs, those that have no result yet."""
    submit = "Run it in the root of the clone with bash; JOBS=N sets how many trials run at once."
    head = _banner(prepared, "a shell script", submit)
    return _text(head, (*_settings(prepared), f"parallelism={prepared.batch.parallelism}"), SHELL_MAIN)


def _banner(prepared: PreparedBatch, kind: str, use: str) -> tuple[str, ...]:
    return (
        "#!/usr/bin/env bash",
        f"# Batch {prepared.batch.name} as {kind}. Do not edit: `sweep export` writes it again.",
        f"# {use}",
        "# `sweep cluster collect` records what has ended; trials without a record are recorded as missing by",
        f"# `sweep cluster collect --ended {prepared.batch.name}`.",
    )


def _text(head: Iterable[str], settings: Iterable[str], main: str) -> str:
    return "\n".join([*head, "set -u", "", *settings]) + f"\n{SCRIPT}{main}"


def _time_limit(batch: LocalBatch, *, rows: int) -> Iterator[str]:
    """Yield the option for the time that all attempts at a task's rows may take."""
    if batch.pod_deadline is not None:
        yield f"--time={ceil(batch.pod_deadline * (batch.retries + 1) * rows / 60)}"


def _settings(prepared: PreparedBatch) -> Iterator[str]:
    yield f"batch={shlex.quote(prepared.batch.name)} trials={len(prepared.batch.trials)}"
    yield f"retries={prepared.batch.retries} max_disruptions={prepared.max_disruptions}"
    yield f"code={shlex.quote(str(prepared.code))} data={shlex.quote(str(prepared.data or 'data'))}"
    yield from _description(prepared)


def _description(prepared: PreparedBatch) -> Iterator[str]:
    """Yield a function of the shell that describes a row: what all rows share, then what continued trials have."""
    variables, folders, words = _described(prepared, None)
    yield "describe_row() {"
    yield f"  variables=({' '.join(variables)})"
    yield f"  folders=({' '.join(folders)})"
    yield f"  words=({' '.join(words)})"
    if prepared.batch.parents:
        yield "  case $row in"
        for row, parent in sorted(prepared.batch.parents.items()):
            more, others, _ = _described(prepared, parent)
            yield f"    {row})"
            yield f"      variables+=({' '.join(word for word in more if word not in variables)})"
            yield f"      folders+=({' '.join(word for word in others if word not in folders)})"
            yield "      ;;"
        yield "  esac"
    yield "}"


def _described(prepared: PreparedBatch, parent: Parent | None) -> tuple[tuple[str, ...], ...]:
    """Return the variables, new folders and words that start the launcher of a row, as shell words."""
    batch, code, row = prepared.batch, Path(_shell("code")), _shell("row")
    made = {
        **batch.kept_folders(row, parent, Path(_shell("state"))),
        **batch.temporary_folders(Path(_shell("scratch"))),
    }
    data = None if batch.data is None else Path(_shell("data"))
    translate = PathTranslation({**made, **batch.read_only_folders(Path(_shell("state")), code, data)})
    variables = batch.declared_variables(row, parent)
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",  # the code tree stays unchanged
        "TMPDIR": translate(TEMPORARY),
        **{name: translate(value) for name, value in variables.items()},
        "SWEEP_POD_UID": _shell("uid"),
        "SWEEP_FAILURES": _shell("failures"),
        "SWEEP_DISRUPTIONS": _shell("disruptions"),
        "SWEEP_NODE": _shell("node"),
        "SWEEP_RAN": "process",
    }
    if prepared.python_path:
        own = [f"{_shell('code')}/{folder}" for folder in prepared.python_path]
        environment["PYTHONPATH"] = ":".join([*own, *filter(None, [environment.get("PYTHONPATH")])])
    interpreter, launcher = batch.command
    return (
        tuple(shell_word(f"{name}={value}") for name, value in environment.items()),
        tuple(sorted({shell_word(str(folder)) for folder in made.values()})),
        (shell_word(translate(program_path(interpreter))), shell_word(translate(launcher))),
    )


def _shell(name: str) -> str:
    """Return the mark of a variable of the script: no text of a manifest has its NUL characters."""
    return f"\0{name}\0"


def shell_word(text: str) -> str:
    """Return a shell word for a text with marks: everything is literal but the variables."""
    parts = text.split("\0")
    return "".join(
        (shlex.quote(part) if part else "") if number % 2 == 0 else f'"${{{part}}}"'
        for number, part in enumerate(parts)
    )
