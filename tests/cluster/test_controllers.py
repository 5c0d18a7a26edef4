"""Flux's and Argo CD's real controllers do with our files what we say: apply once, keep, refuse, prune."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.render.platform import flux as flux_files
from sweepledger.structs.settings import Settings
from tests.cluster import argocd, controller_files, flux, forge, machine
from tests.cluster.children import until
from tests.cluster.forge import Forge
from tests.cluster.machine import Machine
from tests.cluster.platforms import steps
from tests.repository import SPEC

ROOT = Path(__file__).parents[2]
READER, PASSWORD = "reader", "reader-of-a-test"
SECONDS = 180
SETTINGS = """version: 1
namespace: {namespace}
defaults: {{image: 'registry.example/trainer@sha256:{digest}'}}
images: {{collector: {{repository: registry.example/sweep, digest: 'sha256:{digest}'}}}}
results: {{nfs: {{server: files.example, path: /results}}}}
"""
POOLS = "pools: {cpu: {node: {cpu: 16, memory: 64Gi}, max_nodes: 4}}\n"
FOLDER = "overlays/active"
ROGUE = "rogue-b1-00000000"
WHAT = ("NAME", "EMAIL")
SEES_NOTHING_BY_ITSELF = argocd.Pace(seconds=3600)
"""So that what is seen was told by a webhook, or asked for."""


@dataclass(frozen=True)
class Followed:
    """A repository that a controller follows, in a cluster where no pod ever runs."""

    machine: Machine
    forge: Forge
    root: Path
    controller: str

    @property
    def namespace(self) -> str:
        return f"team-{self.controller}"

    @property
    def repository(self) -> str:
        return f"{self.namespace}/sweeps"

    def run(self, *argv: str, cwd: Path | None = None) -> str:
        """Run a command in the clone, as a person."""
        beside = Path(sys.executable).parent
        identity = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in WHAT}
        environment = {
            "PATH": f"{beside}:{os.environ['PATH']}",
            "HOME": str(self.root.parent),
            "PYTHONPATH": str(ROOT),
            "KUBECONFIG": str(self.machine.server.kubeconfig),
            **identity,
        }
        command = {"cwd": cwd or self.root, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run(argv, check=False, **command)  # type: ignore[call-overload] # of one kind each
        assert done.returncode == 0, f"{shlex.join(argv)}\n{done.stdout}{done.stderr}"
        return str(done.stdout)

    def sweep(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "sweepledger.cli", *arguments)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def pushed(self, message: str) -> str:
        """Commit everything and push it; give the commit."""
        self.run("git", "add", "--all")
        self.run("git", "commit", "-q", "--allow-empty", "-m", message)
        self.run("git", "push", "-q", "origin", "main")
        return self.run("git", "rev-parse", "HEAD").strip()

    def submit(self, name: str) -> str:
        """Ask for a sweep and merge it; give its batch."""
        self.write(f"sweeps/{name}.yaml", SPEC.format(name=name, xs="1, 2, 3", parallelism=2))
        self.sweep("generate", name)
        self.pushed(f"Ask for {name}")
        (path,) = (self.root / FOLDER).glob(f"{name}-b1-*")
        return path.name

    def look(self) -> None:
        """Do what a webhook does."""
        if self.controller == "flux":
            flux.refresh(self.machine, f"{self.namespace}-flux", "sweeps")
        else:
            argocd.refresh_set(self.machine, self.namespace)

    def job(self, batch: str) -> dict[str, Any]:
        return controller_files.got(self.machine, ("job", self.namespace, batch))

    def until_there(self, batch: str) -> dict[str, Any]:
        until(f"Job {batch}", lambda: self.job(batch), seconds=SECONDS)
        return self.job(batch)

    def quota(self) -> list[str]:
        """Name what the trials' namespace is bounded in."""
        document = controller_files.got(self.machine, ("resourcequota", self.namespace, "sweep-trials"))
        return list(document["spec"]["hard"])

    def until_gone(self, batch: str) -> None:
        until(f"no Job {batch}", lambda: not self.job(batch), seconds=SECONDS)

    def in_sync(self, batch: str) -> bool:
        """Tell whether the controller finds nothing to do for a batch."""
        if self.controller == "flux":
            status = flux.ready(self.machine, f"{self.namespace}-flux").get(batch)
            return status is not None and status.ready == "True"
        application = argocd.applications(self.machine).get(batch)
        return application is not None and (application.sync, application.conditions) == ("Synced", {})

    def trouble(self, batch: str) -> str:
        """Give what the controller says against a batch."""
        if self.controller == "flux":
            status = flux.ready(self.machine, f"{self.namespace}-flux").get(batch)
            return "" if status is None or status.ready == "True" else status.message
        application = argocd.applications(self.machine).get(batch)
        return (
            ""
            if application is None
            else " ".join([*application.conditions.values(), *application.failed.values()])
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machine]:
    """A control plane without a node, and both controllers; skip by name where there can be none."""
    with machine.without_node() as made:
        flux.start(made)
        argocd.start(made, SEES_NOTHING_BY_ITSELF)
        yield made


@pytest.fixture(scope="module")
def git(cluster: Machine) -> Forge:
    """A git server; it tells Argo CD of every push, and Flux as soon as its Receiver has a path."""
    served = forge.start(cluster)
    served.user(READER, PASSWORD, may_write=False)
    served.user("ana", "ana-of-a-test", may_write=True)
    served.webhooks(*argocd.webhook(cluster), secret=argocd.WEBHOOK_SECRET)
    return served


