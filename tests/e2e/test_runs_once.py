"""Hazard: what has ended never trains again, whatever brings its Job back, and is recorded exactly once.

The tests follow one story: three batches, one of each shape and one with packs, end while their results cannot be
pushed; then they are recorded.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.children import until
from tests.cluster.forge_faults import Fault, Refusing
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.team import COLLECTOR, PATIENCE, Batch, Team
from tests.e2e.upsetting import UPSETS, ArgoCDUpsets, Upsets, restored
from tests.e2e.watching import ALREADY, Watch, tell

EDITED = {
    "metadata": {"labels": {"edited": "yes"}},
    "spec": {"syncPolicy": {"automated": {"selfHeal": True}, "syncOptions": ["Replace=true", "Force=true"]}},
}
"""A template by which every Job would be deleted and made anew."""


@dataclass(frozen=True)
class Story:
    """Batches that have ended, and the commit at which they were active."""

    watch: Watch
    batches: tuple[Batch, ...]
    commit: str
    kept: Mapping[str, Any]
    """The first one's Application or Kustomization, as it was."""

    def until_ended_again(self, before: dict[str, str]) -> None:
        """Wait until other Jobs have ended than those before, and tell how long their containers ran."""
        began = time.monotonic()
        self.watch.until_ended(*self.batches, but=before)
        ran = self.watch.seconds(*self.batches)
        tell("made anew", seconds_until_ended=round(time.monotonic() - began), containers_ran=ran)

    def words(self) -> list[str]:
        return [words for batch in self.batches for words in self.watch.outputs(batch).values()]

    def commits(self) -> list[int]:
        return [len(self.watch.team.results_commits(batch)) for batch in self.batches]


@pytest.fixture(scope="module")
def upsets(ground: Ground, team: Team) -> Upsets:
    return UPSETS[ground.controller](ground.machine, team)


@pytest.fixture(scope="module")
def ended(ground: Ground, team: Team, upsets: Upsets) -> Iterator[Story]:
    watch = Watch(team, ground.storage.results)
    ground.forge.faults(Fault(Refusing(), by=COLLECTOR))
    watch.write_spec("once", 2)
    watch.write_spec("once-indexed", 3, shape="indexed")
    watch.write_spec("once-packed", 5, shape="indexed", pack={"trials": 3, "at_once": 3})
    batches = team.merge_specs("once", "once-indexed", "once-packed")
    commit = team.git("rev-parse", "HEAD").strip()
    watch.until_ended(*batches)
    yield Story(watch, batches, commit, upsets.kept(batches[0]))
    ground.forge.faults()


@pytest.fixture(scope="module")
def recorded(ended: Story, ground: Ground, team: Team) -> Story:
    ground.forge.faults()
    ended.watch.collect()
    for batch in ended.batches:
        team.until_recorded(batch)
    return ended


def test_ended_jobs_are_untouched(
    ended: Story, team: Team, controller: Controller, upsets: Upsets
) -> None:
    before = ended.watch.jobs(*ended.batches)

    controller.restart()
    team.write("notes.md", "Nothing that a batch reads.\n")
    team.commit("Note something")
    upsets.look_hard()
    until_in_sync(controller)

    assert ended.watch.jobs(*ended.batches) == before
    assert ended.watch.are_each_trained_once(*ended.batches)


def test_an_edited_template_changes_no_batch(
    ended: Story, controller: Controller, upsets: Upsets
) -> None:
    if not isinstance(upsets, ArgoCDUpsets):
        pytest.skip("skipped: Flux has no template; each batch's Kustomization lies in git")
    before = ended.watch.jobs(*ended.batches)

    with upsets.edited_template(EDITED):
        controller.look()
        until_in_sync(controller)
        templates = [upsets.kept(batch) for batch in ended.batches]

    assert not [template for template in templates if "edited" in template["metadata"]["labels"]]
    assert ended.watch.jobs(*ended.batches) == before


def test_an_object_of_a_batch_that_is_made_anew_trains_nothing(ended: Story, controller: Controller) -> None:
    before = ended.watch.jobs(*ended.batches)

    for batch in ended.batches:
        controller.forget(batch)
    controller.look()
    ended.until_ended_again(before)

    assert all(ALREADY in words for words in ended.words())
    assert ended.watch.are_each_trained_once(*ended.batches)


