"""What keeps trials from running, planted cause by cause: `sweep why` names each, with the message and a way out."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e import collecting, gates, outcomes
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.team import NAMESPACE, PATIENCE, Team
from tests.e2e.test_broken_overlay import BREAKS, end_the_tries
from tests.e2e.test_endings import nowhere
from tests.manifests import manifest

pytestmark = pytest.mark.full

LONG: Mapping[str, Any] = {"timeout": "1h", "retries": 0}
FAILS_ONCE = "code/fails_once.py"
FAILS_ONCE_PROGRAM = '''"""A trial whose first attempt fails, and whose second one takes long."""
import os, sys, time
mark = os.path.join(os.environ["SWEEP_CHECKPOINTS"], "tried")
if not os.path.exists(mark):
    open(mark, "w").close()
    sys.exit(1)
time.sleep(3600)
'''
SETTINGS = "secrets:\n  absent: {secret: absent, key: token, variable: TOKEN}\n"
QUOTA = manifest("ResourceQuota", "one-gpu", NAMESPACE, spec={"hard": {"requests.nvidia.com/gpu": "1"}})

Causes = Mapping[str, int]


@dataclass(frozen=True)
class Explanation:
    """What `sweep why` says of a sweep or a trial."""

    causes: Causes
    """Trials by cause."""
    text: str
    remedies: str

    @classmethod
    def of(cls, team: Team, reference: str) -> "Explanation":
        """Ask in the clone of a person, who may read the cluster."""
        data: dict[str, Any] = json.loads(team.sweep("why", reference, "--format", "json").stdout)["data"]
        groups = [group for batch in data["batches"] for group in batch["causes"]]
        counts: dict[str, int] = {}
        for group in groups:
            counts[group["cause"]] = counts.get(group["cause"], 0) + group["count"]
        says, remedies = (" | ".join(str(group[key]) for group in groups) for key in ("message", "remedy"))
        return cls(counts, says, remedies)


@dataclass(frozen=True)
class Plant:
    """A cause: what is planted, and what is to be said."""

    causes: Causes
    says: str
    remedy: str
    run: Mapping[str, Any] = field(default_factory=lambda: LONG)
    values: Mapping[str, list[float]] = field(default_factory=lambda: ONE)
    command: tuple[str, ...] = ("python3", "code/work.py", "${args}")


HOUR: Mapping[str, list[float]] = {"x": [1], "seconds": [3600]}
ONE: Mapping[str, list[float]] = {"x": [1]}


def gpus(count: int) -> dict[str, Any]:
    return {**LONG, "resources": {"cpu": "100m", "memory": "128Mi", "gpu": count}}


PLANTS: Mapping[str, Plant] = {
    "why-turn": Plant(
        {"running": 2, "turn": 1},
        says="which is its parallelism",
        remedy="raise `run.parallelism`",
        run={**LONG, "parallelism": 2},
        values={**HOUR, "x": [1, 2, 3]},
    ),
    "why-retry": Plant(
        {"retrying": 1},
        says="exit code 1",
        remedy="",
        run={**LONG, "retries": 1},
        command=("python3", FAILS_ONCE),
    ),
    "why-image": Plant({"image": 1}, says="ImagePull", remedy=""),
    "why-secret": Plant(
        {"volume": 1},
        says='secret "absent" not found',
        remedy="`sweep cluster doctor`",
        run={**LONG, "secrets": ["absent"]},
    ),
    "why-gpu": Plant(
        {"unschedulable": 1}, says="Insufficient nvidia.com/gpu", remedy="wait for nodes", run=gpus(1)
    ),
    "why-gpus": Plant(
        {"quota": 1}, says="exceeded quota: one-gpu", remedy="ask the platform team", run=gpus(2)
    ),
    "why-held": Plant({"suspended": 1}, says="no queue holds it", remedy="kubectl", values=HOUR),
    "no-build": Plant({"not-synced": 1}, says="not-there.yaml", remedy=""),
    "no-digest": Plant({"refused": 1}, says="images are named by digest", remedy=""),
}


@pytest.fixture(scope="module")
def planted(team: Team, controller: Controller) -> Iterator[Team]:
    """Merge all plants at once, so that all of it costs one wait."""
    team.pull()
    team.write("sweepledger.yaml", (team.root / "sweepledger.yaml").read_text() + SETTINGS)
    team.write(FAILS_ONCE, FAILS_ONCE_PROGRAM)
    team.sweep("cluster", "bootstrap", team.controller)
    team.commit("Name a Secret that is not there")
    team.apply_platform()
    team.server.apply(QUOTA)
    for name, plant in PLANTS.items():
        image = {"image": nowhere(team)} if name == "why-image" else {}
        team.write_spec(name, parameters=plant.values, command=plant.command, **plant.run, **image)
    team.propose(*PLANTS)
    for name in set(PLANTS) & set(BREAKS):
        BREAKS[name][0](team.batch(name))
    team.git("add", "--all")
    team.git("commit", "-q", "--amend", "--no-edit")
    team.merge()
    batches = tuple(team.batch(name) for name in PLANTS)
    held = team.batch("why-held")
    until("its Job is there", lambda: team.jobs(held), seconds=PATIENCE)
    (job,) = team.jobs(held)
    where = (job["metadata"]["name"], f"--namespace={NAMESPACE}")
    team.server.kubectl("patch", "job", *where, "--type=merge", "--patch", '{"spec": {"suspend": true}}')
    try:
        yield team
    finally:
        team.pull()
        for name in PLANTS:
            team.sweep("cancel", name)
        team.push()
        if team.controller == "argocd":
            end_the_tries(team, (team.batch(name, "archive") for name in set(PLANTS) & set(BREAKS)))
        for batch in batches:
            team.until_recorded(batch)
        team.server.kubectl("delete", "resourcequota", "one-gpu", f"--namespace={NAMESPACE}")


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_cause_is_named_with_its_message_and_a_way_out(planted: Team, name: str) -> None:
    plant = PLANTS[name]
    until_explained(planted, name, lambda found: found.causes == plant.causes and plant.says in found.text)
    found = Explanation.of(planted, name)

    assert found.causes == plant.causes
    assert plant.says in found.text
    assert plant.remedy in found.remedies
    print(f"{name}: {found.text}", flush=True)


def test_the_status_shows_the_same_causes_beside_its_sweeps(planted: Team) -> None:
    found = json.loads(planted.sweep("status", "--cluster", "--format", "json").stdout)["data"]

    remarks = {sweep["name"]: json.dumps(sweep["remarks"], ensure_ascii=False) for sweep in found["sweeps"]}
    for name in ("why-image", "why-secret", "why-gpu", "why-gpus", "why-held", "no-build", "no-digest"):
        assert json.dumps(PLANTS[name].says)[1:-1] in remarks[name], remarks[name]


def test_before_the_merge_git_alone_says_what_is_missing(team: Team) -> None:
    team.pull()
    found = {}
    team.write_spec("why-new", parameters={"x": [1]})
    found["not-generated"] = Explanation.of(team, "why-new")
    team.propose("why-new")
    found["not-merged"] = Explanation.of(team, "why-new")
    team.git("checkout", "-q", "main")
    team.write("sweeps/why-bad.yaml", "name: why-bad\nmethod: guess\n")
    found["spec-invalid"] = Explanation.of(team, "why-bad")
    (team.root / "sweeps/why-bad.yaml").unlink()

    assert {cause: set(one.causes) for cause, one in found.items()} == {cause: {cause} for cause in found}


def test_after_its_end_a_trial_waits_for_the_collector(team: Team, ground: Ground) -> None:
    team.pull()
    with collecting.only_by_hand(team):
        team.write_spec("why-late", parameters={"x": [1], "code": [0, 7]}, retries=0)
        (batch,) = team.merge_specs("why-late")
        outcomes.until_trained(team, batch)
        suspended = Explanation.of(team, "why-late")
        team.git("fetch", "-q", "origin")
    with gates.gate(ground.forge, "pre-receive"):
        due = Explanation.of(team, "why-late")
    team.until_recorded(batch)
    rows = {row["status"]: row["trial"] for row in team.summary("why-late")}
    ended = {status: Explanation.of(team, trial) for status, trial in rows.items()}

    assert suspended.causes == {"collector-failing": 2}
    assert "the collector is suspended" in suspended.text
    assert due.causes == {"collector-due": 2}
    assert {status: set(one.causes) for status, one in ended.items()} == {
        "ok": {"recorded"},
        "failed": {"failed"},
    }


def test_a_cancelled_batch_says_so_until_it_is_recorded(team: Team) -> None:
    team.pull()
    team.write_spec("why-gone", parameters={"x": [1], "seconds": [3600]}, **LONG)
    (batch,) = team.merge_specs("why-gone")
    until(
        "it runs",
        lambda: Explanation.of(team, "why-gone").causes == {"running": 1},
        seconds=PATIENCE,
        pause=2,
    )
    team.pull()
    team.sweep("cancel", "why-gone")

    team.push()

    assert Explanation.of(team, "why-gone").causes == {"cancelled": 1}
    team.until_recorded(batch)
    assert Explanation.of(team, "why-gone").causes == {"recorded": 1}


def until_explained(team: Team, name: str, is_right: Callable[[Explanation], bool]) -> None:
    """Wait until the cluster has come to what was planted."""
    until(f"the cause of {name}", lambda: is_right(Explanation.of(team, name)), seconds=PATIENCE, pause=3)
