"""The collector against what takes minutes: fifty rivals, a credential that ends, a server that is gone."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.cluster.children import until
from tests.cluster.forge_faults import Fault, Racing
from tests.e2e import collecting, founding, outcomes
from tests.e2e.collecting import Run
from tests.e2e.team import COLLECTOR, COLLECTORS, MINUTE, PASSWORDS, PATIENCE, REPOSITORY, Batch, Team

RACES = 50
MOMENTS = tuple(0.5 * number for number in range(1, 13))
"""Seconds after its first process, which cover a run."""
SECRET = "sweep-git-write"  # noqa: S105 - a name
SIGNER = "sweepledger@localhost"


@pytest.mark.full
def test_losing_the_race_fifty_times_it_wins_the_next_within_its_time(team: Team, by_hand: None) -> None:
    (batch,) = outcomes.trained(team, {"outrun": (0.0, 1.0)})
    before = team.forge.fault_counts()["racing"]
    team.forge.faults(Fault(Racing(), times=RACES, by=COLLECTOR))
    began = time.monotonic()

    ended = Run.start(team).ended(seconds=20 * MINUTE)

    print(f"lost {RACES} races and won after {time.monotonic() - began:.0f} s")
    assert (ended.code, team.forge.fault_counts()["racing"] - before) == (0, RACES)
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


@pytest.mark.full
def test_killed_at_twelve_moments_in_turn_it_records_each_batch_once(team: Team, by_hand: None) -> None:
    scores = {"moments": (0.0, 0.5), "moments-later": (1.0, 1.5)}
    first, second = outcomes.trained(team, scores, packed={"moments-later"})

    for moment in MOMENTS:
        run = Run.start(team)
        run.until_it("runs", bool)
        time.sleep(moment)
        print(f"killed after {moment} s:", sorted(" ".join(argv[:2]) for argv in run.processes().values()))
        run.kill()
    ended = Run.start(team).ended()

    assert ended.code == 0
    outcomes.is_recorded_once(team, first, 0.0, 0.5)
    outcomes.is_recorded_once(team, second, 1.0, 1.5)


@pytest.mark.full
def test_a_revoked_credential_is_named_and_the_next_one_records(team: Team, by_hand: None) -> None:
    (batch,) = outcomes.trained(team, {"revoked": (0.0, 1.0)})
    run = Run.start(team)
    run.until_it("asks the cluster", collecting.is_asking_the_cluster)
    team.forge.revoke(COLLECTOR)

    revoked = run.ended()
    with _password(team, "another-of-a-test"):
        ended = Run.start(team).ended()

    print(revoked.message)
    assert revoked.code == 3
    assert "Authentication failed" in revoked.message
    assert PASSWORDS[COLLECTOR] not in revoked.log
    assert ended.code == 0
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


@pytest.mark.full
def test_with_the_server_gone_for_a_minute_a_run_says_so_and_a_later_one_records(team: Team) -> None:
    team.write_spec("offline", parameters={"x": [0.0, 1.0], "seconds": [15]})
    (batch,) = team.merge_specs("offline")
    until("it runs", lambda: _is_training(team, batch), seconds=PATIENCE, pause=0.5)
    url = team.forge.url(REPOSITORY)
    team.forge.stop()
    began = time.monotonic()

    try:
        until("a run says so", lambda: url in _complaints(team), seconds=PATIENCE, pause=1)
        message = _complaints(team)
        time.sleep(max(0.0, MINUTE - (time.monotonic() - began)))
    finally:
        team.forge.resume()
    print(f"the server was gone for {time.monotonic() - began:.0f} s\n{message}")
    team.until_recorded(batch)

    assert f"unable to access '{url}" in message
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


@pytest.mark.full
def test_where_a_person_merges_the_collector_signs_a_branch_that_passes(team: Team) -> None:
    with _reviewed(team):
        (batch,) = outcomes.trained(team, {"reviewed": (0.0, 1.0)})
        folder = "results/reviewed"
        until("the branch is there", lambda: _commit(team, folder), seconds=PATIENCE, pause=1)
        proposed = _commit(team, folder)
        again = Run.start(team).ended()
        team.git("fetch", "-q", "origin", proposed)
        by_itself = _push(team, f"{proposed}:refs/heads/main")

        assert (again.code, _commit(team, folder)) == (0, proposed)
        assert "the collector may push nothing but results" in by_itself
        assert not team.is_recorded(batch)
        team.git("checkout", "-q", "-b", "review", proposed)
        team.sweep("check", "--base", "origin/main")
        team.merge()
        outcomes.is_recorded_once(team, batch, 0.0, 1.0)
        after = Run.start(team).ended()

        left = _commit(team, folder)

    assert (after.code, after.log, left) == (0, "nothing to record\n", "")
    assert team.forge.updates(COLLECTOR).count(proposed) == 1


@contextmanager
def _password(team: Team, password: str) -> Iterator[None]:
    """Give the collector another password, on the server and in its Secret."""
    was = PASSWORDS[COLLECTOR]
    try:
        team.forge.user(COLLECTOR, password, may_write=True)
        _keep(team, password=password)
        yield
    finally:
        team.forge.user(COLLECTOR, was, may_write=True)
        _keep(team, password=was)


def _keep(team: Team, **values: str) -> None:
    """Change what the collector's Secret holds."""
    change = json.dumps({"stringData": values})
    where = (f"--namespace={COLLECTORS}", "--type=merge", "--patch", change)
    team.server.kubectl("patch", "secret", SECRET, *where)