def test_everything_made_anew_at_once_trains_nothing(ended: Story, upsets: Upsets) -> None:
    before = ended.watch.jobs(*ended.batches)

    upsets.remake()
    ended.until_ended_again(before)

    assert all(ALREADY in words for words in ended.words())
    assert ended.watch.are_each_trained_once(*ended.batches)


def test_deleted_jobs_train_nothing_again(
    ended: Story, controller: Controller, upsets: Upsets
) -> None:
    before = ended.watch.jobs(*ended.batches)

    for batch, cascade in zip(ended.batches, ("background", "foreground", "background"), strict=True):
        ended.watch.delete(batch, cascade)
    ended.watch.until_gone(*ended.batches)
    upsets.look_hard()

    def are_missed() -> bool:
        differences = controller.differences()
        return all("OutOfSync" in differences.get(batch.name, "") for batch in ended.batches)

    if isinstance(upsets, ArgoCDUpsets):  # it says so, and leaves it to a person
        until("Argo CD misses the Jobs", are_missed, seconds=PATIENCE)
        assert not ended.watch.jobs(*ended.batches)
    else:
        ended.until_ended_again(before)
        assert all(ALREADY in words for words in ended.words())
    assert ended.watch.are_each_trained_once(*ended.batches)


def test_what_ended_is_recorded_exactly_once_whatever_came_between(recorded: Story, team: Team) -> None:
    assert recorded.commits() == [1, 1, 1]
    for batch in recorded.batches:
        assert [row["status"] for row in team.summary(batch.sweep)] == ["ok"] * len(team.records(batch))
        assert len({record["trial"] for record in team.records(batch)}) == len(team.records(batch))
    recorded.watch.until_gone(*recorded.batches)


def test_records_stay_away(
    recorded: Story, team: Team, controller: Controller, upsets: Upsets
) -> None:
    recorded.watch.until_gone(*recorded.batches)

    controller.restart()
    team.pull()
    team.write("notes.md", "Nothing that a batch reads, again.\n")
    commit = team.commit("Note something else")
    upsets.look_hard()
    upsets.remake()
    controller.look()

    until_in_sync(controller)
    assert not controller.objects() & {batch.name for batch in recorded.batches}
    assert recorded.watch.jobs(*recorded.batches) == {}
    assert recorded.watch.collect() == commit


def test_a_recorded_batch_trains_nothing(
    recorded: Story, controller: Controller, upsets: Upsets
) -> None:
    first = recorded.batches[0]
    tip = recorded.watch.collect()

    with upsets.applied(recorded.kept):
        until("its path is missed", lambda: controller.trouble(first), seconds=PATIENCE)
        assert recorded.watch.jobs(first) == {}
    with upsets.followed(recorded.kept, recorded.commit):
        recorded.watch.until_ended(first)
        words = recorded.watch.outputs(first)
        assert recorded.watch.collect() == tip
    controller.look()

    assert len(words) == 2
    assert all(ALREADY in word for word in words.values())
    recorded.watch.until_gone(*recorded.batches)
    assert recorded.watch.are_each_trained_once(*recorded.batches)
    assert recorded.commits() == [1, 1, 1]


@pytest.mark.full
def test_a_restored_store_rests(
    ground: Ground, team: Team, controller: Controller, upsets: Upsets
) -> None:
    watch, backup = Watch(team, ground.storage.results), ground.machine.folder / "backup"
    watch.write_spec("restored", 4, seconds=15, shape="indexed", parallelism=2)
    (batch,) = team.merge_specs("restored")
    watch.until_running(batch)
    ground.machine.plane.back_up(backup)
    watch.until_ended(batch)
    team.until_recorded(batch)
    watch.until_gone(batch)

    upsets.stop()
    restored(ground.machine, backup)
    watch.until_ended(batch)
    words = watch.outputs(batch)
    tell("restored", containers_ran=watch.seconds(batch))
    tip = watch.collect()
    controller.restart()
    controller.look()
    watch.until_gone(batch)

    trained = {uid for pods in watch.trainings(batch).values() for uid in pods}
    assert watch.are_each_trained_once(batch)
    assert len(words) == 4
    assert all(ALREADY in item for uid, item in words.items() if uid not in trained)
    assert len(team.results_commits(batch)) == 1
    assert watch.collect() == tip
    until_in_sync(controller)