@pytest.fixture(scope="module", params=["flux", "argocd"])
def team(
    request: pytest.FixtureRequest, cluster: Machine, git: Forge, tmp_path_factory: pytest.TempPathFactory
) -> Followed:
    """A repository made, filled and applied as `sweep cluster bootstrap` and the page that it writes say."""
    folder = tmp_path_factory.mktemp(request.param)
    team = Followed(cluster, git, folder / "clone", request.param)
    url = git.create(team.repository)
    team.run(sys.executable, "-m", "sweepledger.cli", "init", str(team.root), cwd=folder)
    team.write("sweepledger.yaml", SETTINGS.format(namespace=team.namespace, digest="a" * 64) + POOLS)
    team.run("git", "remote", "add", "origin", git.url(team.repository, user="ana"))
    document = json.loads(
        team.sweep(
            "cluster", "bootstrap", team.controller, "--repo", url, "--branch", "main", "--format", "json"
        )
    )
    team.pushed("Bootstrap")
    *before, last = steps(team.root)
    for step in before:
        team.run(*step)
    values = {"username": READER, "password": PASSWORD, "token": argocd.WEBHOOK_SECRET, "signing": "unused"}
    for name, content in values.items():
        (folder / name).write_text(content)
    for secret in document["data"]["secrets"]:
        for command in secret["commands"]:
            team.run(*shlex.split(command), cwd=folder)
    team.run(*last)
    if team.controller == "flux":
        receiver = flux.webhook(cluster, f"{team.namespace}-flux", "sweeps")
        git.webhooks(receiver, *argocd.webhook(cluster), secret=argocd.WEBHOOK_SECRET)
    return team


def test_what_is_pushed_runs_stays_in_sync_and_is_pruned_from_the_archive(team: Followed) -> None:
    batch = team.submit("peak")
    team.look()
    job = team.until_there(batch)
    until(f"{batch} is in sync", lambda: team.in_sync(batch), seconds=SECONDS)

    team.sweep("cancel", "peak")
    team.pushed("Nothing more")
    team.look()
    team.until_gone(batch)

    assert job["spec"]["completionMode"] == "Indexed"
    assert [path.name for path in (team.root / FOLDER).iterdir()] == [".gitkeep"]


def test_controllers_that_start_anew_leave_a_job_as_it_is(team: Followed) -> None:
    batch = team.submit("again")
    team.look()
    before = team.until_there(batch)

    if team.controller == "flux":
        flux.restart(team.machine)
        flux.refresh(team.machine, f"{team.namespace}-flux", batch, kind="kustomization")
    else:
        argocd.restart(team.machine, SEES_NOTHING_BY_ITSELF)
        argocd.refresh(team.machine, batch, is_hard=True)
    team.pushed("Nothing that a batch reads")
    team.look()

    until(f"{batch} is in sync", lambda: team.in_sync(batch), seconds=SECONDS)
    after = team.job(batch)
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])


def test_a_merged_overlay_gets_no_more_than_batches_may_and_stops_no_other(team: Followed) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": team.namespace}}
    rogue = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["a.yaml"],
    }
    team.write(f"{FOLDER}/{ROGUE}/kustomization.yaml", yaml.dump(rogue))
    team.write(f"{FOLDER}/{ROGUE}/a.yaml", yaml.dump(secret))
    if team.controller == "flux":
        made = flux_files.batch_kustomization(ROGUE, Settings(namespace=team.namespace))
        team.write(flux_files.batch_file(ROGUE, None), made.decode())
    forced = team.pushed("Merge by force")
    other = team.submit("beside")
    team.look()

    account = f"system:serviceaccount:{team.namespace}-flux:sweep-applier"
    says = {"flux": account, "argocd": f"resource :Secret is not permitted in project {team.namespace}"}
    team.until_there(other)
    until("the controller says no", lambda: says[team.controller] in team.trouble(ROGUE), seconds=SECONDS)
    assert controller_files.got(team.machine, ("secret", team.namespace, "x")) == {}
    team.run("git", "revert", "--no-edit", forced)
    team.pushed("Take it back")


def test_a_push_is_heard_at_every_end(team: Followed) -> None:
    batch = team.submit("told")

    team.until_there(batch)
    ends = {
        "argocd": {
            argocd.SETS: f"refresh ApplicationSet argocd/{team.namespace} from webhook",
            argocd.SERVER: "Received push event",
        },
        "flux": {flux.NOTIFICATION: f"resource 'GitRepository/sweeps.{team.namespace}-flux' annotated"},
    }

    def is_heard() -> bool:
        return all(says in team.machine.children.log(name) for name, says in ends[team.controller].items())

    until("every end says so", is_heard, seconds=SECONDS)


def test_what_leaves_git_leaves_the_platform(team: Followed) -> None:
    assert "requests.cpu" in team.quota()

    team.write("sweepledger.yaml", (team.root / "sweepledger.yaml").read_text().replace(POOLS, ""))
    team.sweep("cluster", "bootstrap", team.controller)
    team.pushed("Bound no cpu")
    if team.controller == "flux":  # which leaves the platform to a person
        team.run(*steps(team.root)[0])
    else:
        argocd.refresh(team.machine, f"{team.namespace}-platform")

    until("no bound that git does not ask for", lambda: "requests.cpu" not in team.quota(), seconds=SECONDS)


def test_the_page_says_it_so_that_it_may_be_said_again(team: Followed) -> None:
    for step in steps(team.root):
        team.run(*step)
