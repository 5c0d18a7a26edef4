"""Distributed trials: the controllers of JobSet and of Kubeflow's Trainer, and pods on two nodes that train together.

The pods find each other by CoreDNS and speak by gloo.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import dns, jobset, platforms, trainer
from tests.cluster.children import until
from tests.command_line import captured
from tests.e2e import losses
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.losses import FIRST
from tests.e2e.pools import LABEL, TAINT, have_pools
from tests.e2e.stores import change_store
from tests.e2e.team import PATIENCE, REPOSITORY, Batch, Team

pytestmark = pytest.mark.full

SHAPES = {"job-set": ("jobsets", "jobset.x-k8s.io"), "train-job": ("trainjobs", "trainer.kubeflow.org")}
"""Each with the plural and the group of its kind."""
ROOM, NUMBER = "pair", 8
POOL = f"""pools:
  {ROOM}:
    node: {{cpu: 2, memory: 8Gi}}
    selector: {{{LABEL}-{ROOM}: "yes"}}
    tolerations: [{{key: {TAINT}}}]
"""
TOGETHER = """import os, runpy
from os import environ as given
ranks = {"RANK": given["PET_NODE_RANK"], "WORLD_SIZE": given["PET_NNODES"], "LOCAL_RANK": "0"}
os.environ.update(ranks, MASTER_ADDR=given["PET_MASTER_ADDR"], MASTER_PORT=given["PET_MASTER_PORT"])
runpy.run_module("trainer", run_name="__main__", alter_sys=True)
"""
"""What torchrun does with one process a pod; the one of Debian's torch 1.13 fails with Python 3.11."""
NETWORK = (
    *("mnist", "--epochs=2", "--train_images=1000", "--test_images=300", "--batch_size=50"),
    "--precision=fp32",
)
RATES = ("0.05", "0.1")
NEAR = 0.05
"""The two processes drop out other units than the one, so that their losses differ by some hundredths."""
RUN: dict[str, Any] = {
    "pool": ROOM,
    "nodes": 2,
    "resources": {"cpu": "500m", "memory": "1500Mi", "scratch": "64Mi"},
    "timeout": "10m",
}
PAIR = '''"""Two processes add what they have, unless a value says that the second one fails, or that both refuse."""
import argparse, json, os, sys, time
from contextlib import suppress
from datetime import timedelta
import torch
from torch import distributed

parser = argparse.ArgumentParser()
parser.add_argument("--ending", choices=("ok", "fails-once", "refuses"))
args = parser.parse_args()
os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = os.environ["PET_MASTER_ADDR"], os.environ["PET_MASTER_PORT"]
rank, size = int(os.environ["PET_NODE_RANK"]), int(os.environ["PET_NNODES"])
distributed.init_process_group("gloo", rank=rank, world_size=size, timeout=timedelta(minutes=2))
before = os.path.join(os.environ["SWEEP_CHECKPOINTS"], "before")
is_first = not os.path.exists(before)
distributed.barrier()
if args.ending == "refuses":
    if rank == 1:  # a pod that ends so ends the others: the one that leaves the record is the first
        with suppress(RuntimeError):
            distributed.barrier()
        time.sleep(10)
    sys.exit(42)
if rank == 0:
    open(before, "w").close()
distributed.barrier()
if rank == 1 and args.ending == "fails-once" and is_first:
    sys.exit(7)
value = torch.tensor([rank + 1.0])
distributed.all_reduce(value)
if rank == 0:
    with open(os.environ["SWEEP_RESULT"], "w") as file:
        json.dump({"score": value.item()}, file)
'''


@pytest.fixture(scope="module")
def pair(team: Team, controller: Controller, ground: Ground) -> Iterator[Team]:
    """A team whose platform allows both shapes, the controllers of their kinds, and two nodes for pods."""
    machine = ground.machine
    dns.start(machine)
    jobset.start(machine)
    trainer.start(machine)
    team.have_program("code/pair.py", PAIR)
    losses.start_node(ground, NUMBER, ROOM)
    machine.server.kubectl("label", "node", FIRST, f"{LABEL}-{ROOM}=yes")
    have_pools(team)
    settings = (team.root / "sweepledger.yaml").read_text()
    team.write("sweepledger.yaml", settings.replace("pools:\n", POOL))
    source = ("--repo", team.forge.url(REPOSITORY), "--branch", "main")
    team.sweep("cluster", "bootstrap", team.controller, *source, *(f"--shape={shape}" for shape in SHAPES))
    team.commit("Let distributed trials run")
    for command in platforms.steps(team.root):  # the controller's part, too: it may make no other kinds
        team.run([*command, "--force-conflicts"])  # Argo CD writes into its ApplicationSet
    controller.look()
    until_in_sync(controller)
    yield team
    team.until_idle()
    team.pull()
    change_store(team, controller, POOL, "pools:\n")
    machine.server.kubectl("label", "node", FIRST, f"{LABEL}-{ROOM}-")


