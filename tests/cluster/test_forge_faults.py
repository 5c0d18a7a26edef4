"""What real git clients say of lost races, refusals and cut answers, by which the publisher tells them apart."""

import threading
from pathlib import Path

import pytest

from sweepledger.repo.git.commit import Change
from sweepledger.repo.git.remote import LOST_RACE, publish
from sweepledger.repo.git.repository import Repository
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import DEV, REPOSITORY, Clone, head
from tests.cluster.forge_faults import Cutting, Fault, Racing, Refusing


@pytest.mark.parametrize("trouble", [Racing("asking"), Racing("sending")], ids=["asking", "sending"])
def test_a_racing_push_loses_for_real_as_often_as_asked_for(
    forge: Forge, clone: Clone, trouble: Racing
) -> None:
    forge.faults(Fault(trouble, times=2))
    mine = clone.commit("a", "a\n")

    for _ in range(2):
        message = clone.push()
        assert LOST_RACE.search(message), message
        clone.catch_up()
    assert clone.push() == ""

    assert forge.fault_counts()["racing"] == 2
    history = forge.git(REPOSITORY, "log", "--format=%an", "main").split()
    assert history == ["Test", "Rival", "Rival", "Test"]
    assert head(forge) != mine


def test_a_push_is_refused_by_policy_with_a_message(forge: Forge, clone: Clone) -> None:
    before = head(forge)
    forge.faults(Fault(Refusing("commits on Fridays are not allowed"), times=1))
    clone.commit("a", "a\n")

    message = clone.push()

    assert "remote: commits on Fridays are not allowed" in message
    assert "[remote rejected] (pre-receive hook declined)" in message
    assert not LOST_RACE.search(message)
    assert head(forge) == before
    assert clone.push() == ""
    assert forge.fault_counts()["refusing"] == 1


def test_a_cut_push_has_succeeded_without_the_client_knowing(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Cutting(), times=1))
    made = clone.commit("a", "a\n")

    message = clone.push()

    assert message
    assert not LOST_RACE.search(message)
    assert head(forge) == made
    assert forge.fault_counts()["cutting"] == 1
    assert clone.push() == "", "up to date"


def test_of_several_who_push_at_once_each_gets_through(forge: Forge, clone: Clone, tmp_path: Path) -> None:
    others = [clone, *(Clone.of(forge, tmp_path / f"other{number}", DEV) for number in range(3))]
    repositories = [Repository(other.root) for other in others]

    def publish_from(number: int) -> None:
        change = Change(f"results {number}", writes={f"results/{number}": b"x"})
        publish(repositories[number], "origin", "main", lambda _: change)

    threads = [threading.Thread(target=publish_from, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert forge.git(REPOSITORY, "rev-list", "--count", "main") == "5"
    assert len(forge.updates(DEV)) == 5
