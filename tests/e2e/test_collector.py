"""The collector against what happens to it: whatever it is, each batch is recorded once, and rightly."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster.children import until
from tests.cluster.forge_faults import Cutting, Fault, Hanging, Racing, Refusing
from tests.e2e import collecting, outcomes
from tests.e2e.collecting import Argv, Reading, Run
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.gates import gate
from tests.e2e.memory import peaks
from tests.e2e.team import COLLECTOR, NAMESPACE, Team
from tests.e2e.watching import Watch

pytestmark = pytest.mark.usefixtures("by_hand")

LONG = 600.0
SECONDS = 300.0
KILLED = 137
POLICY = "the results of a Friday are not wanted"
RACES = 4
NOTHING = "nothing to record\n"
CLONING, ASKING, SENDING = Hanging(LONG), Hanging(LONG, on="pushes"), Hanging(LONG, on="sending")
"""How far the server lets it go, and holds it."""


def killed_when_it(
    team: Team, what: str, step: Callable[[Sequence[Argv]], bool], bound: Hanging, *, is_held: bool = True
) -> Run:
    """Kill a run at a step; `bound`: how far the server lets it go at most, `is_held`: it has come there."""
    forge = team.forge
    before = forge.fault_counts()["hanging"]
    forge.faults(Fault(bound))
    run = Run.start(team)
    run.until_it(what, step)
    if is_held:
        until("the server holds it", lambda: forge.fault_counts()["hanging"] > before, seconds=SECONDS)
    run.kill()
    forge.faults()
    return run


def killed_before_it_is_taken(team: Team, record: Path) -> list[Run]:
    """Kill runs at all steps up to the server's own."""
    cloning = killed_when_it(team, "clones", collecting.is_cloning, CLONING)
    asking = killed_when_it(team, "asks", collecting.is_asking_the_cluster, ASKING, is_held=False)
    with closing(Reading(record)) as reading:  # not before: the run above may have read it, too
        reads = killed_when_it(team, "reads", reading, ASKING, is_held=False)
    asking_to_push = killed_when_it(team, "asks to push", collecting.is_pushing, ASKING)
    pushing = killed_when_it(team, "pushes", collecting.is_pushing, SENDING)
    return [cloning, asking, reads, asking_to_push, pushing]


def test_killed_at_any_step_it_records_each_batch_once(team: Team, ground: Ground) -> None:
    scores = {"killed": (0.0, 0.5), "killed-later": (1.0, 1.5)}
    first, second = outcomes.trained(team, scores, packed={"killed-later"})
    record = next((ground.storage.results / first.name).glob("0/*.json"))

    early = killed_before_it_is_taken(team, record)
    assert not team.is_recorded(first)
    assert not team.is_recorded(second)
    with gate(team.forge, "post-receive") as answer:
        between = Run.start(team)
        until("the server has taken the first", lambda: answer.waiting, seconds=SECONDS)
        between.kill()
    until("the first is recorded", lambda: team.is_recorded(first), seconds=SECONDS)
    assert not team.is_recorded(second)
    late = Run.start(team)
    until("the second is recorded", lambda: team.is_recorded(second), seconds=SECONDS, pause=0.05)
    late.kill()
    last = Run.start(team).ended()

    assert [run.ended().code for run in (*early, between)] == [KILLED] * 6
    assert (last.code, last.log) == (0, NOTHING)
    outcomes.is_recorded_once(team, first, 0.0, 0.5)
    outcomes.is_recorded_once(team, second, 1.0, 1.5)


def test_started_twice_at_once_one_of_them_records_and_the_other_finds_nothing_left(team: Team) -> None:
    (batch,) = outcomes.trained(team, {"twice": (0.0, 1.0)}, packed={"twice"})

    with gate(team.forge, "pre-receive") as server:
        runs = [Run.start(team) for _ in range(2)]
        until("both push at once", lambda: server.waiting == len(runs), seconds=SECONDS)
        server.open()
        ended = [run.ended() for run in runs]

    assert [result.code for result in ended] == [0, 0]
    assert sum(result.log == NOTHING for result in ended) == 1
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_refused_once_it_ends_with_the_servers_words_and_the_next_run_wins_against_rivals(team: Team) -> None:
    (batch,) = outcomes.trained(team, {"refused": (0.0, 1.0)})
    team.forge.faults(
        Fault(Refusing(POLICY), times=1, by=COLLECTOR), Fault(Racing(), times=RACES, by=COLLECTOR)
    )
    already = len(pushes(team))

    refused = Run.start(team).ended()
    began = time.monotonic()
    won = Run.start(team)
    measured = peaks(won)
    ended = won.ended()

    print(f"lost {RACES} races and won after {time.monotonic() - began:.0f} s")
    print(*(f"{name}: {peak}" for name, peak in measured.items()), sep="\n")
    assert (refused.code, ended.code) == (3, 0)
    assert POLICY in refused.message
    assert pushes(team)[already:] == ["refusing", *["racing"] * RACES, ""]
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_whoever_does_not_hear_that_his_push_was_taken_records_nothing_twice(team: Team) -> None:
    (batch,) = outcomes.trained(team, {"unheard": (0.0, 1.0)}, packed={"unheard"})
    team.forge.faults(Fault(Cutting(), times=1, by=COLLECTOR))

    unheard = Run.start(team).ended()
    again = Run.start(team).ended()

    assert (unheard.code, unheard.log.count("recorded")) == (0, 1)
    assert (again.code, again.log) == (0, NOTHING)
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_records_after_the_end_of_their_job_are_waited_for(team: Team, ground: Ground) -> None:
    batch, late = outcomes.trained(team, {"told": (0.0, 1.0), "late": (2.0, 3.0)}, packed={"late"})
    pods = f"--selector=sweepledger.dev/batch={late.name}"
    team.server.kubectl("delete", "pods", f"--namespace={NAMESPACE}", pods)

    with outcomes.out_of_sight(ground.storage.results, batch, late):
        waiting = Run.start(team).ended()
    ended = Run.start(team).ended()

    assert f"recorded {batch.name} " in waiting.log
    assert f"{late.name}: waiting: " in waiting.log
    assert f"recorded {late.name} " in ended.log
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)
    outcomes.is_recorded_once(team, late, 2.0, 3.0)


def test_a_job_deleted_by_hand_ends_or_stalls(team: Team, controller: Controller, ground: Ground) -> None:
    team.write_spec("deleted-late", parameters={"x": [0.0, 1.0]})
    team.write_spec("deleted-early", parameters={"x": [2.0], "seconds": [0, 40]})
    late, early = team.merge_specs("deleted-late", "deleted-early")
    watch = Watch(team, ground.storage.results)
    left = watch.results / early.name
    until("one trial of this one has ended", lambda: list(left.glob("*/*.json")), seconds=SECONDS)
    watch.delete(early)
    outcomes.until_trained(team, late)
    watch.delete(late)
    watch.until_gone(early, late)

    seen = Run.start(team).ended()
    outcomes.apply_again(team, controller, early)
    outcomes.until_trained(team, early)
    ended = Run.start(team).ended()

    assert f"recorded {late.name} " in seen.log
    assert f"{early.name}: stalled: " in seen.log
    assert f"recorded {early.name} " in ended.log
    outcomes.is_recorded_once(team, late, 0.0, 1.0)
    outcomes.is_recorded_once(team, early, 2.0, 2.0)


def pushes(team: Team) -> list[str]:
    """Name the troubles that the collector's pushes met, empty where there was none."""
    return [
        request.trouble
        for request in team.forge.requests()
        if request.user == COLLECTOR and request.step == "sending"
    ]