@pytest.fixture(scope="module")
def alone(ground: Ground) -> list[float]:
    """What one process of this machine comes to, by rate: the losses of the test images."""
    return [_trained(ground.storage.folder / "mnist", rate) for rate in RATES]


def _trained(data: Path, rate: str) -> float:
    command = [sys.executable, "-m", "trainer", *NETWORK, f"--learning_rate={rate}"]
    environment = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "SWEEP_DATA": str(data)}
    root = Path(__file__).parents[2]
    done = captured(command, cwd=root, env=environment, check=True)
    metrics = json.loads(done.stdout.splitlines()[-1])["metrics"]
    return float(metrics["test_loss"])


def nodes_of_trials(team: Team, batch: Batch) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in team.pods(batch):
        trial, node = pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"], pod["spec"].get("nodeName")
        found.setdefault(trial, set()).update([node] if node else [])
    return found


def is_gone(team: Team, batch: Batch, shape: str) -> bool:
    kind, group = SHAPES[shape]
    selector = f"--selector=sweepledger.dev/batch={batch.name}"
    where = (f"{kind}.{group}", f"--namespace={team.namespace}", selector, "--output=name")
    return not team.server.kubectl("get", *where).stdout.strip()


@pytest.mark.parametrize("shape", SHAPES)
def test_pods_on_two_nodes_train_as_one_process_does(shape: str, pair: Team, alone: list[float]) -> None:
    sweep = f"train-{shape}"
    pair.write_spec(
        sweep,
        parameters={"learning_rate": [float(rate) for rate in RATES]},
        command=("python3", "-c", TOGETHER, *NETWORK, "${args}"),
        shape=shape,
        data="mnist",
        parallelism=len(RATES),
        retries=1,
        **RUN,
    )
    text = (pair.root / f"sweeps/{sweep}.yaml").read_text()
    text = text.replace("score, goal: maximize", "test_loss, goal: minimize").replace(", mode: clone", "")
    pair.write(f"sweeps/{sweep}.yaml", text)
    (batch,) = pair.merge_specs(sweep)

    until(
        "a trial has pods on both nodes",
        lambda: {2} <= set(map(len, nodes_of_trials(pair, batch).values())),
        seconds=600,
    )
    pair.until_recorded(batch, seconds=900)

    rows = pair.summary(sweep)
    assert [(row["status"], row["attempts"]) for row in rows] == [("ok", "1")] * 2
    assert [float(row["metrics.test_loss"]) for row in rows] == pytest.approx(alone, rel=NEAR)
    assert len(pair.results_commits(batch)) == 1
    until("the objects are pruned", lambda: is_gone(pair, batch, shape), seconds=PATIENCE)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trial_with_a_failed_pod_begins_again_as_a_whole(shape: str, pair: Team) -> None:
    sweep = f"fails-{shape}"
    pair.write_spec(
        sweep,
        parameters={"ending": ["ok", "fails-once", "refuses"]},
        command=("python3", "code/pair.py", "${args}"),
        shape=shape,
        parallelism=3,
        retries=2,
        **RUN,
    )
    (batch,) = pair.merge_specs(sweep)

    pair.until_recorded(batch, seconds=900)

    rows = {row["params.ending"]: row for row in pair.summary(sweep)}
    assert {ending: row["status"] for ending, row in rows.items()} == {
        "ok": "ok",
        "fails-once": "ok",
        "refuses": "diverged",
    }
    assert {ending: row["attempts"] for ending, row in rows.items()} == {
        "ok": "1",
        "fails-once": "2",
        "refuses": "1",
    }
    assert {float(rows[ending]["metrics.score"]) for ending in ("ok", "fails-once")} == {3.0}
    assert len(pair.results_commits(batch)) == 1
