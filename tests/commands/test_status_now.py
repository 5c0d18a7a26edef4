"""`sweep status` is true at every moment: while trials run, after an interruption, and before a pull."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

from sweepledger.commands.local import Options, local
from sweepledger.commands.reports.status import SweepStatus, status
from sweepledger.commands.run import RunOptions, SweepRun
from sweepledger.engine.local.events import PodStarted
from sweepledger.repo.state import create_state
from tests.repository import Sandbox

RunSweep = Callable[..., subprocess.CompletedProcess[str]]


def now(sandbox: Sandbox) -> SweepStatus:
    (shown,) = status(sandbox.workspace, state=sandbox.root / ".sweepledger")
    return shown


def test_trials_run_only_as_long_as_an_engine_does(sandbox: Sandbox, run_sweep: RunSweep) -> None:
    sandbox.git("config", "user.name", "Ada")
    sandbox.git("config", "user.email", "ada@example.org")
    program = sandbox.root / "code/train.py"
    program.write_text(f"import time\ntime.sleep(60)\n{program.read_text()}")
    sandbox.commit("Take long")
    sandbox.spec()
    workspace = sandbox.workspace
    events = SweepRun.prepare(workspace, ("peak",)).run(RunOptions(create_state(workspace.repository)))
    list(takewhile(lambda event: not isinstance(event, PodStarted), events))

    during = now(sandbox).counts
    events.close()
    shown = run_sweep("status", cwd=sandbox.root)

    assert during["running"] == 2
    assert during["interrupted"] == 0
    assert now(sandbox).counts["running"] == 0
    assert now(sandbox).counts["interrupted"] == 2
    assert "peak: interrupted: `sweep run peak` continues it here" in shown.stdout


def test_results_that_are_not_pulled_are_not_pending(sandbox: Sandbox, run_sweep: RunSweep) -> None:
    sandbox.merged()
    create_state(sandbox.workspace.repository)
    list(local(Options(str(sandbox.remote), "main", sandbox.root / ".sweepledger", once=True)))

    assert now(sandbox).counts == Counter({"recorded": 3})
    assert "`git pull origin main` brings results here" in run_sweep("status", cwd=sandbox.root).stdout

    sandbox.pull()

    assert now(sandbox).counts == Counter({"ok": 3})


def test_an_overlay_that_was_edited_by_hand_is_named_with_the_way_back(
    sandbox: Sandbox, run_sweep: RunSweep
) -> None:
    batch = sandbox.merged()
    path = sandbox.root / f"overlays/active/{batch}/job.yaml"
    path.write_text(path.read_text() + "# mine\n")

    done = run_sweep("status", cwd=sandbox.root)

    assert (
        f"overlays/active/{batch}: warning: was edited by hand: overlays/active/{batch}/job.yaml"
        in done.stderr
    )
    assert f"`git checkout -- overlays/active/{batch}`" in done.stderr
    assert done.returncode == 0


def test_watching_ends_when_no_batch_is_active(sandbox: Sandbox, run_sweep: RunSweep) -> None:
    sandbox.git("config", "user.name", "Ada")
    sandbox.git("config", "user.email", "ada@example.org")
    sandbox.spec()
    program = sandbox.root / "code/train.py"
    program.write_text(f"import time\ntime.sleep(1)\n{program.read_text()}")
    sandbox.commit("Take a second")
    assert run_sweep("generate", "peak", cwd=sandbox.root).returncode == 0
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(run_sweep, "status", "--watch", "--format", "json", cwd=sandbox.root)
        assert run_sweep("run", "peak", cwd=sandbox.root).returncode == 0

        done = watching.result()

    (shown,) = json.loads(done.stdout)["data"]["sweeps"]
    assert (shown["ok"], shown["active"]) == (3, [])
