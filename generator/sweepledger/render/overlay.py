"""The overlay of a batch: every file, and the name that follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from generator import __version__
from generator.formats import launch, lock, table, yaml
from generator.formats.lock import LOCK_FILE
from generator.formats.table import Row, Shard, Table
from generator.render import components, distributed, indexed, jobs, pod
from generator.render.bases import LAUNCHER, LAUNCHER_FILE, Bases
from generator.render.pod import Manifest
from generator.structs.batch import Batch, Lock
from generator.structs.names import BLANK_DIGEST, batch_name
from generator.structs.settings import Settings
from generator.structs.sweep import Metric, Shape
from generator.structs.tree import FileTree

BASES: Mapping[Shape, str] = {
    Shape.INDEXED: indexed.BASE,
    Shape.JOBS: jobs.BASE,
    **{shape: f"{shape}/v1" for shape in Shape if shape.is_distributed},
}
"""The folder below `base/` that a shape builds on."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A rendered batch."""

    lock: Lock
    tree: FileTree

    @property
    def name(self) -> str:
        """The batch's name, and the folder's."""
        return self.lock.name


def overlay(batch: Batch, bases: Bases, settings: Settings) -> Overlay:
    """Render a batch. Equal input gives equal bytes, and the name ends in their digest.

    The digest is taken with the name's own digits and the lock's digest field blank.
    """
    rows = [Row(trial.id, trial.assignment, trial.replicate) for trial in batch.trials]
    columns = table.columns(batch.columns, rows)
    written = Table(columns, table.shards(rows, columns))
    blank = _render("", batch, bases, settings, written)
    return _render(f"sha256:{blank.tree.digest}", batch, bases, settings, written)


def _render(digest: str, batch: Batch, bases: Bases, settings: Settings, written: Table) -> Overlay:
    own = digest.removeprefix("sha256:") or BLANK_DIGEST
    name = batch_name(batch.sweep.name, batch.number, own)
    files = {shard.file: shard.text.encode() for shard in written.shards}
    files[LAUNCHER_FILE] = bases.launcher
    manifests = _manifests(name, batch, bases, settings, written)
    files |= {file: text.encode() for file, text in manifests.items()}
    locked = _lock(name, digest, batch, settings, FileTree(files))
    files[LOCK_FILE] = lock.write(locked, banner=_banner(batch)).encode()
    return Overlay(locked, FileTree(files))


def _manifests(name: str, batch: Batch, bases: Bases, settings: Settings, written: Table) -> dict[str, str]:
    banner, shards = _banner(batch), written.shards
    listed: Manifest = {"resources": ["job.yaml"]}
    match batch.shape:
        case Shape.INDEXED:
            objects = [indexed.patch(name, batch, settings, shards)]
            listed = indexed.kustomization(batch, settings)
        case Shape.JOBS:
            objects = jobs.manifests(name, batch, settings, written, bases)
        case Shape.TRAIN_JOB | Shape.MPI_JOB | Shape.JOB_SET | Shape.PYTORCH_JOB | Shape.TF_JOB:
            objects = distributed.manifests(name, batch, settings, written, bases)
        case _:
            assert_never(batch.shape)
    return {
        launch.LAUNCH_FILE: launch.write(name, batch, settings, written, banner=banner),
        "job.yaml": yaml.dump(*objects, banner=banner),
        "kustomization.yaml": yaml.dump(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                **listed,
                **_config_maps(name, batch, settings, shards),
            },
            banner=banner,
        ),
    }


def _config_maps(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    names = pod.Objects(name)
    contents = [(names.launcher, [LAUNCHER_FILE, launch.LAUNCH_FILE])]
    contents += [(names.table(number), [shard.file]) for number, shard in enumerate(shards)]
    return {
        "configMapGenerator": [
            {"name": config_map, "namespace": settings.namespace, "files": files}
            for config_map, files in contents
        ],
        "generatorOptions": {
            "disableNameSuffixHash": True,
            "immutable": True,
            "labels": pod.labels(name, batch, settings),
        },
    }


def _lock(name: str, digest: str, batch: Batch, settings: Settings, files: FileTree) -> Lock:
    sweep = batch.sweep
    return Lock(
        name=name,
        digest=digest,
        sweep=sweep.name,
        number=batch.number,
        parent=batch.parent,
        spec_path=sweep.path,
        spec_digest=sweep.digest,
        shape=batch.shape,
        trials=len(batch.trials),
        metric=sweep.metric,
        other_metrics=tuple(Metric(other.name, other.goal) for other in sweep.other_metrics),
        program=batch.program,
        seed_base=sweep.run.seed_base,
        retries=sweep.run.retries,
        generator=__version__,
        bases=bases_of(batch, settings),
        files=files.digests,
        pool=sweep.run.pool,
        round=batch.round,
        method=None if batch.round is None else str(sweep.blocks[0].method),
        engine=batch.engine,
        parents=batch.parents,
    )


def bases_of(batch: Batch, settings: Settings) -> tuple[str, ...]:
    """Name the folders below `base/` that a batch is made from or builds on: launcher, base, components."""
    return (LAUNCHER, BASES[batch.shape], *components.chosen(batch, settings))


def _banner(batch: Batch) -> str:
    sweep = batch.sweep
    return (
        f"Generated by sweepledger {__version__} from {sweep.path} ({sweep.digest[:19]}).\n"
        f"Do not edit: change the spec and run `sweep generate {sweep.name}`."
    )
