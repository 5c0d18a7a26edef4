"""Each fault of the git server, suffered by real git clients: it does what it says, and is counted."""

import importlib
import threading
import time
from pathlib import Path

import pytest

from sweepledger.errors import ContentionError, RepositoryError
from sweepledger.repo.git.commit import Change
from sweepledger.repo.git.remote import LOST_RACE, publish
from sweepledger.repo.git.repository import Repository
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import COLLECTOR, DEV, REPOSITORY, Clone, head, until
from tests.cluster.forge_faults import Cutting, Down, Failing, Fault, Hanging, Racing, Refusing, Scope


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


def test_the_publisher_of_this_project_wins_after_ten_races(
    forge: Forge, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By its name in the package it is a function.
    monkeypatch.setattr(importlib.import_module("sweepledger.repo.git.remote"), "LONGEST_PAUSE_SECONDS", 0.01)
    forge.faults(Fault(Racing(), times=10, by=DEV))
    change = Change("results(peak): 1/1 trials", writes={"results/peak/summary.csv": b"trial\n"})

    made = publish(Repository(clone.root), "origin", "main", lambda _: change)

    assert head(forge) == made
    assert forge.fault_counts()["racing"] == 10
    assert forge.updates(DEV)[1:] == (made,), "recorded once"
    assert forge.git(REPOSITORY, "rev-list", "--count", "main") == "12"


def test_a_publisher_without_time_gives_up_the_race(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Racing()))
    change = Change("results", writes={"results/a": b"a"})

    with pytest.raises(ContentionError):
        publish(Repository(clone.root), "origin", "main", lambda _: change, budget=0)


def test_a_race_meets_only_whom_it_is_meant_for(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Racing(), by=COLLECTOR))
    clone.commit("a", "a\n")
    assert clone.push() == ""

    clone.speak_as(COLLECTOR)
    clone.commit("b", "b\n")
    assert "remote rejected" in clone.push()

    assert forge.fault_counts()["racing"] == 1


def test_a_new_branch_has_no_rival(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Racing(), times=1))

    assert clone.push("main:refs/heads/other") == ""

    assert forge.fault_counts()["racing"] == 0


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


def test_a_publisher_that_is_refused_says_so_at_once(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Refusing("no"), times=1))

    with pytest.raises(RepositoryError, match="remote: no"):
        publish(Repository(clone.root), "origin", "main", lambda _: Change("m", writes={"a": b"a"}))

    assert forge.fault_counts()["refusing"] == 1


@pytest.mark.parametrize("scope", ["everything", "pushes", "sending"])
def test_a_failing_server_answers_with_its_status(forge: Forge, clone: Clone, scope: Scope) -> None:
    forge.faults(Fault(Failing(502, on=scope)))
    clone.commit("a", "a\n")

    fetched = clone.git("fetch", check=False)
    message = clone.push()

    assert ("502" in fetched.stderr) == (scope == "everything")
    assert "502" in message
    assert forge.requests()[-1].step == ("sending" if scope == "sending" else "asking")
    assert forge.fault_counts()["failing"] == (2 if scope == "everything" else 1)
    forge.faults()
    assert clone.push() == ""


def test_a_server_that_is_down_closes_connections_until_it_is_up(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Down()))
    clone.commit("a", "a\n")

    message = clone.push()

    assert "unable to access" in message
    assert forge.fault_counts()["down"] == 1
    assert forge.requests()[-1].status == 0
    forge.faults()
    assert clone.push() == ""


def test_a_server_that_is_stopped_refuses_connections_and_comes_back_with_all_it_had(
    forge: Forge, clone: Clone
) -> None:
    forge.faults(Fault(Refusing("no"), times=2))
    made = clone.commit("a", "a\n")
    assert "remote: no" in clone.push()

    forge.stop()
    assert "Failed to connect" in clone.push()
    forge.resume()

    assert "remote: no" in clone.push(), "what is still owed is done after a restart"
    assert clone.push() == ""
    assert head(forge) == made
    assert forge.fault_counts()["refusing"] == 2


def test_a_hanging_server_says_nothing_for_its_time_and_then_closes(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Hanging(1.5, on="sending"), times=1))
    before = head(forge)
    clone.commit("a", "a\n")
    began = time.monotonic()

    message = clone.push()

    assert message
    assert time.monotonic() - began >= 1.5
    assert head(forge) == before
    assert forge.fault_counts()["hanging"] == 1
    assert clone.push() == ""


def test_who_hangs_is_let_go_when_the_fault_is_lifted(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Hanging(3600)))
    waiting = threading.Thread(target=clone.git, args=("fetch",), kwargs={"check": False})
    waiting.start()
    until(lambda: forge.fault_counts()["hanging"] == 1)

    forge.faults()

    waiting.join(120)
    assert not waiting.is_alive()


def test_a_cut_push_has_succeeded_without_the_client_knowing(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Cutting(), times=1))
    made = clone.commit("a", "a\n")

    message = clone.push()

    assert message
    assert not LOST_RACE.search(message)
    assert head(forge) == made
    assert forge.fault_counts()["cutting"] == 1
    assert clone.push() == "", "up to date"


def test_a_push_that_is_refused_anyway_is_not_cut(forge: Forge, clone: Clone) -> None:
    forge.install_rule(REPOSITORY, "#!/bin/sh\necho not today >&2\nexit 1\n")
    forge.faults(Fault(Cutting(), times=1))
    clone.commit("a", "a\n")

    assert "remote: not today" in clone.push()

    assert forge.fault_counts()["cutting"] == 0


def test_faults_come_one_after_the_other(forge: Forge, clone: Clone) -> None:
    forge.faults(Fault(Racing(), times=1), Fault(Refusing("no"), times=1), Fault(Cutting(), times=1))
    clone.commit("a", "a\n")

    assert LOST_RACE.search(clone.push())
    clone.catch_up()
    assert "remote: no" in clone.push()
    assert clone.push()
    assert clone.push() == ""

    counts = forge.fault_counts()
    assert {kind: number for kind, number in counts.items() if number} == {
        "racing": 1,
        "refusing": 1,
        "cutting": 1,
    }


def test_a_fault_asked_for_again_comes_again(forge: Forge, clone: Clone) -> None:
    clone.commit("a", "a\n")
    for number in (1, 2):
        forge.faults(Fault(Refusing("no"), times=1))
        assert "remote: no" in clone.push()
        assert forge.fault_counts()["refusing"] == number

    assert clone.push() == ""


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
