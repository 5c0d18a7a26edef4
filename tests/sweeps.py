"""Sweeps and batches for tests: valid by default, one change a test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from msgspec import Struct
from msgspec.structs import replace

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.formats.hyperparams_csv import Table
from sweepledger.model.keys import EntryName, attributes_of, decode, is_struct, keys_of, type_of
from sweepledger.render.base_files import Bases
from sweepledger.render.overlay import Overlay, overlay
from sweepledger.render.pod import Pods
from sweepledger.repo import files
from sweepledger.search import expansion
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import CLAIMS_VERSION
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.node_pool import NodeCapacity, PodSettings, Pool, Toleration
from sweepledger.structs.pod_fields import PodField
from sweepledger.structs.program import Code, Data, Program
from sweepledger.structs.run_config import CodeMode, Resources, RunConfig, Shape
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.settings import (
    CodeSource,
    Dataset,
    Egress,
    Image,
    ResultsSettings,
    SecretReference,
    Settings,
    TrialSettings,
)
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.sweep import Sweep
from tools.json_schemas import examples_of

BASE = Path(__file__).parent.parent / "base"

SPACE = SearchSpace(
    (Parameter("learning_rate", Choice((0.1, 1e-05))), Parameter("name", Constant('say "on"')))
)


def with_keys(settings: Settings, **keys: Any) -> Settings:
    """Return settings with other values of some keys of the document, whichever groups have them."""
    groups = {
        name: replace(group, **{key: keys.pop(key) for key in {*keys} & {*group.__struct_fields__}})
        for name in ("trials", "network", "git", "platform", "fleet", "admission", "teams")
        for group in [getattr(settings, name)]
    }
    return replace(settings, **groups, **keys)


def with_every_key(annotation: Any) -> Any:
    """Return a part of a document that has every key, each with its first example."""
    stated = type_of(annotation)
    if is_struct(stated.kind) and stated.form is None:
        return {name: with_every_key(key.annotation) for name, key in keys_of(stated.kind).items()}
    if examples := examples_of(stated):
        return examples[0]
    if get_origin(stated.kind) is not Mapping:
        return [with_every_key(get_args(stated.kind)[0])]
    (name,) = (part.name for part in stated.metadata if isinstance(part, EntryName))
    return {name: with_every_key(get_args(stated.kind)[1])}


def keys_of_pods(kind: type[Struct]) -> dict[str, Any]:
    """Return the attributes of a class that decide fields of pods, with the first examples of their keys."""
    return {
        attribute.name: decode(attribute.type, with_every_key(attribute.type))
        for attribute, stated in attributes_of(kind)
        if any(isinstance(part, PodField) for part in stated.metadata)
    }


SETTINGS = with_keys(Settings(), datasets={"mnist": Dataset("mnist", "mnist-claim", "sha256:" + "d" * 64)})

POOLS = {
    "queued": Pool(
        "queued", NodeCapacity("16", "128Gi", 8), queue="research", gpu_type="NVIDIA-H100-80GB-HBM3"
    ),
    "chosen": Pool(
        "chosen",
        NodeCapacity("8", "64Gi", 1),
        selector={"pool": "gpu"},
        tolerations=(Toleration("nvidia.com/gpu"), Toleration("team", "vision", "NoExecute")),
        startup_seconds=600,
        spot=True,
    ),
    "sliced": Pool(
        "sliced", NodeCapacity("8", "64Gi", 7), queue="slices", gpu_resource="nvidia.com/mig-1g.5gb"
    ),
}

FULL_SETTINGS = with_keys(
    Settings(),
    namespace="research",
    results=ResultsSettings("results", checkpoints="fast", artifacts="large"),
    code=CodeSource("https://git.example.org/team/sweeps.git", "git", "git-read"),
    images={"git": Image("git", "registry.example.org/tools/git", "sha256:" + "1" * 64, "2.50")},
    datasets={"mnist": Dataset("mnist", "mnist-claim", "sha256:" + "d" * 64, path="digits/v2")},
    secrets={"hub": SecretReference("hub", "hub-token", "token", "HF_TOKEN")},
    egress={"hub": Egress("hub", ("192.0.2.0/24",), (443,))},
    pools=POOLS,
    labels={"cost-center": "vision"},
    **keys_of_pods(TrialSettings),
)
"""Whatever a platform can offer."""

POD_SETTINGS: PodSettings = decode(PodSettings, with_every_key(PodSettings))
POD_POOL_SETTINGS = with_keys(
    FULL_SETTINGS,
    pools={**POOLS, "chosen": replace(POOLS["chosen"], pod=POD_SETTINGS)},
    kubernetes=CLAIMS_VERSION,
)
"""The same, with a pool that sets everything about its pods."""


def overlay_of(batch: Batch, bases: Bases, settings: Settings) -> Overlay:
    return overlay(batch, bases, settings.trials, settings.network, settings.results, settings.git)


def pods_of(batch: Batch, settings: Settings) -> Pods:
    trials, network, results, git = settings.trials, settings.network, settings.results, settings.git
    return Pods("lr-b1-00000000", batch, Table((), ()), some_bases(), trials, network, results, git)


def a_sweep(**changes: Any) -> Sweep:
    sweep = Sweep(
        name="lr",
        description="Which learning rate?",
        metric=Metric("accuracy", Goal.MAXIMIZE),
        design=GridSearch(SPACE),
        command=("python", "-m", "trainer", "${args}", "--seed=${seed}"),
        run=RunConfig(
            data="mnist", parallelism=2, retries=1, timeout_seconds=600, resources=Resources("1", "2Gi")
        ),
        path="sweeps/lr.yaml",
        digest="sha256:" + "e" * 64,
    )
    return replace(sweep, **changes)


def a_full_sweep(pool: str = "queued", **run: Any) -> Sweep:
    requested = {
        "image": "registry.example.org/team/trainer@sha256:" + "a" * 64,
        "code_mode": CodeMode.CLONE,
        "pool": pool,
        "priority": "urgent" if pool == "queued" else None,
        "resources": Resources("2", "8Gi", gpu=2, scratch="10Gi", shared_memory="4Gi"),
        "secrets": ("hub",),
        "egress": ("hub",),
        "environment": {"HF_HOME": "/sweep/scratch/hub"},
        **keys_of_pods(RunConfig),
    }
    return a_sweep(run=replace(a_sweep().run, **{**requested, **run}))


def a_program(sweep: Sweep, **changes: Any) -> Program:
    data = None if sweep.run.data is None else Data(sweep.run.data, "sha256:" + "d" * 64)
    return replace(Program("local", sweep.command, Code("trainer", "c" * 40), data), **changes)


def a_batch(shape: Shape = Shape.INDEXED, *, sweep: Sweep | None = None, **program: Any) -> Batch:
    chosen = sweep or a_sweep()
    runs = a_program(chosen, **program)
    return Batch(chosen, runs, expansion.expand(chosen, runs), shape=shape)


def some_bases() -> Bases:
    """The real bases, but for a launcher that is short to read."""
    return {**real_bases(), "launcher/v1/launch.py": b"# launcher\n"}


def real_bases() -> Bases:
    return files.read_folder(BASE).files


def real_launcher() -> Bases:
    """The launcher and its parts, by name."""
    return {path.name: path.read_bytes() for path in sorted((BASE / "launcher/v1").glob("*.py"))}
