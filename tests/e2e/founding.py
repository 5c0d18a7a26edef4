"""How a team begins: an empty folder, a cluster with a controller, and what `sweep cluster bootstrap` says."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import box, images, platforms
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.forge import Forge
from tests.cluster.images import Images
from tests.cluster.machine import Machine
from tests.cluster.node import Node
from tests.e2e.controllers import CONTROLLERS
from tests.e2e.storage import RESULTS_MEGABYTES, Storage
from tests.e2e.team import COLLECTOR, NAMESPACE, PASSWORDS, PERSON, READER, WEBHOOK_TOKEN, Team

DIGITS = "sha256:b00e3dc725c4d1171d43ad345fc2252d1377997a70e21392eef9a7c486c6caf4"
SETTINGS = """version: 1
namespace: {namespace}
controller: none
argocd: {{poll: 30s}}
defaults: {{image: trainer}}
results: {{claim: sweep-results, every: 1m}}
next: collector
images:
  trainer: {trainer.name}@{trainer.digest}
  collector: {collector.name}@{collector.digest}
code: {{url: '{url}', image: collector}}
datasets:
  mnist: {{claim: mnist, digest: '{digits}'}}
egress:
  git: {{cidrs: ['{node}/32'], ports: [{port}]}}
  api-server: {{cidrs: ['{service}/32'], ports: [443]}}
