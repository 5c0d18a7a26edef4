"""A batch is paused, scaled and resumed by commits while it runs; no attempt is lost, and it is recorded once."""

from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.team import PATIENCE, Batch, Team

RESUMABLE = '''"""A trial that never ends when it begins anew, and at once when it goes on."""
import json, os, time
from pathlib import Path
begun = Path(os.environ["SWEEP_CHECKPOINTS"]) / "begun"
if not begun.exists():
    begun.touch()
    print("begun", flush=True)
    time.sleep(1800)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": 1.0}, file)
'''
TRIALS = 3


pytestmark = pytest.mark.full


def job(team: Team, batch: Batch) -> dict[str, Any]:
    (made,) = team.jobs(batch)
    return made


def test_a_batch_is_paused_and_scaled_by_commits(
    team: Team, controller: Controller
) -> None:
    team.have_program("code/resumable.py", RESUMABLE)
    command = ("python3", "code/resumable.py")
    options: dict[str, Any] = {"shape": "indexed", "parallelism": 1, "retries": 0, "timeout": "40m"}
    team.write_spec("pausing", parameters={"x": list(range(TRIALS))}, command=command, **options)
    (batch,) = team.merge_specs("pausing")
    until("the first trial runs", lambda: team.running(batch) == 1, seconds=PATIENCE, pause=1)
    made = job(team, batch)["metadata"]["uid"]

    team.sweep("cluster", "scale", "pausing", str(TRIALS))
    team.sweep("check", "--base", "origin/main")
    team.push()
    until("all trials run", lambda: team.running(batch) == TRIALS, seconds=PATIENCE, pause=1)

    team.sweep("cluster", "pause", "pausing")
    team.sweep("check", "--base", "origin/main")
    team.push()
    until("its pods are gone", lambda: not team.pods(batch), seconds=PATIENCE, pause=1)
    assert (job(team, batch)["spec"]["suspend"], job(team, batch)["metadata"]["uid"]) == (True, made)
    until_in_sync(controller)
    team.collect()
    assert "paused" in team.sweep("status", "pausing").stdout

    team.sweep("cluster", "resume", "pausing")
    team.push()
    team.until_recorded(batch)

    assert [(row["status"], row["metrics.score"]) for row in team.summary("pausing")] == [
        ("ok", "1")
    ] * TRIALS
    assert len(team.results_commits(batch)) == 1
    until_in_sync(controller, batch)
