"""Sweeps and batches for tests: valid by default, one change a test."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from generator import search
from generator.render.overlay import Bases
from generator.repo import files
from generator.structs.batch import Batch
from generator.structs.domain import Choice, Constant
from generator.structs.program import Code, Data, Program
from generator.structs.settings import Dataset, Settings
from generator.structs.space import Parameter, SearchSpace
from generator.structs.sweep import Goal, Grid, Metric, Resources, Run, Shape, Sweep

BASE = Path(__file__).parent.parent / "base"

SPACE = SearchSpace(
    (Parameter("learning_rate", Choice((0.1, 1e-05))), Parameter("name", Constant('say "on"')))
)

SETTINGS = Settings(datasets={"mnist": Dataset("mnist", "mnist-claim", "sha256:" + "d" * 64)})


def a_sweep(**changes: Any) -> Sweep:
    sweep = Sweep(
        name="lr",
        description="Which learning rate?",
        metric=Metric("accuracy", Goal.MAXIMIZE),
        blocks=(Grid(SPACE),),
        command=("python", "-m", "trainer", "${args}", "--seed=${seed}"),
        run=Run(data="mnist", parallelism=2, retries=1, timeout_seconds=600, resources=Resources("1", "2Gi")),
        path="sweeps/lr.yaml",
        digest="sha256:" + "e" * 64,
    )
    return replace(sweep, **changes)


def a_program(sweep: Sweep, **changes: Any) -> Program:
    data = None if sweep.run.data is None else Data("mnist", "sha256:" + "d" * 64)
    return replace(Program("local", sweep.command, Code("trainer", "c" * 40), data), **changes)


def a_batch(shape: Shape = Shape.INDEXED, *, sweep: Sweep | None = None, **program: Any) -> Batch:
    chosen = sweep or a_sweep()
    runs = a_program(chosen, **program)
    return Batch(chosen, 1, None, runs, search.expand(chosen, runs), shape)


def some_bases() -> Bases:
    """The real bases, but for a launcher that is short to read."""
    return Bases({**real_bases().files, "launcher/v1/launch.py": b"# launcher\n"})


def real_bases() -> Bases:
    return Bases(files.read_folder(BASE).files)
