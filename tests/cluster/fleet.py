"""A team whose trials run on kwok's nodes, with a repository that Argo CD or Flux follows: no image runs.

What the tests with containers show of one trial, this shows of ten thousand, or of a queue.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.cluster import argocd, controller_files, kwok, machine
from tests.cluster.children import until
from tests.cluster.control_plane import Tuning
from tests.cluster.forge import Forge
from tests.cluster.forge import start as serve
from tests.cluster.machine import Machine
from tests.e2e.controllers import CONTROLLERS, Controller
from tests.e2e.founding import apply_platform
from tests.e2e.team import COLLECTORS, NAMESPACE, PASSWORDS, PERSON, READER, REPOSITORY, Team

BOUND_SECONDS = 180
SETTINGS = """version: 1
namespace: {namespace}
controller: none
defaults: {{image: trainer, pool: fake}}
images:
  trainer: registry.example.org/trainer@sha256:{digest}
results: {{every: 30m, nfs: files.example.org:/results}}
"""
SPEC = """name: {name}
description: How does the cluster carry {trials} trials?
method: random
seed: 1
run_cap: {trials}
metric: {{name: loss}}
parameters: {{x: {{min: 0.0, max: 1.0}}}}
command: [python3, code/train.py, "${{args}}"]
run:
  pool: {pool}
  code: {{path: code}}
  shape: {shape}
  parallelism: {parallelism}
  resources: {resources}
  timeout: 1h
"""


@dataclass(frozen=True)
class Ask:
    """A sweep to be asked for."""

    name: str
    trials: int
    parallelism: int
    shape: str = "indexed"
    nodes: int = 1
    pool: str = "fake"
    resources: str = "{cpu: 1, memory: 256Mi}"


@dataclass
class Fleet:
    """A team, its git server, and who follows its branch."""

    machine: Machine
    forge: Forge
    team: Team
    controller: Controller | None = None

    def ask(self, *asks: Ask) -> tuple[str, ...]:
        """Write specs, generate and commit; what comes of it is not pushed yet. Gives the batches' names."""
        for ask in asks:
            nodes = f"  nodes: {ask.nodes}\n" if ask.nodes > 1 else ""
            self.team.write(f"sweeps/{ask.name}.yaml", SPEC.format(**vars(ask)) + nodes)
        self.team.sweep("generate", *(ask.name for ask in asks))
        self.team.git("add", "--all")
        self.team.git("commit", "-q", "-m", f"Ask for {len(asks)} sweeps")
        return tuple(self.team.batch(ask.name).name for ask in asks)

    def push(self) -> float:
        """Push, which the git server tells the controller; give the time at which the push began."""
        began = time.monotonic()
        self.team.git("push", "-q", "origin", "main")
        return began


@contextmanager
def cluster(*, nodes: int = 10, seconds: float = 0, tuning: Tuning | None = None) -> Iterator[Machine]:
    """Run a cluster of fake nodes alone for as long as the block. Raises NoClusterToolsError."""
    made = machine.start(tuning=tuning, has_node=False)
    try:
        kwok.start(made, nodes=nodes, seconds=seconds)
        yield made
    finally:
        made.children.end_all()
        shutil.rmtree(made.folder)


def start_fleet(
    machine: Machine,
    follower: str | None,
    *,
    pool: str = kwok.POOL,
    pace: argocd.Pace | None = None,
    shapes: tuple[str, ...] = (),
) -> Fleet:
    """Start a team: repository, platform, volumes, and who follows it; nobody where none is named."""
    controller = CONTROLLERS[follower](machine) if follower else None
    if follower == "argocd":
        argocd.start(machine, pace)
    elif controller is not None:
        controller.start()
    forge = serve(machine)
    forge.create(REPOSITORY)
    for name in (PERSON, READER):
        forge.user(name, PASSWORDS[name], may_write=name == PERSON)
    team = _begun(machine, forge, follower or "none", pool, shapes)
    fleet = Fleet(machine, forge, team, controller)
    apply_platform(fleet.team, lambda: _without_collector(machine))
    if controller is not None:
        controller.follow(fleet.team)
    return fleet


def _begun(machine: Machine, forge: Forge, follower: str, pool: str, shapes: tuple[str, ...]) -> Team:
    """Make a repository with settings and platform, and push it."""
    team = Team(machine.folder / "fleet", forge, machine.server, follower)
    team.root.mkdir()
    team.git("init", "-q", "-b", "main")
    team.git("remote", "add", "origin", forge.url(REPOSITORY, user=PERSON))
    team.write("sweepledger.yaml", SETTINGS.format(namespace=NAMESPACE, digest="0" * 64) + pool)
    team.write("code/train.py", "print('loss=1')\n")
    team.write(".gitignore", ".sweepledger/\n")
    team.git("add", "--all")
    team.git("commit", "-q", "-m", "Start")  # what nobody committed cannot be bootstrapped
    tool = "argocd" if follower == "argocd" else "flux"
    allowed = [argument for shape in shapes for argument in ("--shape", shape)]
    team.sweep("cluster", "bootstrap", tool, "--repo", forge.url(REPOSITORY), "--branch", "main", *allowed)
    team.git("add", "--all")
    team.git("commit", "-q", "-m", "Bootstrap")
    team.git("push", "-q", "origin", "main")
    return team


def _without_collector(machine: Machine) -> None:
    """Wait for the results volume; nothing is to be collected, as the fleet leaves no records."""
    until("the results volume is bound", lambda: _is_bound(machine), seconds=BOUND_SECONDS)
    machine.server.kubectl("delete", "cronjob", "--all", f"--namespace={COLLECTORS}")


def _is_bound(machine: Machine) -> bool:
    claims = controller_files.objects(machine, "persistentvolumeclaims", NAMESPACE)
    return bool(claims) and all(claim["status"].get("phase") == "Bound" for claim in claims)
