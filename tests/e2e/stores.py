"""Where the results of a team go: what a platform team does to choose another store, and what pods are held."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.team import REPOSITORY, RUN, Batch, Team
from tests.writing_programs import REPORTS, SCRIPT, expected, recorded, spec, write_program

FINALIZER = "sweepledger.dev/record"
VOLUME = "results: {claim: sweep-results,"
"""How the settings of a team begin to say where results go, before a test changes it."""
SECONDS = 300.0
"""For what follows a results commit."""


@contextmanager
def in_store(team: Team, controller: Controller, store: str) -> Iterator[None]:
    """Let the settings choose a store for a block, and the platform know it; afterwards both are as before."""
    team.until_idle()
    team.pull()
    change_store(team, controller, VOLUME, store)
    yield
    team.until_idle()
    team.pull()
    change_store(team, controller, store, VOLUME)


def change_store(team: Team, controller: Controller, before: str, after: str) -> None:
    """Replace a part of the settings, and apply the platform that follows from them."""
    settings = (team.root / "sweepledger.yaml").read_text()
    assert before in settings
    team.write("sweepledger.yaml", settings.replace(before, after))
    source = ("--repo", team.forge.url(REPOSITORY), "--branch", "main")
    output = team.sweep("cluster", "bootstrap", team.controller, *source, "--format=json").stdout
    team.commit("Let results take another way")
    team.apply_platform()
    for undeclared in json.loads(output)["data"]["undeclared"]:  # as it tells a person to do
        _, *words = undeclared["command"].split()
        team.server.kubectl(*words, "--ignore-not-found")
    controller.look()
    until_in_sync(controller)


def held(team: Team, batch: Batch) -> list[dict[str, Any]]:
    """Give the pods of a batch that stay for their records."""
    return [pod for pod in team.pods(batch) if FINALIZER in pod["metadata"].get("finalizers", ())]


def recorded_job(team: Team, batch: Batch) -> str:
    (commit,) = team.git("log", "-1", "--format=%H", "--", f"results/{batch.sweep}").split()
    return team.git("show", f"{commit}^:overlays/active/{batch.name}/job.yaml")


def proof(team: Team) -> dict[str, str]:
    """Let `sweep cluster doctor` prove the store from inside a pod; give what it finds."""
    output = team.sweep("cluster", "doctor", "--prove", "--format=json", check=False).stdout
    listed = json.loads(output)["data"]["findings"]
    (finding,) = [finding for finding in listed if finding["check"] == "a trial may write results"]
    assert isinstance(finding, dict)
    return finding


def trials_see_only_their_own_files(team: Team, store: str) -> None:
    """Run the program that writes everywhere, in pods of its own and in a shared one; demand a plain loop's numbers."""
    team.pull()
    if not (team.root / SCRIPT).is_file():
        write_program(team.root)
        team.commit("Add a program that writes files")
    for name, report in {**{report: report for report in REPORTS}, "packed": "lines"}.items():
        run: dict[str, Any] = {**RUN, "shape": "indexed", "environment": {"LINGER": "3"}}
        if name == "packed":
            run |= {"pack": {"trials": 2, "at_once": 2}, "parallelism": 2}
        text = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in run.items())
        sweep = f"{store}-{name}"
        made = spec(sweep, report, "3, 1", text, python="python3").replace(
            "{path: code}", "{path: code, mode: clone}"
        )
        team.write(f"sweeps/{sweep}.yaml", made)
    batches = team.merge_specs(*(f"{store}-{name}" for name in (*REPORTS, "packed")))
    for batch in batches:
        team.until_recorded(batch)
        assert recorded(team.summary(batch.sweep)) == {x: expected(x) for x in (1, 3)}, batch.name
