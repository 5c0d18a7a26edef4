"""An upgrade by its page, on a cluster: a batch of an earlier release runs on, and later ones have the new bases.

The platform, the hook and the batch are of the earlier release; the collector's image is of this one, since the page
lets it be upgraded at any time. `tests/commands/test_upgrade_from_earlier.py` has the earlier collector, without a
cluster.
"""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sweepledger.commands.scaffold.upgrade import BRANCH
from sweepledger.render.overlay import NOT_ARCHIVED
from sweepledger.render.platform.manual_setup import HOOK_FILE
from tests import earlier_release
from tests.cluster.children import until
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground, set_up_team
from tests.e2e.team import PATIENCE, Batch, Team

pytestmark = pytest.mark.full
NAMESPACE = "earlier"
TRIALS = 2
WAITS = '''"""A trial that runs until its gate is open. The second one fails then, and reports at its next attempt."""
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
folder = os.environ["SWEEP_CHECKPOINTS"]
begun = os.path.join(folder, "begun")
is_first = not os.path.exists(begun)
open(begun, "w").close()
while not os.path.exists(os.path.join(folder, "open")):
    time.sleep(0.5)
if x > 1 and is_first:
    sys.exit(7)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": x}, file)
'''


@pytest.fixture(scope="module")
def team(ground: Ground, controller: Controller) -> Team:
    """A team in a namespace of its own that began with the earlier release."""
    python = earlier_release.installed(ground.machine.folder / "earlier-release")
    if python is None:
        pytest.skip(f"skipped: this clone has no commit {earlier_release.COMMIT}, so it is shallow")
    return set_up_team(ground, namespace=NAMESPACE, python=str(python))


def objects(team: Team, batch: Batch) -> Mapping[str, tuple[str, str]]:
    """Return the Jobs and pods of a batch: what they are, and how their pods stand."""
    jobs, pods = team.jobs(batch), team.pods(batch)
    return {item["metadata"]["uid"]: (item["metadata"]["name"], "") for item in jobs} | {
        pod["metadata"]["uid"]: (pod["metadata"]["name"], pod["status"]["phase"]) for pod in pods
    }


def unlike(team: Team) -> list[dict[str, str]]:
    """Return what `sweep doctor` misses or finds different in the cluster, but for volumes, which are the box's."""
    output = team.sweep("doctor", "--format", "json", check=False).stdout
    findings: list[dict[str, str]] = json.loads(output)["data"]["findings"]
    return [one for one in findings if one["state"] in {"missing", "wrong"} and one["part"] != "storage"]


def gate(results: Path, batch: Batch, name: str) -> list[Path]:
    """Return a file of each trial's checkpoints as the volume has it."""
    return [results / batch.name / str(index) / "checkpoints" / name for index in range(TRIALS)]


def kubectl_commands(upgraded: str) -> list[list[str]]:
    """Return the commands of the last step that `sweep upgrade` prints."""
    *_, last = json.loads(upgraded)["data"]["steps"]
    return [shlex.split(command) for command in re.findall(r"kubectl [^;]+", last)]


def test_a_batch_of_the_earlier_release_runs_on_and_the_next_one_has_the_new_bases(
    team: Team, ground: Ground
) -> None:
    results = ground.storage.results
    now = replace(team, python=sys.executable)
    team.write("code/waits.py", WAITS)
    team.commit("Trials that wait")
    command = ("python3", "code/waits.py", "${args}")
    team.write_spec("waits", parameters={"x": [1, 2]}, command=command, timeout="30m")
    (waits,) = team.merge_specs("waits")
    until(
        "both trials run",
        lambda: all(path.is_file() for path in gate(results, waits, "begun")),
        seconds=PATIENCE,
    )
    until(
        "their pods are seen to run",
        lambda: [pod["status"]["phase"] for pod in team.pods(waits)] == ["Running"] * TRIALS,
        seconds=PATIENCE,
    )
    before = objects(team, waits)

    # The hook first, then the pull request that `sweep upgrade` writes, then what the controller does not apply.
    upgraded = now.sweep("upgrade", "--push", "--format", "json").stdout
    now.git("fetch", "-q", "origin")
    ground.forge.install_rule(NAMESPACE, now.git("show", f"origin/{BRANCH}:{HOOK_FILE}"))
    merged = now.git("rev-parse", "HEAD").strip()
    now.git("merge", "-q", "--no-ff", "-m", "Upgrade", f"origin/{BRANCH}")
    now.sweep("check", "--base", merged)
    touched = now.git("diff", "--name-only", merged, "HEAD", "--", "overlays", "sweeps", "results")
    now.push()
    for apply in kubectl_commands(upgraded):
        now.run(apply)
    until("the platform is the new one", lambda: not unlike(now), seconds=PATIENCE, pause=3)
    now.write_spec("fresh", parameters={"x": [3, 4]})
    (fresh,) = now.merge_specs("fresh")
    bases = {batch.sweep: batch.lock["bases"] for batch in (waits, fresh)}
    now.until_recorded(fresh)
    after = objects(now, waits)
    for path in gate(results, waits, "open"):
        path.touch()
    now.until_recorded(waits)

    assert touched == ""
    assert {"launcher/v1", "launcher/v2"} & set(bases["waits"]) == {"launcher/v1"}
    assert {"launcher/v1", "launcher/v2"} & set(bases["fresh"]) == {"launcher/v2"}
    assert after == before, "no object was made again, and no trial was stopped"
    ends = sorted((record["index"], record["status"]) for record in now.records(waits))
    # Kubernetes starts the second attempt behind the new admission policies.
    assert ends == [(0, "ok"), (1, "failed"), (1, "ok")]
    assert {row["status"] for sweep in ("waits", "fresh") for row in now.summary(sweep)} == {"ok"}
    assert [len(now.results_commits(batch)) for batch in (waits, fresh)] == [1, 1]
    archived = {batch.sweep: now.root / "overlays/archive" / batch.name for batch in (waits, fresh)}
    assert (archived["waits"] / "launch.py").is_file(), "the earlier form stays as it is"
    assert not [name for name in NOT_ARCHIVED if (archived["fresh"] / name).exists()]
    now.sweep("verify")
    now.sweep("upgrade", "--check")
