"""Hazard: overlays that are broken were merged past every check. They stop nobody, and each is named."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.cluster import flux
from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.e2e.controllers import APPLICATION, ROOT, Controller, Flux, until_in_sync
from tests.e2e.team import MINUTE, PATIENCE, Batch, Team

NO_BATCH = "overlays/active/Not_A_Name"
"""A folder after which nothing in a cluster can be called."""
FLUX_FILES = "clusters/flux/active"
UNTIL_THE_LAST_TRY = 20 * MINUTE
"""Argo CD tries for some eight, and before that deletes nothing that it tries."""


def _without_a_file(batch: Batch) -> None:
    """Name a file that is not there: kustomize cannot build this."""
    path = batch.folder / "kustomization.yaml"
    path.write_text(path.read_text().replace('- "job.yaml"', '- "job.yaml"\n- "not-there.yaml"'))


def _with_a_negative_count(batch: Batch) -> None:
    """Ask for less than nothing: the API server takes no such Job."""
    path = batch.folder / "job.yaml"
    path.write_text(path.read_text().replace("backoffLimitPerIndex: 1", "backoffLimitPerIndex: -1"))


def _with_an_image_by_tag(batch: Batch) -> None:
    """Name an image by a tag, which may be another tomorrow: the platform's policy takes no such Job."""
    _set_images(batch, of_first_jobs=len(_jobs(batch)))


def _with_one_image_by_tag(batch: Batch) -> None:
    """Let the policy take all Jobs but the first."""
    _set_images(batch, of_first_jobs=1)


def _set_images(batch: Batch, *, of_first_jobs: int) -> None:
    jobs = _jobs(batch)
    for job in jobs[:of_first_jobs]:
        job["spec"]["template"]["spec"]["containers"][0]["image"] = "localhost/trainer:latest"
    (batch.folder / "job.yaml").write_text(yaml.safe_dump_all(jobs))


def _jobs(batch: Batch) -> list[Any]:
    return list(yaml.safe_load_all((batch.folder / "job.yaml").read_text()))


BREAKS: Mapping[str, tuple[Callable[[Batch], None], str]] = {
    "no-build": (_without_a_file, "not-there.yaml"),
    "no-job": (_with_a_negative_count, "spec.backoffLimitPerIndex: Invalid value: -1"),
    "no-digest": (_with_an_image_by_tag, "denied request: images are named by digest"),
    "halves": (_with_one_image_by_tag, "denied request: images are named by digest"),
}
BROKEN = ("no-build", "no-job", "no-digest")
"""What is done to an overlay, and what its error must say."""


def _merged_by_force(team: Team, *names: str) -> str:
    """Merge sweeps whose overlays were broken on the branch; give what `sweep check` said to that."""
    team.propose(*names)
    for name in names:
        BREAKS[name][0](team.batch(name))
    said = _refused(team)
    team.merge()
    return said


def _refused(team: Team) -> str:
    """Add what was written to the branch's commit, and give what `sweep check` says to that."""
    team.git("add", "--all")
    team.git("commit", "-q", "--amend", "--no-edit")
    checked = team.sweep("check", "--base", "origin/main", check=False)
    assert checked.returncode == 5, checked
    return checked.stdout + checked.stderr


@dataclass(frozen=True)
class Story:
    """One sweep that ran, three broken overlays merged by force, and one sweep merged after them."""

    team: Team
    steady: Batch
    broken: tuple[Batch, ...]
    fresh: Batch
    checked: str
    """What `sweep check` had said to the broken ones."""
    troubles: Mapping[str, str]
    """What the controller says against each broken one."""


@pytest.fixture(scope="module")
def story(team: Team, controller: Controller) -> Story:
    team.write_spec("steady", parameters={"x": [1, 2], "seconds": [30]})
    (steady,) = team.merge_specs("steady")
    until("a sweep runs", lambda: len(team.pods(steady)) == 2, seconds=PATIENCE, pause=1)
    for name in BROKEN:
        team.write_spec(name, parameters={"x": [1, 2]})
    checked = _merged_by_force(team, *BROKEN)
    broken = tuple(team.batch(name) for name in BROKEN)
    team.write_spec("fresh", parameters={"x": [1, 2]})
    team.propose("fresh")
    team.write(f"{NO_BATCH}/kustomization.yaml", "resources: [not-there.yaml]\n")
    checked += _refused(team)
    team.merge()
    fresh = team.batch("fresh")
    until("the next sweep runs", lambda: len(team.pods(fresh)) == 2, seconds=PATIENCE, pause=1)

    troubles: dict[str, str] = {}

    def are_told() -> bool:
        for one in broken:
            said = controller.trouble(one)
            if BREAKS[one.sweep][1] in said:
                troubles[one.name] = said  # while it tries again it says less
        return len(troubles) == len(broken)

    until("every broken overlay is told of", are_told, seconds=PATIENCE, pause=1)
    return Story(team, steady, broken, fresh, checked, troubles)


