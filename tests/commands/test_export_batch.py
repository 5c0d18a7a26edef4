"""`sweep export shell` and `slurm`: a committed batch as a script that runs the launchers of a cluster."""

import csv
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sweepledger.commands.collection.collector import collect_from_state
from sweepledger.commands.repository.workspace import results_target
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.repo import batches
from sweepledger.verbs.export import export_batch
from tests.builders import present
from tests.repository import Sandbox, append_to

PROGRAM = """import os, signal, sys
attempts = os.environ["SWEEP_RESULTS"] + "/attempts"
number = len(open(attempts).read()) if os.path.exists(attempts) else 0
open(attempts, "a").write("x")
x = float(sys.argv[1].partition("=")[2])
if x == 1 and number == 0:
    os.kill(os.getppid(), signal.SIGKILL)
if x == 2:
    sys.exit(1)
open(os.environ["SWEEP_RESULT"], "w").write('{"score": %s}' % x)
"""
"""The machine kills the first attempt at x=1; x=2 fails."""


def run_script(sandbox: Sandbox, path: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", path],
        cwd=sandbox.root,
        env={"PATH": search, "LANG": "C.UTF-8", "JOBS": "4"},
        capture_output=True,
        text=True,
        check=False,
    )


def collect(sandbox: Sandbox, over: frozenset[str] = frozenset()) -> list[dict[str, str]]:
    target = results_target(sandbox.workspace, push=False)
    state = sandbox.root / ".sweepledger"
    if not collect_from_state(target, state / "results", state, over=over).collected:
        return []
    text = sandbox.git("show", "HEAD:results/peak/summary.csv")
    return list(csv.DictReader(text.splitlines()))


def test_a_shell_script_runs_and_retries_trials_for_the_collection(sandbox: Sandbox) -> None:
    sandbox.commit("Write the program", {"code/train.py": PROGRAM})
    append_to(sandbox.spec(xs="0, 1, 2", parallelism=4), "  retries: 1\n")
    sandbox.name_person()
    sandbox_batch = _generated(sandbox)

    export_batch(sandbox.workspace, "shell", "peak", output=sandbox.root / "peak.sh")
    run_script(sandbox, "peak.sh")

    rows = collect(sandbox)
    (stored,) = batches.in_commit(sandbox.workspace.repository, "HEAD")
    assert [row["trial"] for row in rows] == [trial.id for trial in stored.trials]
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]
    folders = sandbox.root / ".sweepledger/results" / sandbox_batch
    attempts = [len((folders / str(row) / "attempts").read_text()) for row in range(3)]
    assert attempts == [1, 2, 2], "a killed launcher is a disruption, a failure is retried as the spec says"
    again = run_script(sandbox, "peak.sh")
    assert (again.returncode != 0, len((folders / "2/attempts").read_text())) == (True, 2)


def _generated(sandbox: Sandbox) -> str:
    from sweepledger.verbs.generate import generate_batches as generate  # noqa: PLC0415

    (generated,) = generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")
    return present(generated.batch).name


def test_a_batch_given_up_by_its_scheduler_is_recorded_on_request(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    sandbox.name_person()
    assert not collect(sandbox)

    rows = collect(sandbox, frozenset({batch}))

    assert [row["status"] for row in rows] == ["missing"] * 3
    with pytest.raises(UsageError, match="no active batch 'peak-b9-00000000' is committed"):
        collect(sandbox, frozenset({"peak-b9-00000000"}))
    refused = sandbox.sweep("cluster", "collect", "--ended", batch, "--cluster")
    assert (refused.returncode, "--ended cannot be combined" in refused.stderr) == (2, True)


def test_a_slurm_array_has_the_resources_limits_and_time_of_the_batch(sandbox: Sandbox) -> None:
    batch = sandbox.merged(xs=", ".join(map(str, range(1001))), parallelism=7)

    exported = export_batch(sandbox.workspace, "slurm", "peak")

    options = [
        line.removeprefix("#SBATCH ") for line in exported.text.splitlines() if line.startswith("#SBATCH")
    ]
    assert f"--job-name={batch}" in options
    assert "--array=0-999%7" in options, "an array has at most a thousand tasks: each runs two rows"
    (limit,) = (option for option in options if option.startswith("--time="))
    assert {"--cpus-per-task=1", "--mem=256M", "--requeue"} <= set(options)
    assert int(limit.removeprefix("--time=")) >= 2, "two timeouts of a minute"
    assert str(sandbox.root) not in exported.text, "the script has no path of this machine"
    assert exported.text == export_batch(sandbox.workspace, "slurm", "peak").text
    assert [loss.part for loss in exported.losses] == ["network and rights"]


@pytest.mark.parametrize("text", ["it's", 'a "b"', "$HOME `id`", "two\nlines", "~", "*"])
def test_values_of_the_environment_reach_a_trial_unchanged(sandbox: Sandbox, text: str) -> None:
    from sweepledger.verbs.export import shell_word  # noqa: PLC0415

    word = shell_word(f"X={text}\0row\0{text}")

    shown = subprocess.run(
        ["bash", "-c", f"row=7; printf %s {word}"], check=True, capture_output=True, text=True
    )
    assert shown.stdout == f"X={text}7{text}"
    assert shlex.split(word.replace('"${row}"', "7")) == [f"X={text}7{text}"]


def test_what_cannot_be_exported_is_refused_with_the_way_out(sandbox: Sandbox) -> None:
    sandbox.spec()

    with pytest.raises(RepositoryError, match="no active batch of peak is committed") as error:
        export_batch(sandbox.workspace, "slurm", "peak")

    assert error.value.hint is not None
    assert "`sweep generate peak`" in error.value.hint
    refused = sandbox.sweep("export", "csv", "peak", "--batch", "peak-b1-00000000")
    assert (refused.returncode, "--batch is for shell, slurm, got csv" in refused.stderr) == (2, True)
