"""Two clusters follow one branch: real controllers apply in each what its locks name, and nothing else.

The second cluster is an API server alone: no pod runs in either.
"""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster import argocd, controller_files, flux
from tests.cluster.apiserver import Server, running
from tests.cluster.children import until
from tests.cluster.forge import Forge
from tests.cluster.machine import Machine
from tests.cluster.platforms import steps
from tests.cluster.test_controllers import (
    FOLDER,
    PASSWORD,
    READER,
    SECONDS,
    SETTINGS,
    Followed,
    cluster,
    git,
)
from tests.repository import SPEC

__all__ = ["cluster", "git"]  # fixtures

CLUSTERS = """clusters:
  eu: {{}}
  us: {us}
"""


@dataclass(frozen=True)
class Fleet:
    """A team, and its second cluster; the first is that of its controller."""

    team: Followed
    second: Server

    def ask(self, cluster: str) -> str:
        """Ask for a sweep in a cluster, merged but not looked at; give its batch."""
        name = f"in-{cluster}"
        text = SPEC.format(name=name, xs="1, 2, 3", parallelism=2)
        self.team.write(f"sweeps/{name}.yaml", f"{text}  cluster: {cluster}\n")
        self.team.sweep("generate", name)
        (path,) = (self.team.root / FOLDER).glob(f"{name}-b1-*")
        return path.name

    def look(self) -> None:
        """Do what a webhook does, for each cluster."""
        if self.team.controller == "flux":
            flux.refresh(self.team.machine, f"{self.team.namespace}-flux", "sweeps")
        else:
            for name in ("eu", "us"):
                argocd.refresh_set(self.team.machine, f"{self.team.namespace}-{name}")

    def there(self, batch: str) -> dict[str, Any] | None:
        """Give a Job of the second cluster."""
        return self.second.ask(f"/apis/batch/v1/namespaces/{self.team.namespace}/jobs/{batch}")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("second") / "plane") as server:
        yield server


@pytest.fixture(scope="module", params=["flux", "argocd"])
def fleet(
    request: pytest.FixtureRequest,
    cluster: Machine,
    git: Forge,
    second: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Fleet:
    """A repository whose platforms are applied as the pages of its clusters say."""
    folder = tmp_path_factory.mktemp(request.param)
    team = Followed(cluster, git, folder / "clone", request.param)
    fleet = Fleet(team, second)
    url = git.create(team.repository)
    team.run(sys.executable, "-m", "sweepledger.cli", "init", str(team.root), cwd=folder)
    us = f"{{argocd: {{server: '{second.address}'}}}}" if team.controller == "argocd" else "{}"
    settings = SETTINGS.format(namespace=team.namespace, digest="a" * 64)
    team.write("sweepledger.yaml", f"{settings}controller: {team.controller}\n{CLUSTERS.format(us=us)}")
    team.run("git", "remote", "add", "origin", git.url(team.repository, user="ana"))
    document = json.loads(
        team.sweep(
            "cluster", "bootstrap", team.controller, "--repo", url, "--branch", "main", "--format", "json"
        )
    )
    team.pushed("Bootstrap")
    if team.controller == "argocd":
        argocd.register(cluster, "us", second)
    values = {"username": READER, "password": PASSWORD, "token": argocd.WEBHOOK_SECRET, "signing": "unused"}
    for name, content in values.items():
        (folder / name).write_text(content)
    for name in ("us", "eu"):
        *before, last = steps(team.root, name)
        for step in before:
            typed(fleet, step, second if name == "us" else cluster.server)
        if name == "eu":
            made = set[str]()
            for secret in document["data"]["secrets"]:
                for command in secret["commands"]:
                    if command not in made:
                        team.run(*shlex.split(command), cwd=folder)
                    made.add(command)
        # Of Flux, there is one here, in the first cluster. Argo CD serves both.
        if team.controller == "argocd" or name == "eu":
            typed(fleet, last, cluster.server)
    return fleet


def typed(fleet: Fleet, command: list[str], server: Server) -> None:
    """Type a command of a page in the repository."""
    program, *arguments = command
    assert program == "kubectl"
    paths = [str(fleet.team.root / one) if one.startswith("clusters/") else one for one in arguments]
    server.kubectl(*paths)


def is_deleted(job: dict[str, Any] | None) -> bool:
    """Return whether a Job is gone, or was deleted: no garbage collector runs in the second cluster."""
    return job is None or "deletionTimestamp" in job["metadata"]


def test_a_cluster_gets_its_own_batches_and_no_other_ones(fleet: Fleet) -> None:
    team = fleet.team
    here, there = fleet.ask("eu"), fleet.ask("us")
    team.pushed("Ask in both clusters")
    fleet.look()

    job = team.until_there(here)
    until(f"{here} is in sync", lambda: team.in_sync(here), seconds=SECONDS)
    if team.controller == "argocd":
        until(f"Job {there}", lambda: fleet.there(there), seconds=SECONDS)
        until(f"{there} is in sync", lambda: team.in_sync(there), seconds=SECONDS)

    assert job["metadata"]["labels"]["sweepledger.dev/batch"] == here
    assert not team.job(there)
    assert fleet.there(here) is None

    team.sweep("cancel", "in-us")
    team.pushed("Nothing more there")
    fleet.look()
    until(f"no Job {there}", lambda: is_deleted(fleet.there(there)), seconds=SECONDS)

    again = controller_files.got(team.machine, ("job", team.namespace, here))
    assert again["metadata"]["uid"] == job["metadata"]["uid"]