def test_the_check_refuses_every_broken_overlay_and_names_it(story: Story) -> None:
    lines = story.checked.splitlines()

    for batch in story.broken:
        assert any(line.startswith(batch.folder.relative_to(story.team.root).as_posix()) for line in lines)
    assert any(line.startswith(NO_BATCH) for line in lines)


def test_the_controller_names_every_broken_overlay_and_applies_no_job_of_it(story: Story) -> None:
    for batch in story.broken:
        assert batch.name in story.troubles[batch.name]
    assert not [job for batch in story.broken for job in story.team.jobs(batch)]


def test_other_sweeps_go_on_and_new_ones_begin_beside_broken_overlays(story: Story) -> None:
    for batch in (story.steady, story.fresh):
        story.team.until_recorded(batch)

    statuses = [row["status"] for name in ("steady", "fresh") for row in story.team.summary(name)]
    assert statuses == ["ok"] * 4


def test_broken_overlays_are_taken_out_by_checked_commits(
    story: Story, controller: Controller
) -> None:
    team = story.team
    team.pull()
    for name in BROKEN:
        team.sweep("cancel", name)
    team.git("rm", "-q", "-r", NO_BATCH)
    team.git("commit", "-q", "-m", "Take out what is no batch")
    team.sweep("check", "--base", "origin/main")

    team.push()
    if team.controller == "argocd":
        end_the_tries(team, story.broken)

    for batch in story.broken:
        team.until_recorded(batch)
    until_in_sync(controller, *story.broken)
    assert {row["status"] for name in BROKEN for row in team.summary(name)} == {"cancelled"}


@pytest.mark.full
def test_a_batch_with_a_refused_job_is_cancelled_too(
    team: Team, controller: Controller
) -> None:
    team.pull()
    team.write_spec("halves", parameters={"x": [1, 2], "seconds": [3000]}, timeout="1h")
    _merged_by_force(team, "halves")
    batch = team.batch("halves")
    says = BREAKS["halves"][1]
    until("the refused Job is told of", lambda: says in controller.trouble(batch), seconds=PATIENCE, pause=1)
    began = time.monotonic()

    team.pull()
    team.sweep("cancel", "halves")
    team.push()

    until("it is gone", lambda: not _is_there(batch, team, controller), seconds=UNTIL_THE_LAST_TRY, pause=2)
    print(f"gone after {time.monotonic() - began:.0f} s")
    team.until_recorded(batch)
    assert [row["status"] for row in team.summary("halves")] == ["cancelled"] * 2


@pytest.mark.full
def test_under_flux_a_broken_file_is_named(
    team: Team, controller: Controller, machine: Machine
) -> None:
    if not isinstance(controller, Flux):
        pytest.skip("skipped: Argo CD reads the folders of overlays themselves")
    team.write_spec("beforehand", parameters={"x": [1], "seconds": [20]})
    (early,) = team.merge_specs("beforehand")
    until("a sweep runs", lambda: team.pods(early), seconds=PATIENCE, pause=1)
    text = (team.root / f"{FLUX_FILES}/{early.name}.yaml").read_text()
    team.write(f"{FLUX_FILES}/rogue.yaml", text.replace(early.name, "rogue").replace("sweep-applier", "x"))
    rogue = team.commit("Merge by force")
    team.write_spec("held-up", parameters={"x": [1]})

    (late,) = team.merge_specs("held-up")

    def names_it() -> bool:
        return "Kustomization/sweeps-flux/rogue" in flux.ready(machine, Flux.SPACE)[ROOT].message

    until("the root names it", names_it, seconds=PATIENCE, pause=1)
    team.until_recorded(early)
    held_up = team.jobs(late)
    team.git("revert", "--no-edit", rogue)
    team.push()

    team.until_recorded(late)
    assert not held_up
    assert [team.summary(name)[0]["status"] for name in ("beforehand", "held-up")] == ["ok", "ok"]


def end_the_tries(team: Team, batches: Iterable[Batch]) -> None:
    """Have Argo CD give up applying, as docs/how-to/bootstrap-argocd.md tells who cannot wait for that."""
    end = ("--type=json", '--patch=[{"op": "remove", "path": "/operation"}]')
    for batch in batches:
        # One that does not even build is not tried.
        team.server.kubectl("patch", APPLICATION, batch.name, "--namespace=argocd", *end, check=False)


def _is_there(batch: Batch, team: Team, controller: Controller) -> bool:
    return bool(team.pods(batch) or team.jobs(batch) or batch.name in controller.objects())