"""

WORK = '''"""A trial of the tests: waits, says a score, and does as its values ask."""
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float, default=0)
parser.add_argument("--seconds", type=float, default=0)
parser.add_argument("--code", type=int, default=0)
args = parser.parse_args()
print("trained", flush=True)
time.sleep(args.seconds)
if args.code:
    sys.exit(args.code)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.x}, file)
'''


@dataclass(frozen=True)
class Ground:
    """What a team is founded on."""

    machine: Machine
    forge: Forge
    images: Images
    storage: Storage
    controller: str


def prepared(machine: Machine, controller: str, *, megabytes: int = RESULTS_MEGABYTES) -> Ground:
    """Lay the ground: images on the node, volumes, a git server. Raises NoClusterToolsError."""
    made = images.built()
    if made is None:
        raise NoClusterToolsError("no images (run `make cluster-tools`)")
    assert machine.node is not None
    load(made, machine.node)
    storage = Storage(machine.folder / "volumes", megabytes)
    storage.make()
    forge = Forge.serve(machine.children, machine.folder / "forge", address=box.ADDRESS)
    return Ground(machine, forge, made, storage, controller)


def load(made: Images, node: Node) -> None:
    for image in (made.pause, made.collector, made.trainer):
        node.load(image.archive)


def set_up_team(ground: Ground, *, namespace: str = NAMESPACE, python: str = sys.executable) -> Team:
    """Do what a new team does, by its README and by what the commands print, with the release of a Python.

    Its repository is called as its namespace is.
    """
    # The pages call the clone of the first team so.
    root = ground.machine.folder / ("team" if namespace == NAMESPACE else f"team-{namespace}")
    server = ground.machine.server
    team = Team(root, ground.forge, server, ground.controller, namespace=namespace, python=python)
    url = ground.forge.url(namespace)
    initialise(team, ground, url)
    team.sweep("cluster", "bootstrap", ground.controller, "--repo", url, "--branch", "main")
    team.git("add", "--all")
    team.git("commit", "-q", "-m", f"Bootstrap {ground.controller}")
    team.push()
    team.git("branch", "-q", "--set-upstream-to=origin/main", "main")  # so that `git pull` needs no words

    def prepare() -> None:
        ground.storage.offer(server, namespace, team.collectors, {"mnist": digits(ground)})
        secret(team, team.collectors, "sweep-git-write", COLLECTOR)
        secret(team, team.collectors, "sweep-git-signing", signing=signing_key(team).read_text())

    apply_platform(team, prepare)
    rule = (root / "clusters/pre-receive.sh").read_text()
    ground.forge.install_rule(namespace, rule)
    return team


def followed_team(ground: Ground) -> Team:
    controller = CONTROLLERS[ground.controller](ground.machine)
    controller.start()
    team = set_up_team(ground)
    controller.follow(team)
    return team


def initialise(team: Team, ground: Ground, url: str) -> None:
    """Make a repository with the settings of a team, and a program of its trials."""
    command = [team.python, "-m", "sweepledger.cli", "cluster", "init", str(team.root)]
    team.root.parent.mkdir(exist_ok=True)
    here = Path(__file__).parents[2]
    environment = team.environment()
    subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True)
    ground.forge.create(team.namespace)
    for name, password in PASSWORDS.items():
        ground.forge.user(name, password, may_write=name != READER)
    ground.forge.user("", "", may_write=False)  # trials clone without a credential: anyone may read
    team.git("remote", "add", "origin", url)
    kept = f"credential.{url.rpartition('/')[0]}/.helper"
    team.git("config", kept, f"!f() {{ echo username={PERSON}; echo password={PASSWORDS[PERSON]}; }}; f")
    team.write(
        "sweepledger.yaml",
        SETTINGS.format(
            namespace=team.namespace,
            trainer=ground.images.trainer,
            collector=ground.images.collector,
            url=url,
            digits=DIGITS,
            node=box.ADDRESS,
            port=ground.forge.port,
            service=box.SERVICE,
        ),
    )
    team.write("code/work.py", WORK)
    team.git("rm", "-q", "-r", "--cached", "sweeps")
    for path in (team.root / "sweeps").glob("*.yaml"):
        path.unlink()
    team.git("add", "--all")
    team.git("commit", "-q", "-m", "Say what the cluster has")


def apply_platform(team: Team, prepare: Callable[[], None]) -> None:
    """Apply what the bootstrap wrote, by the commands of its own page; all else comes before the last."""
    *first, last = platforms.steps(team.root)
    for command in first:
        team.run(command)
    prepare()
    let_the_controller_in(team)
    if team.controller != "none":
        team.run(last)


def let_the_controller_in(team: Team) -> None:
    """Make the Secrets by which a controller reads the repository and knows its git server."""
    if team.controller == "flux":
        space = f"{team.namespace}-flux"
        secret(team, space, "sweep-git-read", READER)
        webhook = ("create", "secret", "generic", "sweep-webhook", f"--namespace={space}")
        team.server.kubectl(*webhook, f"--from-literal=token={WEBHOOK_TOKEN}")
    elif team.controller == "argocd":
        kind = {"type": "git", "url": team.forge.url(team.namespace)}
        name = f"{team.namespace}-git-read"
        secret(team, "argocd", name, READER, **kind)
        label = "argocd.argoproj.io/secret-type=repository"
        team.server.kubectl("label", "secret", name, "--namespace=argocd", label)


def secret(team: Team, namespace: str, name: str, user: str | None = None, **more: str) -> None:
    """Make a Secret with a user's credential for git, and other values."""
    values = {"username": user, "password": PASSWORDS[user], **more} if user else more
    given = [f"--from-literal={key}={value}" for key, value in values.items()]
    team.server.kubectl("create", "secret", "generic", name, f"--namespace={namespace}", *given)


def signing_key(team: Team) -> Path:
    """Give the private half of the collector's key pair; the public one lies beside it."""
    key = team.root.parent / "signing"
    if not key.exists():
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sweepledger@localhost", "-f", str(key)]
        subprocess.run(made, check=True)
    return key


def digits(ground: Ground) -> Path:
    """Make the dataset that the settings name, once; give its folder."""
    folder = ground.storage.folder / "mnist"
    if folder.exists():
        return folder
    folder.mkdir()
    made = [sys.executable, "-m", "trainer", "prepare", "mnist"]
    environment = {"PATH": "/usr/bin:/bin", "SWEEP_DATA": str(folder)}
    subprocess.run(made, cwd=Path(__file__).parents[2], env=environment, check=True, capture_output=True)
    return folder
