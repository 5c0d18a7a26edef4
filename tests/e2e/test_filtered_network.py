"""Hazard: on a network that enforces NetworkPolicies trials cannot clone, nothing is recorded, or a trial escapes.

What pods with each label reach is tried in tests/cluster/test_network_policies.py; here it is real trials that try.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import box, connections, kube_router, outside
from tests.cluster.machine import Machine
from tests.e2e.team import Team

pytestmark = pytest.mark.full

INTERNET, METADATA = "198.51.100.9", "169.254.169.254"
HOSTS = (f"tcp:{INTERNET}:443", f"dns:{INTERNET}:53", f"tcp:{METADATA}:80")
FORBIDDEN = (
    *(f"tcp:{INTERNET}:443", f"udp:{INTERNET}:53", f"tcp:{METADATA}:80"),
    *(f"tcp:{box.SERVICE}:443", f"tcp:{box.ADDRESS}:10250"),
)
TRIAL = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--try", choices=["open", "closed"])
begun, count = time.monotonic(), 0
if parser.parse_args().__dict__["try"] == "closed":
    # The firewall learns of a new pod some time after its start.
    while attempt(PLACES[0]) == OPEN and time.monotonic() - begun < SECONDS:
        count += 1
        time.sleep(0.2)
    print(f"{{count}} connections, the last one after {{time.monotonic() - begun:.1f}} s", flush=True)
answers = {{place: attempt(place) for place in PLACES + [GIT]}}
print(answers, flush=True)
reached = [place for place, answer in answers.items() if answer == OPEN]
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({{"score": len(reached), "git": int(GIT in reached), "early": count}}, file)
"""
PROGRAM = Path(connections.__file__).read_text().partition('if __name__ == "__main__":')[0]


@pytest.fixture(scope="module")
def hosts(machine: Machine) -> Iterator[None]:
    """Hosts outside of the cluster that listen."""
    if reason := kube_router.why_not():
        pytest.skip(f"skipped: {reason}")
    outside.start(machine.children, *HOSTS)
    yield
    outside.stop(machine.children)


@pytest.fixture
def firewall(machine: Machine, hosts: None) -> Iterator[None]:
    """A firewall that enforces the policies of the platform."""
    kube_router.start(machine)
    yield
    kube_router.stop(machine)


def test_where_nothing_enforces_the_policies_a_trial_reaches_everything(team: Team, hosts: None) -> None:
    (row,) = _tried(team, "open")

    assert (row["status"], float(row["metrics.score"])) == ("ok", len(FORBIDDEN) + 1)


def test_a_trial_clones_and_reaches_nothing_but_the_git_server(
    team: Team, firewall: None
) -> None:
    (row,) = _tried(team, "closed")

    print(f"connections of a new trial before it was confined: {row['metrics.early']}")
    assert row["status"] == "ok"
    assert (float(row["metrics.score"]), float(row["metrics.git"])) == (1, 1)


def _tried(team: Team, how: str) -> list[dict[str, str]]:
    """Let a trial try, and wait until it is recorded."""
    git = f"tcp:{box.ADDRESS}:{team.forge.port}"
    places = f"PLACES, GIT = {json.dumps(FORBIDDEN)}, {json.dumps(git)}\n"
    team.have_program("code/tries.py", f"{PROGRAM}{places}{TRIAL.format()}")
    name = f"network-{how}"
    command = ("python3", "code/tries.py", "${args}")
    team.write_spec(name, parameters={"try": [how]}, command=command, timeout="10m")
    (batch,) = team.merge_specs(name)
    team.until_recorded(batch)
    return team.summary(name)
