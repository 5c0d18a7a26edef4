"""The overlay of a batch: every file, and the name that follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator import __version__
from generator.formats import launch, lock, table, yaml
from generator.formats.lock import LOCK_FILE
from generator.formats.table import Column, Row, Shard
from generator.render import indexed, jobs, pod
from generator.render.pod import Manifest
from generator.structs.batch import Batch, Lock
from generator.structs.names import BLANK_DIGEST, batch_name
from generator.structs.settings import Settings
from generator.structs.sweep import Shape
from generator.structs.tree import FileTree

LAUNCHER = "launcher/v1"
LAUNCHER_FILE = "launch.py"


@dataclass(frozen=True, slots=True)
class Bases:
    """What lies below `base/`: overlays copy it, fill it in, or refer to it."""

    files: Mapping[str, bytes]
    """By path below `base/`, such as `launcher/v1/launch.py`."""

    @property
    def launcher(self) -> bytes:
        """The launcher, of which every overlay has a copy."""
        return self.files[f"{LAUNCHER}/{LAUNCHER_FILE}"]


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


@dataclass(frozen=True, slots=True)
class Table:
    """The part of an overlay that does not depend on its name."""

    columns: tuple[Column, ...]
    shards: tuple[Shard, ...]


def _render(digest: str, batch: Batch, bases: Bases, settings: Settings, written: Table) -> Overlay:
    own = digest.removeprefix("sha256:") or BLANK_DIGEST
    name = batch_name(batch.sweep.name, batch.number, own)
    files = {shard.file: shard.text.encode() for shard in written.shards}
    files[LAUNCHER_FILE] = bases.launcher
    manifests = _manifests(name, batch, bases, settings, written)
    files |= {file: text.encode() for file, text in manifests.items()}
    locked = _lock(name, digest, batch, FileTree(files))
    files[LOCK_FILE] = lock.write(locked, banner=_banner(batch)).encode()
    return Overlay(locked, FileTree(files))


def _manifests(name: str, batch: Batch, bases: Bases, settings: Settings, written: Table) -> dict[str, str]:
    banner, shards = _banner(batch), written.shards
    match batch.shape:
        case Shape.INDEXED:
            job = [indexed.patch(name, batch, settings, shards)]
            listed = indexed.kustomization(name, batch, settings)
        case Shape.JOBS:
            job = jobs.manifests(
                name, batch, settings, shards, yaml.load(bases.files[f"{jobs.BASE}/job.yaml"])
            )
            listed = {"resources": ["job.yaml"]}
        case _:
            raise NotImplementedError(batch.shape)
    return {
        "launch.json": launch.write(name, batch, written.columns, shards, banner=banner),
        "job.yaml": yaml.dump(*job, banner=banner),
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
    objects = pod.Objects(name)
    contents = [(objects.launcher, [LAUNCHER_FILE, launch.LAUNCH_FILE])]
    contents += [(objects.table(number), [shard.file]) for number, shard in enumerate(shards)]
    return {
        "configMapGenerator": [
            {"name": config_map, "namespace": settings.namespace, "files": files}
            for config_map, files in contents
        ],
        "generatorOptions": {
            "disableNameSuffixHash": True,
            "immutable": True,
            "labels": pod.labels(name, batch),
        },
    }


def _lock(name: str, digest: str, batch: Batch, files: FileTree) -> Lock:
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
        program=batch.program,
        seed_base=sweep.run.seed_base,
        retries=sweep.run.retries,
        generator=__version__,
        bases=(LAUNCHER, indexed.BASE if batch.shape is Shape.INDEXED else jobs.BASE),
        files=files.digests,
    )


def _banner(batch: Batch) -> str:
    sweep = batch.sweep
    return (
        f"Generated by sweepledger {__version__} from {sweep.path} ({sweep.digest[:19]}).\n"
        f"Do not edit: change the spec and run `sweep generate {sweep.name}`."
    )
