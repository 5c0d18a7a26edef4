"""A repository whose sweep is a search, and trials that leave what they found without being run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit, commit_results
from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.rounds.next_round import RoundDue
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.verbs.cluster.next_ import SearchStep, write_next
from tests.operations.test_collect import leave as leave_one
from tests.repository import Sandbox

HILL = """name: {name}
description: Where is the hill?
method: {method}
seed: 7
rounds: {{size: {size}, max: {rounds}}}
metric: {{name: score, goal: maximize}}
parameters:
  x: {{min: -5.0, max: 5.0}}
  bias: {{values: [0.0, 0.5]}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: 4
  max_disruptions: 0
  timeout: 1m
{more}"""

SLOPE = """import argparse, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
for step in range(1, 5):
    print(f"step={step} score={x * step}", flush=True)
    if x < 0 and step == 2:
        time.sleep(600)
"""
"""A program whose score grows with each step; where it falls, it hangs until it is ended."""


def hill(sandbox: Sandbox, name: str = "hill", *, more: str = "", **changes: Any) -> Path:
    """Write the spec of a search for the top of a parabola."""
    chosen = {"method": "tpe", "size": 3, "rounds": 5, **changes}
    return sandbox.write(f"sweeps/{name}.yaml", HILL.format(name=name, more=more, **chosen))


def begun(
    sandbox: Sandbox, name: str = "hill", *, settings: str = "next: collector\n", **changes: Any
) -> str:
    """Merge a search with its first round; give the round's name. The same search is begun once per process."""

    def begin() -> str:
        sandbox.write("sweepledger.yaml", f"version: 1\n{settings}")
        hill(sandbox, name, **changes)
        (made,) = generate(sandbox.workspace, [name])
        sandbox.publish("Ask for a search")
        assert made.batch is not None
        return made.batch.name

    return sandbox.once(("search", name, settings, repr(sorted(changes.items()))), begin)


def score(assignment: Mapping[str, Any]) -> float:
    return 1.0 - float(assignment["x"] - 2) ** 2 - float(assignment["bias"])


def leave(results: Path, batch: StoredBatch, **changes: Any) -> None:
    """Leave a record of every trial of a batch, as its launcher would."""
    for trial in expected_trials(batch):
        document = {"metrics": {"score": score(trial.assignment)}, **changes}
        leave_one(results, batch, trial.index, **document)


def active(workspace: Workspace, commit: str = "refs/remotes/origin/main") -> tuple[StoredBatch, ...]:
    repository = workspace.repository
    return tuple(
        batch for batch in batches.in_commit(repository, repository.commit(commit)) if batch.is_active
    )


def record(sandbox: Sandbox, results: Path, target: Target | None = None) -> tuple[ResultsCommit, ...]:
    """Let every active trial end and the collector record it; the sandbox's clone has it afterwards."""
    sandbox.git("fetch", "-q", "origin")
    for batch in active(sandbox.workspace):
        leave(results, batch)
    commits = commit_results(
        target or Target(sandbox.workspace.repository, "origin", "main"), on_volume(results), ()
    )
    sandbox.pull()
    return commits


def due(step: SearchStep | ResultsCommit) -> RoundDue:
    """Return the round that follows, which must be due."""
    assert isinstance(step.step, RoundDue)
    return step.step


def followed(workspace: Workspace, name: str = "hill", *, base: str | None = "HEAD") -> SearchStep:
    """Say what follows in a search at the commit that is checked out, and write nothing."""
    (step,) = write_next(workspace, [name], check=True, base=base)
    return step
