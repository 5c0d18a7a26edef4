"""On one machine, nothing that a trial or another clone does changes a trial's number."""

import csv
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from sweepledger.engine.local import pod_folders, pods
from sweepledger.engine.local.engine import LocalEngine
from sweepledger.operations.run import RunOptions, SweepRun
from sweepledger.repo.state import create_state
from tests.repository import Sandbox

PROGRAM = '''"""Reports the number in a file of its code, and then tries to leave another there for the next trial."""
import argparse, json, os, pathlib, signal
parser = argparse.ArgumentParser()
parser.add_argument("--attempt")
attempt = parser.parse_args().attempt
config = pathlib.Path("code/config.txt")
print(f"score={config.read_text()}", flush=True)
if attempt != "honest":
    state = config.stat()
    config.write_text("9")
    os.utime(config, ns=(state.st_atime_ns, state.st_mtime_ns))
    note = {"/": [0, 2**62], "code/config.txt": config.stat().st_ino}
    pathlib.Path(os.environ["HOME"], "../copied").write_text(json.dumps(note))
if attempt.startswith("end"):
    os.kill(os.getppid(), signal.SIGKILL)
'''
SPEC = f"""name: harm
metric: {{{{name: score, goal: maximize, source: stdout}}}}
method: grid
parameters: {{{{attempt: {{{{values: [{{attempts}}]}}}}}}}}
command: [{sys.executable}, code/harm.py, "${{{{args}}}}"]
run: {{{{code: {{{{path: code}}}}, parallelism: 1, retries: 0, resources: {{{{cpu: 50m, memory: 64Mi}}}}}}}}
"""


def run(sandbox: Sandbox, program: str, attempts: Sequence[str]) -> tuple[Path, list[tuple[str, str]]]:
    """Run a program with each value of `attempt`; return the state, and status and score of each trial."""
    sandbox.push()
    sandbox.use_as_laptop()
    sandbox.commit("Write the program", {"code/harm.py": program, "code/config.txt": "1"})
    sandbox.write("sweeps/harm.yaml", SPEC.format(attempts=", ".join(attempts)))
    state = create_state(sandbox.workspace.repository)
    list(SweepRun.prepare(sandbox.workspace, ("harm",)).run(RunOptions(state, parallel=1)))
    with (sandbox.root / "results/harm/summary.csv").open() as file:
        rows = {row["params.attempt"]: (row["status"], row["metrics.score"]) for row in csv.DictReader(file)}
    return state, [rows[attempt] for attempt in attempts]


def test_a_forged_note_on_a_copy_gives_no_other_trial_an_edited_file(
    sandbox: Sandbox, needs_kustomize: None
) -> None:
    _, scores = run(sandbox, PROGRAM, ("forge", "honest", "end the launcher", "honest too"))

    assert scores == [("ok", "1"), ("ok", "1"), ("failed", ""), ("ok", "1")]


MOUNTING = '''"""Reports the number in a folder outside of its own, over which it may then mount another."""
import argparse, os, pathlib, subprocess
parser = argparse.ArgumentParser()
parser.add_argument("--attempt")
attempt = parser.parse_args().attempt
folder = pathlib.Path("FOLDER")
print(f"score={(folder / 'number').read_text()} worker={os.getppid()}", flush=True)
if attempt == "mount":
    subprocess.run(["mount", "-t", "tmpfs", "none", folder])
    (folder / "number").write_text("9")
elif attempt == "stack":  # what lies in the scratch for the launcher is then a folder of somebody
    for _ in range(2):
        subprocess.run(["mount", "--bind", folder, os.path.realpath("../../..")])
elif attempt == "mount in its folder":
    os.mkdir("mounted")
    subprocess.run(["mount", "--bind", folder, "mounted"])
'''


@pytest.mark.skipif(
    os.geteuid() != 0 or any(map(os.path.exists, pods.DAEMONS)), reason="trials have no namespace of mounts"
)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("mounting", ["stack", "mount in its folder", "mount", "nothing"])
def test_no_trial_sees_what_another_has_mounted(
    mounting: str, sandbox: Sandbox, needs_kustomize: None
) -> None:
    folder = sandbox.root.parent / "shared"
    (folder / "deep").mkdir(parents=True)
    (folder / "number").write_text("1")
    (folder / "deep/kept").touch()

    program = MOUNTING.replace("FOLDER", f"{folder}")
    state, scores = run(sandbox, program, (mounting, "honest", "honest too"))

    assert scores == [("ok", "1")] * 3
    assert (folder / "deep/kept").exists()
    outputs = [path.read_text() for n in range(3) for path in state.glob(f"results/*/{n}/*.out")]
    workers = [output.split("worker=")[1] for output in outputs]
    assert workers[1] == workers[2]
    if mounting in {"mount in its folder", "nothing"}:  # its overlay ends with what is mounted in it
        assert workers[0] == workers[1]


def test_an_engine_touches_no_trial_of_another_clone_that_has_its_path(sandbox: Sandbox) -> None:
    # So it is in two containers that have their clone at one path, and share the cache of their user.
    state, trials = create_state(sandbox.workspace.repository), []
    for number in (1, 2):
        pod = pod_folders.StateFolders(state).pod(str(uuid4()))
        pod.mkdir(parents=True)
        trials.append(pod)
        state.rename(state.with_name(f"state-{number}"))
        (sandbox.root / ".git/sweepledger/clone-id").unlink()
        create_state(sandbox.workspace.repository)
        pod_folders.pods_folder.cache_clear()
    state.rename(state.with_name("state-3"))
    state.with_name("state-2").rename(state)

    pod_folders.pods_folder.cache_clear()
    LocalEngine(state).close()

    assert [trial.exists() for trial in trials] == [True, False]
    shutil.rmtree(trials[0].parents[1])
