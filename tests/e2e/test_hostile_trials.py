"""What a trial must not is contained and recorded, and others are unharmed; without the rule it succeeds."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e.founding import Ground
from tests.e2e.team import Batch, Team
from tests.manifests import bound_to_account, manifest

SCRIPT = (Path(__file__).parent / "hostile.py").read_text()
COMMAND = ("python3", "code/hostile.py", "${args}")
UNCONFINED = "unconfined"
MOST_PROCESSES = 512


@pytest.fixture(scope="module")
def hostile(team: Team) -> None:
    """Commit the script to the team's code."""
    team.pull()
    team.write("code/hostile.py", SCRIPT)
    team.commit("Add a script that nobody should trust")


@pytest.fixture(scope="module")
def unconfined(team: Team) -> str:
    """A namespace without any of the platform's rules: what is denied to trials is allowed there."""
    team.server.apply(manifest("Namespace", UNCONFINED))
    team.server.apply(manifest("ConfigMap", "script", UNCONFINED, data={"hostile.py": SCRIPT}))
    return UNCONFINED


def test_each_attempt_of_a_trial_is_contained_and_recorded(team: Team, hostile: None) -> None:
    attempts = ["forge", "honest", "token", "api", "outside", "fork"]
    # Forking, it meets no other limit first.
    resources = {"cpu": "100m", "memory": "768Mi", "scratch": "16Mi"}
    run = {"resources": resources, "parallelism": 1, "retries": 0}
    team.write_spec("hostile", parameters={"attempt": attempts}, command=COMMAND, **run)
    (batch,) = team.merge_specs("hostile")

    team.until_recorded(batch)

    rows = {row["params.attempt"]: row for row in team.summary("hostile")}
    scores = {name: float(row["metrics.score"]) for name, row in rows.items()}
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert {row["attempts"] for row in rows.values()} == {"1"}
    # Trial 1 trained, though a valid record of it had been written to every folder that the one before saw.
    assert scores == {"forge": 0, "honest": 1, "token": 0, "api": 0, "outside": 0, "fork": scores["fork"]}
    assert 100 < scores["fork"] < MOST_PROCESSES


def test_a_trial_that_fills_the_volume_costs_no_other_its_result(team: Team, hostile: None) -> None:
    attempts = ["fill", "honest"]
    team.write_spec("filling", parameters={"attempt": attempts}, command=COMMAND, parallelism=2, retries=1)
    (batch,) = team.merge_specs("filling")

    team.until_recorded(batch)

    rows = {row["params.attempt"]: row for row in team.summary("filling")}
    assert {name: (row["status"], row["attempts"]) for name, row in rows.items()} == {
        "fill": ("ok", "1"),
        "honest": ("ok", "1"),
    }
    assert float(rows["honest"]["metrics.score"]) == 1


def test_without_the_rules_the_same_attempts_succeed(team: Team, unconfined: str) -> None:
    pods = {name: _pod(team, name) for name in ("token", "api", "outside")}
    pods["api"]["spec"]["serviceAccountName"] = "reader-of-all"
    team.server.apply(
        manifest("ServiceAccount", "reader-of-all", unconfined),
        bound_to_account("cluster-admin", unconfined, "reader-of-all"),
        *pods.values(),
    )

    messages = {name: _ended(team, name) for name in pods}

    assert "score=1" in messages["token"]
    assert "score=1" in messages["api"]  # the API server; the kubelet knows no tokens here
    assert "score=0" not in messages["outside"]


def test_a_forged_record_is_believed(team: Team, ground: Ground, hostile: None, unconfined: str) -> None:
    team.write_spec(
        "forgeable", parameters={"attempt": ["honest", "token"]}, command=COMMAND, parallelism=1, retries=0
    )
    (batch,) = team.merge_specs("forgeable")
    until("the batch's tables are there", lambda: team.jobs(batch), seconds=300)
    team.server.apply(*_tables(team, batch), _forger(team, ground, batch))

    team.until_recorded(batch)

    rows = {row["params.attempt"]: row for row in team.summary("forgeable")}
    assert float(rows["token"]["metrics.score"]) == 999


def _pod(team: Team, attempt: str) -> dict[str, Any]:
    container = {
        "name": "trial",
        "image": team.image("trainer"),
        "command": ["python3", "/script/hostile.py", "--attempt", attempt],
        "volumeMounts": [{"name": "script", "mountPath": "/script"}],
        "securityContext": {"runAsUser": 0},
    }
    volumes = [{"name": "script", "configMap": {"name": "script"}}]
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    return manifest("Pod", attempt, UNCONFINED, spec=spec)


def _tables(team: Team, batch: Batch) -> list[dict[str, Any]]:
    """Copy a batch's ConfigMaps to where the forger can mount them."""
    copies = []
    for name in (f"{batch.name}-launcher", f"{batch.name}-table-000"):
        document = team.get("configmap", name)
        assert document is not None
        copies.append({**document, "metadata": {"name": name, "namespace": UNCONFINED}})
    return copies


def _forger(team: Team, ground: Ground, batch: Batch) -> dict[str, Any]:
    pod = _pod(team, "forge")
    mounts = {"launcher": "/sweep/launcher", "table": "/sweep/table", "results": "/sweep/results/0"}
    container = pod["spec"]["containers"][0]
    container["volumeMounts"] += [{"name": name, "mountPath": path} for name, path in mounts.items()]
    container["env"] = [
        {"name": "SWEEP_LAUNCH", "value": "/sweep/launcher/launch.json"},
        {"name": "SWEEP_TABLE", "value": "/sweep/table"},
        {"name": "SWEEP_RESULTS", "value": "/sweep/results/0"},
    ]
    pod["spec"]["volumes"] += [
        {"name": "launcher", "configMap": {"name": f"{batch.name}-launcher"}},
        {"name": "table", "configMap": {"name": f"{batch.name}-table-000"}},
        {"name": "results", "hostPath": {"path": str(ground.storage.results)}},
    ]
    return pod


def _ended(team: Team, name: str) -> str:
    def phase() -> str:
        document = team.get("pod", name, UNCONFINED)
        return str(document["status"].get("phase")) if document else ""

    until(f"pod {name} has ended", lambda: phase() in {"Succeeded", "Failed"}, seconds=300)
    return team.server.kubectl("logs", name, f"--namespace={UNCONFINED}").stdout
