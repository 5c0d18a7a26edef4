"""Hazard: sweeps merged together, in quick succession, while others run, one cancelled: each runs once.

At least once is what a cluster can promise; here no node is lost, and so it is once.
"""

from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.team import Team
from tests.e2e.watching import Watch, tell


def test_every_merged_sweep_is_trained_once(
    ground: Ground, team: Team, controller: Controller
) -> None:
    watch = Watch(team, ground.storage.results)
    watch.write_spec("brief", 2)
    watch.write_spec("lasting", 2, seconds=600, timeout="15m")
    brief, lasting = team.merge_specs("brief", "lasting")
    watch.write_spec("successor", 4, shape="indexed", parallelism=2)
    (successor,) = team.merge_specs("successor")
    watch.until_each_trains(lasting)
    watch.write_spec("late", 3)
    (late,) = team.merge_specs("late")
    watch.until_over(brief)
    watch.collect()
    team.until_recorded(brief)
    running = watch.jobs(lasting)
    team.sweep("cancel", lasting.sweep)
    team.push()
    watch.until_gone(lasting)
    watch.until_over(successor, late)
    watch.collect()
    everything = (brief, lasting, successor, late)
    for batch in everything:
        team.until_recorded(batch)

    tell("trainings", by_trial={trial: len(pods) for trial, pods in watch.trainings(*everything).items()})
    assert len(running) == 2
    assert watch.are_each_trained_once(*everything)
    assert [len(team.results_commits(batch)) for batch in everything] == [1, 1, 1, 1]
    statuses = {batch.sweep: {row["status"] for row in team.summary(batch.sweep)} for batch in everything}
    assert statuses == {"brief": {"ok"}, "lasting": {"cancelled"}, "successor": {"ok"}, "late": {"ok"}}
    watch.until_gone(*everything)
    until_in_sync(controller, *everything)
