"""Two teams set up their platforms in one cluster by what `sweep cluster init` and `sweep cluster bootstrap` tell them,
and no more."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import platforms
from tests.cluster.apiserver import Server
from tests.command_line import run_sweep
from tests.manifests import manifest

Name = tuple[str, str, str]
"""Kind, namespace and name of an object."""
OWNER = "sweepledger.dev/repository"
# Kubernetes subjects no policy to policies: whoever may write them takes them, without force where the page names the
# field manager of Argo CD.
POLICIES = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


@dataclass(frozen=True)
class Founded:
    """A team's repository, whose platform is in the cluster."""

    root: Path
    server: Server
    controller: str

    @classmethod
    def by_the_pages(cls, root: Path, server: Server, controller: str, url: str) -> "Founded":
        """Type the commands that the output of each command and the page of the platform name."""
        team = cls(root, server, controller)
        begun = run_sweep("cluster", "init", root.name, "--controller", controller, cwd=root.parent)
        assert begun.returncode == 0, begun.stderr
        team.bootstrapped(url)
        for command in platforms.steps(root):
            done = team.applied(command)
            assert done.returncode == 0, done.stderr
        return team

    def bootstrapped(self, url: str) -> str:
        source = ("--repo", url, "--branch", "main")
        done = run_sweep("cluster", "bootstrap", self.controller, *source, cwd=self.root)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def applied(self, command: list[str], *more: str) -> subprocess.CompletedProcess[str]:
        """Type a command of the page in the repository."""
        program, *arguments = command
        assert program == "kubectl"
        paths = [str(self.root / one) if one.startswith("clusters/") else one for one in arguments]
        return self.server.kubectl(*paths, *more, check=False)

    @property
    def owners(self) -> dict[Name, str]:
        """The owner that the cluster has for each object of this platform."""
        owners = {}
        for folder in ("platform", self.controller):
            place = str(self.root / "clusters" / folder)
            listed = self.server.kubectl("get", "-o", "json", "-k", place).stdout
            for made in json.loads(listed)["items"]:
                metadata = made["metadata"]
                name = (made["kind"], metadata.get("namespace", ""), metadata["name"])
                owners[name] = metadata["annotations"][OWNER]
        return owners


@dataclass(frozen=True)
class Cluster:
    """A cluster with two teams."""

    vision: Founded
    text: Founded


URL = "https://git.example.org/{}/sweeps.git"


@pytest.fixture(params=["argocd", "flux"], scope="module")
def cluster(
    request: pytest.FixtureRequest, apiserver: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("teams")
    apiserver.apply(manifest("Namespace", "argocd"))
    controller = request.param
    teams = [
        Founded.by_the_pages(folder / f"{name}-{controller}", apiserver, controller, URL.format(name))
        for name in ("vision", "text")
    ]
    yield Cluster(*teams)
    for team in teams:
        for part in (controller, "platform"):
            place = str(team.root / "clusters" / part)
            apiserver.kubectl("delete", "-k", place, "--ignore-not-found", "--wait=false", check=False)


def test_two_teams_that_follow_the_pages_have_no_object_in_common(cluster: Cluster) -> None:
    vision, text = cluster.vision.owners, cluster.text.owners

    assert len(vision) > 20
    assert not vision.keys() & text.keys()
    assert set(vision.values()) == {URL.format("vision")}
    assert set(text.values()) == {URL.format("text")}
    forced = [step for team in (cluster.vision, cluster.text) for step in platforms.steps(team.root)]
    assert not any("--force-conflicts" in shlex.join(step) for step in forced)


def test_a_fork_that_keeps_the_namespace_takes_no_object(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.vision.owners
    fork = Founded(tmp_path / "fork", cluster.vision.server, cluster.vision.controller)
    subprocess.run(["cp", "-r", str(cluster.vision.root), str(fork.root)], check=True)
    fork.bootstrapped(URL.format("fork"))
    steps = platforms.steps(fork.root)

    plain = [fork.applied(step) for step in steps]
    assert all(done.returncode for done in plain)
    assert taken(cluster.vision.owners, before) <= POLICIES
    forced = [fork.applied(step, "--force-conflicts") for step in steps]

    assert all("belongs to the repository" in done.stderr for done in forced)
    assert taken(cluster.vision.owners, before) <= POLICIES


def taken(owners: dict[Name, str], before: dict[Name, str]) -> set[str]:
    """Return the kinds of the objects that have another owner than before."""
    return {kind for (kind, *_), _ in owners.items() ^ before.items()}
