"""The overlay of a batch: all its files, and a name that ends in their digest."""

from dataclasses import dataclass, replace

from msgspec import structs

from sweepledger import __version__
from sweepledger.formats import batch_json, hyperparams_csv, launch_json, yaml
from sweepledger.formats.hyperparams_csv import Row
from sweepledger.render import distributed, jobs, pod
from sweepledger.render.base_files import LAUNCHER_OBJECT, SHAPE_FOLDERS, TO_BASE, Bases
from sweepledger.render.manifest import Manifest
from sweepledger.render.pod import Pods
from sweepledger.structs.batch import Batch, BatchLock, SpecFile
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.metric import Metric
from sweepledger.structs.names import LAUNCHER, PLACEHOLDER_DIGEST, batch_name
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import GitSettings, NetworkSettings, ResultsSettings, TrialSettings
from sweepledger.structs.sweep import LockedKeys


@dataclass(frozen=True, slots=True)
class Overlay:
    """A rendered batch."""

    lock: BatchLock
    tree: FileTree

    @property
    def name(self) -> str:
        """The name of the batch and of its folder."""
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
    written = hyperparams_csv.write_table(batch.sweep.columns, rows)
    unnamed = batch_name(batch.sweep.name, batch.number, PLACEHOLDER_DIGEST)
    pods = Pods(unnamed, batch, written, bases, trials, network, results, git)
    lock, tree = _written(pods, _lock(pods))
    # A name that is in what the batch is rendered from must stay there as it is.
    nameless = replace(pods, name="", batch=structs.replace(batch, trials=()))
    if unnamed in repr(nameless):
        named = replace(pods, name=lock.name)
        lock, tree = _written(named, structs.replace(_lock(named), digest=lock.digest))
    return Overlay(lock, tree)


def _written(pods: Pods, lock: BatchLock) -> tuple[BatchLock, FileTree]:
    banner, has_sidecar = lock.generated, pods.results.bucket is not None
    given = lock.name, pods.batch, pods.table, pods.pool, pods.trials.secrets
    manifests = _manifests(pods) if pods.git.manifests else {}
    texts = {
        **{shard.file: shard.text for shard in pods.table.shards},
        launch_json.LAUNCH_FILE: launch_json.write(*given, has_sidecar=has_sidecar, banner=banner),
        **{path: yaml.dump(*objects, banner=banner) for path, objects in manifests.items()},
    }
    return batch_json.write(lock, texts)


def _manifests(pods: Pods) -> dict[str, list[Manifest]]:
    name, batch, trials = pods.name, pods.batch, pods.trials
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
        "job.yaml": objects,
        "kustomization.yaml": [
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
            }
        ],
    }


def _lock(pods: Pods) -> BatchLock:
    """Return the lock of a batch, without the facts about files that `batch_json` adds."""
    batch, sweep = pods.batch, pods.batch.sweep
    of_sweep = {name: getattr(sweep, name) for name in LockedKeys.__struct_fields__}
    shared = {*Batch.__struct_fields__} & {*BatchLock.__struct_fields__}
    of_batch = {name: getattr(batch, name) for name in shared - {"sweep", "trials"}}
    banner = (
        f"Generated by sweepledger {__version__} from {sweep.path} ({sweep.digest[:19]}).\n"
        f"Do not edit: change the spec and run `sweep generate {sweep.name}`."
    )
    return BatchLock(
        **of_sweep | of_batch | {"parents": dict(sorted(batch.parents.items()))},
        sweep=sweep.name,
        trials=len(batch.trials),
        generated=banner,
        name=pods.name,
        digest="",
        spec=SpecFile(sweep.path, sweep.digest),
        metric=sweep.metric,
        other_metrics=tuple(Metric(other.name, other.goal) for other in sweep.other_metrics),
        store=pods.results.store,
        method=None if batch.round is None else sweep.method,
        ahead=1 if batch.round is None or sweep.rounds is None else sweep.rounds.ahead,
        restarts=sweep.search is not None and sweep.search.restarts_trials,
        generator=__version__,
        bases=(LAUNCHER, SHAPE_FOLDERS[batch.shape], *pods.components),
        columns={column.name: str(column.type) for column in pods.table.columns},
        files={},
        blobs={},
    )
