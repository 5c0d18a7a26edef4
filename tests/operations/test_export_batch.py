"""`sweep export shell` and `slurm`: a committed batch as a script that runs the launchers of a cluster."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.collection.collector import collect_from_state
from sweepledger.operations.repository.workspace import results_target
from sweepledger.repo import batches
from sweepledger.verbs.export import export, export_batch
from tests.repository import Sandbox, answer, append_to

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


def run_script(sandbox: Sandbox, path: str, jobs: int = 4) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", path],
        cwd=sandbox.root,
        env={"PATH": search, "LANG": "C.UTF-8", "JOBS": str(jobs)},
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
    name = sandbox.new_batch().name
    sandbox.commit("Ask for a sweep")

    answer(export, workspace=sandbox.workspace, foreign="shell", name="peak", output=sandbox.root / "peak.sh")
    run_script(sandbox, "peak.sh")

    rows = collect(sandbox)
    (stored,) = batches.in_commit(sandbox.workspace.repository, "HEAD")
    assert [row["trial"] for row in rows] == [trial.id for trial in stored.trials]
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]
    folders = sandbox.root / ".sweepledger/results" / name
    attempts = [len((folders / str(row) / "attempts").read_text()) for row in range(3)]
    assert attempts == [1, 2, 2], "a killed launcher is a disruption, a failure is retried as the spec says"
    again = run_script(sandbox, "peak.sh")
    assert (again.returncode != 0, len((folders / "2/attempts").read_text())) == (True, 2)


WRITES = """import glob, os, sys
data, code = os.environ["SWEEP_DATA"], glob.glob({root!r} + "/.sweepledger/code/*/code")[0]
for place in [{place}]:
    os.chmod(place, 0o700)
    open(place + "/left", "a").write(sys.argv[1])
open(os.environ["SWEEP_RESULT"], "w").write('{{"score": 1}}')
"""


@pytest.mark.parametrize(
    ("place", "reasons"),
    [("data", ["data-changed"] * 2), ("code", ["", "code-changed"])],
    ids=["dataset", "stored code"],
)
def test_what_a_trial_of_a_script_writes_for_others_is_in_no_result(
    place: str, reasons: list[str], sandbox: Sandbox
) -> None:
    append_to(
        sandbox.root / "sweepledger.yaml",
        "datasets: {digits: {claim: digits, version: a, prepare: [sh, -c, 'echo > $SWEEP_DATA/x']}}\n",
    )
    sandbox.commit("Write the program", {"code/train.py": WRITES.format(root=str(sandbox.root), place=place)})
    append_to(sandbox.spec(xs="0, 1", parallelism=1), "  retries: 0\n  data: digits\n")
    sandbox.name_person()
    sandbox.commit_batches("Ask for a sweep")
    answer(export, workspace=sandbox.workspace, foreign="shell", name="peak", output=sandbox.root / "peak.sh")

    run_script(sandbox, "peak.sh", jobs=1)

    assert [row["reason"] for row in collect(sandbox)] == reasons


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


def test_what_cannot_be_exported_is_refused_with_the_way_out(sandbox: Sandbox) -> None:
    sandbox.spec()

    with pytest.raises(RepositoryError, match="no active batch of peak is committed") as error:
        export_batch(sandbox.workspace, "slurm", "peak")

    assert error.value.hint is not None
    assert "`sweep generate peak`" in error.value.hint
    refused = sandbox.sweep("export", "csv", "peak", "--batch", "peak-b1-00000000")
    assert (refused.returncode, "--batch is for shell, slurm, got csv" in refused.stderr) == (2, True)
