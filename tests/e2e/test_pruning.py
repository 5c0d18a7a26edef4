"""Hazard: git and the cluster agree while pods run, and the last batch that is recorded is pruned, too.

Two batches, one of each shape, run, are recorded and pruned while nothing else is active: one story.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.cluster.children import until
from tests.e2e import peace
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.team import NAMESPACE, PATIENCE, Batch, Team
from tests.e2e.watching import Watch, tell

LOOKS = 3
LOOKED_INTO = {"argocd": "argocd", "flux": f"{NAMESPACE}-flux"}


@dataclass(frozen=True)
class Story:
    """The only active batches, one of each shape, whose trials take their time."""

    watch: Watch
    batches: tuple[Batch, ...]


@pytest.fixture(scope="module")
def alone(ground: Ground, team: Team) -> Story:
    watch = Watch(team, ground.storage.results)
    team.until_idle()
    watch.write_spec("last", 2, seconds=75)
    watch.write_spec("last-indexed", 2, seconds=75, shape="indexed")
    batches = team.merge_specs("last", "last-indexed")
    watch.until_each_trains(*batches)
    return Story(watch, batches)


def test_nothing_differs_meanwhile(
    alone: Story, ground: Ground, team: Team, controller: Controller
) -> None:
    until_in_sync(controller)
    before = peace.objects(team, *alone.batches)
    done = peace.operations(ground.machine) if ground.controller == "argocd" else {}

    for number in range(LOOKS):
        team.pull()
        team.write("notes.md", f"Note {number}.\n")
        team.commit("Note something")
        controller.look()
    were_running = alone.watch.are_each_trained_once(*alone.batches)
    differences = [peace.difference(team, batch) for batch in alone.batches]
    until_in_sync(controller)

    phases = {pod["status"]["phase"] for batch in alone.batches for pod in team.pods(batch)}
    tell("in sync", phases=phases, objects=len(before))
    assert were_running
    assert differences == ["", ""]
    assert len(before) == 4 + 3
    assert peace.objects(team, *alone.batches) == before
    if ground.controller == "argocd":
        assert peace.operations(ground.machine) == done
        assert {state for item in done.values() for state in item["resources"].values()} == {"Synced"}


def test_the_last_active_batches_are_pruned_and_the_only_word_of_it_is_what_the_page_on_alerts_says(
    alone: Story, ground: Ground, team: Team, controller: Controller, repository_root: Path
) -> None:
    alone.watch.until_ended(*alone.batches)
    alone.watch.collect()
    for batch in alone.batches:
        team.until_recorded(batch)
    until("nothing of them is left", lambda: not peace.objects(team, *alone.batches), seconds=PATIENCE)
    alone.watch.until_gone(*alone.batches)
    until_in_sync(controller, *alone.batches)

    warnings = peace.warnings(ground.machine, LOOKED_INTO[ground.controller], *alone.batches)
    unknown = [
        words for words in warnings if not re.search(left_out(ground.controller, repository_root), words)
    ]
    tell("pruned", warnings=warnings)
    assert unknown == []
    assert controller.objects() == set()
    assert team.active() == [".gitkeep"]
    assert alone.watch.are_each_trained_once(*alone.batches)


def left_out(controller: str, root: Path) -> str:
    """Give what the page on a controller tells people to leave out of alerts."""
    page = (root / f"docs/how-to/bootstrap-{controller}.md").read_text()
    (block,) = re.findall(r"```(?:text|yaml)\n(.*?)```", page.partition("\n## 6. Alerts\n")[2], re.DOTALL)
    if controller == "argocd":
        return str(block.strip())
    (pattern,) = yaml.safe_load(block)["spec"]["exclusionList"]
    return str(pattern)