@contextmanager
def _reviewed(team: Team) -> Iterator[None]:
    """Let a person merge results: by settings, platform, key and rule, as the docs say; and back again."""
    key = founding.signing_key(team)
    settings = team.root / "sweepledger.yaml"
    was = settings.read_text()
    signers = yaml.safe_dump({"signers": [f"{SIGNER} {key.with_suffix('.pub').read_text().strip()}"]})
    try:
        settings.write_text(was + signers)
        _bootstrap(team, "branch")
        yield
    finally:
        team.git("checkout", "-q", "main")
        team.pull()
        settings.write_text(was)
        _bootstrap(team, "push")


def _bootstrap(team: Team, mode: str) -> None:
    """Write the platform anew, merge it, apply it, and put its rule in force."""
    url = team.forge.url(REPOSITORY)
    team.sweep(
        "cluster", "bootstrap", team.controller, "--repo", url, "--branch", "main", "--results-mode", mode
    )
    team.commit(f"Let results come by {mode}")
    team.apply_platform()
    team.forge.install_rule(REPOSITORY, (team.root / "clusters/pre-receive.sh").read_text())


def _commit(team: Team, folder: str) -> str:
    """Give the commit of the one branch of the server below a folder; empty where there is none."""
    return team.forge.git(REPOSITORY, "for-each-ref", "--format=%(objectname)", f"refs/heads/{folder}")


def _push(team: Team, ref: str) -> str:
    """Push with the collector's credential; give what git says."""
    url = team.forge.url(REPOSITORY, user=COLLECTOR)
    return team.run(["git", "push", "--porcelain", url, ref], check=False).stderr


def _is_training(team: Team, batch: Batch) -> bool:
    """Tell whether both trials of a batch have begun."""
    phases = [pod["status"]["phase"] for pod in team.pods(batch)]
    return len(phases) == 2 and set(phases) <= {"Running", "Succeeded"}


def _complaints(team: Team) -> str:
    """Give what the last runs of the collector left as their last words, where they failed."""
    completed = team.server.kubectl("get", "pods", f"--namespace={COLLECTORS}", "--output=json")
    return "\n".join(
        item["state"]["terminated"].get("message", "")
        for pod in json.loads(completed.stdout)["items"]
        for item in pod["status"].get("initContainerStatuses", ())
        if item["state"].get("terminated", {}).get("exitCode")
    )
