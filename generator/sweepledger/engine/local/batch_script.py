"""A batch as a shell script: alone, or as a Slurm array. It runs the launchers that the local engine would run. Pure.

The script refers to files below the state folder of the clone, and contains no path of a machine.
"""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path, PurePosixPath
from typing import assert_never

from sweepledger.engine.local.environment import TEMPORARY, PathTranslation, expand, program_path, sub_path
from sweepledger.engine.local.job_spec import (
    BatchSpec,
    ConfigVolume,
    DataVolume,
    FieldVariable,
    JobSpec,
    KeptVolume,
    LiteralVariable,
    Mount,
    PodVolume,
    ResultsVolume,
    ScratchVolume,
)
from sweepledger.structs.kubernetes import (
    COMPLETION_INDEX_VARIABLE,
    INDEX_DISRUPTION_ANNOTATION,
    INDEX_FAILURE_ANNOTATION,
)

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

    batch: BatchSpec
    sweep: str
    code: PurePosixPath
    max_disruptions: int
    data: PurePosixPath | None = None
    python_path: tuple[PurePosixPath, ...] = ()
    """Folders of the code, relative to it, in which Python looks first."""

    @property
    def job(self) -> JobSpec:
        """The Job of the first row; all have the same resources and limits."""
        return self.batch.jobs[0]

    @property
    def trials(self) -> int:
        """The number of rows."""
        return len(self.batch.table.rows)


def slurm_script(prepared: PreparedBatch) -> str:
    """Return an array job for `sbatch`, which runs what has no result yet."""
    job, amounts = prepared.job, prepared.job.pod.limits
    tasks = min(prepared.trials, MOST_TASKS)
    limit = f"%{job.parallelism}" if job.parallelism < tasks else ""
    directives = [
        f"--job-name={prepared.batch.name}",
        f"--array=0-{tasks - 1}{limit}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={max(1, amounts.cpus)}",
        f"--mem={ceil(amounts.memory / MEBIBYTE)}M",
        *([f"--gres=gpu:{amounts.gpus}"] if amounts.gpus else []),
        *_time_limit(job, rows=ceil(prepared.trials / tasks)),
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
    return _text(head, (*_settings(prepared), f"parallelism={prepared.job.parallelism}"), SHELL_MAIN)


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


def _time_limit(job: JobSpec, *, rows: int) -> Iterator[str]:
    """Yield the option for the time that all attempts at a task's rows may take."""
    if job.pod.deadline is not None:
        yield f"--time={ceil(job.pod.deadline * (job.retries + 1) * rows / 60)}"


def _settings(prepared: PreparedBatch) -> Iterator[str]:
    yield f"batch={shlex.quote(prepared.batch.name)} trials={prepared.trials}"
    yield f"retries={prepared.job.retries} max_disruptions={prepared.max_disruptions}"
    yield f"code={shlex.quote(str(prepared.code))} data={shlex.quote(str(prepared.data or 'data'))}"
    yield from _description(prepared)


@dataclass(frozen=True, slots=True)
class _RowDescription:
    """What starts the launcher of a row, as shell words."""

    folders: tuple[str, ...]
    variables: tuple[str, ...]
    words: tuple[str, ...]


def _description(prepared: PreparedBatch) -> Iterator[str]:
    """Yield a function of the shell that describes a row: what all rows share, then what each has of its own."""
    described = [_described(prepared, job) for job in prepared.batch.jobs]
    first = described[0]
    shared = frozenset(first.variables).intersection(*(frozenset(each.variables) for each in described))
    yield "describe_row() {"
    yield from _array("  variables=", (word for word in first.variables if word in shared))
    if len(described) == 1:
        yield from _array("  folders=", first.folders)
        yield from _array("  words=", first.words)
    else:
        yield "  case $row in"
        for job, each in zip(prepared.batch.jobs, described, strict=True):
            own = tuple(word for word in each.variables if word not in shared)
            yield f"    {'|'.join(map(str, job.indexes))})"
            for name, words in (("variables+=", own), ("folders=", each.folders), ("words=", each.words)):
                yield from _array(f"      {name}", words)
            yield "      ;;"
        yield "  esac"
    yield "}"


def _array(name: str, words: Iterable[str]) -> Iterator[str]:
    yield f"{name}({' '.join(words)})"


def _described(prepared: PreparedBatch, job: JobSpec) -> _RowDescription:
    pod = job.pod
    variables = _declared(job)
    mounted = {mount.path: _folder(job, mount, variables) for mount in pod.mounts}
    translate = PathTranslation({**mounted, pod.code: Path(_shell("code"))})
    written = [
        str(mounted[mount.path])
        for mount in pod.mounts
        if not isinstance(pod.volumes[mount.volume], ConfigVolume | DataVolume)
    ]
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",  # the code tree stays unchanged
        "TMPDIR": translate(TEMPORARY) if translate(TEMPORARY) != TEMPORARY else _shell("scratch"),
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
    return _RowDescription(
        folders=tuple(sorted({shell_word(folder) for folder in written})),
        variables=tuple(shell_word(f"{name}={value}") for name, value in environment.items()),
        words=(
            shell_word(translate(program_path(pod.command[0], pod.code))),
            *(shell_word(translate(expand(word, variables))) for word in pod.command[1:]),
            *(shell_word(expand(word, variables)) for word in pod.arguments),
        ),
    )


def _declared(job: JobSpec) -> dict[str, str]:
    """Return the variables that the manifest declares; values that only the script knows are its variables."""
    variables = {COMPLETION_INDEX_VARIABLE: _shell("row")}
    for variable in job.pod.environment:
        match variable:
            case LiteralVariable():
                variables[variable.name] = expand(variable.value, variables)
            case FieldVariable():
                variables[variable.name] = _field(variable.field, job)
            case _:
                assert_never(variable)
    return variables


def _field(field: str, job: JobSpec) -> str:
    known = {
        "metadata.uid": _shell("uid"),
        "metadata.name": f"{job.name}-{_shell('row')}",
        "metadata.namespace": job.namespace,
        "spec.nodeName": _shell("node"),
        f"metadata.annotations['{INDEX_FAILURE_ANNOTATION}']": _shell("failures"),
        f"metadata.annotations['{INDEX_DISRUPTION_ANNOTATION}']": _shell("disruptions"),
    }
    known |= {f"metadata.labels['{name}']": value for name, value in job.pod.labels.items()}
    known |= {f"metadata.annotations['{name}']": value for name, value in job.pod.annotations.items()}
    return known.get(field, "")


def _folder(job: JobSpec, mount: Mount, variables: dict[str, str]) -> Path:
    """Return the folder that a mount shows; its first part is a variable of the script."""
    volume: PodVolume = job.pod.volumes[mount.volume]
    state, inner = Path(_shell("state")), sub_path(mount, variables)
    match volume:
        case ConfigVolume():
            return state / "jobs" / job.name / mount.volume / inner
        case ResultsVolume():
            return state / "results" / inner
        case KeptVolume():
            return state / volume.name / inner
        case ScratchVolume():
            return Path(_shell("scratch")) / mount.volume / inner
        case DataVolume():
            return Path(_shell("data"))
        case _:
            assert_never(volume)


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
