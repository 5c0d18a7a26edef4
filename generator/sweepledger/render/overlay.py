"""The overlay of a batch: all its files, and the name that ends in their digest.

`batch_digest` computes the digest again from the files alone, without spec, bases or the original version.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sweepledger import __version__
from sweepledger.formats import documents, hyperparams_csv, launch_json, yaml
from sweepledger.formats.hyperparams_csv import Row
from sweepledger.render import distributed, jobs, pod
from sweepledger.render.base_files import LAUNCHER_OBJECT, SHAPE_FOLDERS, TO_BASE, Bases
from sweepledger.render.manifest import Manifest
from sweepledger.render.pod import Pods
from sweepledger.structs.batch import Batch, BatchLock, SpecFile
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.metric import Metric
from sweepledger.structs.names import LAUNCHER, LOCK_FILE, PLACEHOLDER_DIGEST, batch_name
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import GitSettings, NetworkSettings, ResultsSettings, TrialSettings
from sweepledger.structs.values import blob_id, bytes_digest

NOT_ARCHIVED = ("job.yaml", "kustomization.yaml", launch_json.LAUNCH_FILE)
"""Files that the archive leaves out: the lock and the table are enough to read results."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A rendered batch."""

    lock: BatchLock
    tree: FileTree

    @property
    def name(self) -> str:
        """The batch's name, and the folder's."""
        return self.lock.name


def overlay(
    batch: Batch,
    bases: Bases,
    trials: TrialSettings,
    network: NetworkSettings,
    results: ResultsSettings,
    git: GitSettings,
) -> Overlay:
    """Render a batch. Equal input gives equal bytes, and the name ends in their digest.

    The digest is computed with the digits in the name and the lock's digest field blank.
    """
    rows = [Row(trial.id, trial.assignment, trial.replicate) for trial in batch.trials]
    written = hyperparams_csv.write_table(batch.columns, rows)
    unnamed = batch_name(batch.sweep.name, batch.number, PLACEHOLDER_DIGEST)
    pods = Pods(unnamed, batch, written, bases, trials, network, results, git)
    files = _files(pods)
    digest = _tree(_lock(pods, "", files), files).digest
    name = batch_name(batch.sweep.name, batch.number, digest)
    # A name that is in what the batch is rendered from must stay there as it is.
    nameless = replace(pods, name="", batch=replace(batch, trials=()))
    pods = replace(pods, name=name)
    if unnamed in repr(nameless):
        files = _files(pods)
    else:
        files = {path: text.replace(unnamed.encode(), name.encode()) for path, text in files.items()}
    lock = _lock(pods, f"sha256:{digest}", files)
    return Overlay(lock, _tree(lock, files))


def _tree(lock: BatchLock, files: Mapping[str, bytes]) -> FileTree:
    return FileTree({**files, LOCK_FILE: documents.write(lock).encode()})


def _files(pods: Pods) -> dict[str, bytes]:
    has_sidecar = pods.results.bucket is not None
    launch = launch_json.write(
        pods.name,
        pods.batch,
        pods.table,
        pods.pool,
        pods.trials.secrets,
        has_sidecar=has_sidecar,
        banner=_banner(pods.batch),
    )
    files = {**{shard.file: shard.text for shard in pods.table.shards}, launch_json.LAUNCH_FILE: launch}
    if pods.git.manifests:
        files |= _manifests(pods)
    return {file: text.encode() for file, text in files.items()}


def _manifests(pods: Pods) -> dict[str, str]:
    name, batch, trials, banner = pods.name, pods.batch, pods.trials, _banner(pods.batch)
    listed: Manifest = {"resources": ["job.yaml"], "patches": []}
    match batch.shape:
        case Shape.INDEXED:
            objects = [jobs.indexed_patch(pods)]
            listed = jobs.indexed_kustomization(pods.components)
        case Shape.JOBS:
            objects = jobs.trial_jobs(pods)
        case _:
            objects = distributed.manifests(pods)
    return {
        "job.yaml": yaml.dump(*objects, banner=banner),
        "kustomization.yaml": yaml.dump(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "namespace": trials.namespace,
                **listed,
                "resources": [f"{TO_BASE}/{LAUNCHER}", *listed["resources"]],
                "patches": [
                    *listed["patches"],
                    {
                        "patch": f"- op: replace\n  path: /metadata/name\n  value: {pod.launcher_map(name)}\n",
                        "target": {"kind": "ConfigMap", "name": LAUNCHER_OBJECT},
                        "options": {"allowNameChange": True},
                    },
                ],
                "configMapGenerator": [
                    {"name": LAUNCHER_OBJECT, "behavior": "merge", "files": [launch_json.LAUNCH_FILE]},
                    *(
                        {"name": pod.table_map(name, at), "files": [shard.file]}
                        for at, shard in enumerate(pods.table.shards)
                    ),
                ],
                "generatorOptions": {"disableNameSuffixHash": True, "immutable": True, "labels": pods.labels},
            },
            banner=banner,
        ),
    }


def _lock(pods: Pods, digest: str, files: Mapping[str, bytes]) -> BatchLock:
    batch, sweep = pods.batch, pods.batch.sweep
    return BatchLock(
        generated=_banner(batch),
        name=pods.name,
        digest=digest,
        sweep=sweep.name,
        number=batch.number,
        parent=batch.parent,
        spec=SpecFile(sweep.path, sweep.digest),
        shape=batch.shape,
        trials=len(batch.trials),
        metric=sweep.metric,
        other_metrics=tuple(Metric(other.name, other.goal) for other in sweep.other_metrics),
        program=batch.program,
        run=sweep.run,
        cluster=batch.cluster,
        store=pods.results.store,
        round=batch.round,
        method=None if batch.round is None else sweep.method,
        engine=batch.engine,
        unfitted=batch.unfitted,
        ahead=1 if batch.round is None or sweep.rounds is None else sweep.rounds.ahead,
        parents=dict(sorted(batch.parents.items())),
        restarts=sweep.search is not None and sweep.search.restarts_trials,
        after_infrastructure=batch.after_infrastructure,
        repairs=batch.repairs,
        generator=__version__,
        bases=(LAUNCHER, SHAPE_FOLDERS[batch.shape], *pods.components),
        columns={column.name: str(column.type) for column in pods.table.columns},
        files=dict(sorted(FileTree(files).digests.items())),
        blobs={path: blob_id(files[path]) for path in NOT_ARCHIVED if path in files},
    )


def _banner(batch: Batch) -> str:
    sweep = batch.sweep
    return (
        f"Generated by sweepledger {__version__} from {sweep.path} ({sweep.digest[:19]}).\n"
        f"Do not edit: change the spec and run `sweep generate {sweep.name}`."
    )


def batch_digest(tree: FileTree, name: str, digest: str) -> str:
    """Return the digest of a batch's files with its name and its own digest blank, as when it was rendered.

    It equals the lock's `digest` if and only if nothing changed since, for every version that rendered it.
    """
    blank = f"{name[: -len(PLACEHOLDER_DIGEST)]}{PLACEHOLDER_DIGEST}".encode()
    files = {path: content.replace(name.encode(), blank) for path, content in tree}
    lock = files.get(LOCK_FILE, b"").replace(f'"{digest}"'.encode(), b'""')
    for path, content in tree:
        if path != LOCK_FILE:
            for identify in (bytes_digest, blob_id):
                lock = lock.replace(identify(content).encode(), identify(files[path]).encode())
    return f"sha256:{FileTree({**files, LOCK_FILE: lock}).digest}"
