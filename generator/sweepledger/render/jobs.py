"""The shapes that are plain Jobs: `indexed`, one Indexed Job per batch, and `jobs`, one Indexed Job per trial.

`indexed` writes a patch for the frozen base; `jobs` writes complete Jobs, so that a review shows what runs.
"""

from sweepledger.formats import yaml
from sweepledger.formats.hyperparams_csv import Shard, Table
from sweepledger.render import base_files, pod
from sweepledger.render.base_files import SHAPE_FOLDERS, TO_BASE, Bases
from sweepledger.render.manifest import Manifest, merge
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import COMPLETION_INDEX_VARIABLE, trial_folder_by_variable
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings

LONGEST_JOB_NAME = 61
"""The pod of an Indexed Job has the Job's name and `-0` as its host name, which has 63 characters at most.

Only a long sweep's batch 100 or later loses one or two of the eleven digits of the trial.
"""


def job_deadline(batch: Batch, settings: Settings) -> int:
    """Return the seconds after which a Job ends, whatever its pods do."""
    grace, startup = pod.grace_seconds(batch, settings), pod.startup_seconds(batch, settings)
    return batch.run.job_deadline(len(batch.trials), grace, startup)


def indexed_patch(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Return only what differs from `base/trial/v1/job.yaml` with the batch's components."""
    run = batch.run
    pods = run.pods(len(batch.trials))
    own = pod.output_mounts(settings, trial_folder_by_variable(name, COMPLETION_INDEX_VARIABLE))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": pod.labels(name, batch, settings) | pod.queue_labels(batch, settings),
            "annotations": pod.annotations(batch) | pod.queue_annotations(batch, settings),
        },
        "spec": {
            "completions": pods,
            "parallelism": run.pods_at_once(len(batch.trials)),
            "backoffLimitPerIndex": run.pod_attempts - 1,
            "maxFailedIndexes": pods if run.max_failed is None else min(run.max_failed, pods),
            "activeDeadlineSeconds": job_deadline(batch, settings),
            "template": merge(pod.template(name, batch, settings, shards), own),
        },
    }


def indexed_kustomization(batch: Batch, settings: Settings) -> Manifest:
    """Return the kustomization: base, components, and the patch, which is applied last."""
    chosen = base_files.components_of(batch, settings)
    return {
        "resources": [f"{TO_BASE}/{SHAPE_FOLDERS[Shape.INDEXED]}"],
        **({"components": [f"{TO_BASE}/{name}" for name in chosen]} if chosen else {}),
        "patches": [
            {
                "path": "job.yaml",
                "target": {"kind": "Job", "name": "trial"},
                "options": {"allowNameChange": True},
            }
        ],
    }


def trial_jobs(name: str, batch: Batch, settings: Settings, table: Table, bases: Bases) -> list[Manifest]:
    """Return `base/jobs/v1/job.yaml` filled in for every trial, in the order of the table."""
    base: Manifest = yaml.load(bases.files[f"{SHAPE_FOLDERS[Shape.JOBS]}/job.yaml"])
    shared = pod.shared_template(base["spec"]["template"], name, batch, settings, table.shards, bases)
    made = []
    for index in range(len(batch.trials)):
        own = pod.trial_template(name, batch, settings, table, index)
        changed: Manifest = {
            "metadata": pod.trial_metadata(
                name, f"{name}-{batch.trials[index].id}"[:LONGEST_JOB_NAME], batch, settings, index
            ),
            "spec": {
                "backoffLimitPerIndex": batch.run.retries,
                "activeDeadlineSeconds": job_deadline(batch, settings),
                "template": merge(shared, own),
            },
        }
        made.append(merge({**base, "spec": {**base["spec"], "template": {}}}, changed))
    return made
