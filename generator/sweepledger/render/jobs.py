"""The shapes that are plain Jobs: `indexed`, one Indexed Job per batch, and `jobs`, one Indexed Job per trial.

`indexed` writes a patch for the frozen base; `jobs` writes complete Jobs, so that a review shows what runs.
"""

from collections.abc import Iterable

from sweepledger.formats import yaml
from sweepledger.render.base_files import SHAPE_FOLDERS, TO_BASE
from sweepledger.render.manifest import Manifest, merge
from sweepledger.render.pod import Pods
from sweepledger.structs.kubernetes import COMPLETION_INDEX_VARIABLE, trial_folder_by_variable
from sweepledger.structs.run_config import Shape

LONGEST_JOB_NAME = 61
"""The pod of an Indexed Job has the Job's name and `-0` as its host name, which has 63 characters at most.

Only a long sweep's batch 100 or later loses one or two of the eleven digits of the trial.
"""


def job_deadline(pods: Pods) -> int:
    """Return the seconds after which a Job ends, whatever its pods do."""
    return pods.run.job_deadline(len(pods.batch.trials), pods.grace_seconds, pods.startup_seconds)


def indexed_patch(pods: Pods) -> Manifest:
    """Return the patch: only the differences from `base/trial/v1/job.yaml` with the batch's components."""
    run, trials = pods.run, len(pods.batch.trials)
    count = run.packed.pods(trials)
    own = pods.output_mounts(trial_folder_by_variable(pods.name, COMPLETION_INDEX_VARIABLE))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": pods.name,
            "labels": pods.labels | pods.queue_labels,
            "annotations": pods.annotations | pods.queue_annotations,
        },
        "spec": {
            "completions": count,
            "parallelism": run.pods_at_once(trials),
            "backoffLimitPerIndex": run.pod_attempts - 1,
            "maxFailedIndexes": count if run.max_failed is None else min(run.max_failed, count),
            "activeDeadlineSeconds": job_deadline(pods),
            "template": merge(pods.template(), own),
        },
    }


def indexed_kustomization(components: Iterable[str]) -> Manifest:
    """Return the kustomization: base, components, and the patch, which is applied last."""
    chosen = [f"{TO_BASE}/{name}" for name in components]
    return {
        "resources": [f"{TO_BASE}/{SHAPE_FOLDERS[Shape.INDEXED]}"],
        **({"components": chosen} if chosen else {}),
        "patches": [
            {
                "path": "job.yaml",
                "target": {"kind": "Job", "name": "trial"},
                "options": {"allowNameChange": True},
            }
        ],
    }


def trial_jobs(pods: Pods) -> list[Manifest]:
    """Return `base/jobs/v1/job.yaml` filled in for every trial, in the order of the table."""
    base: Manifest = yaml.load(pods.bases[f"{SHAPE_FOLDERS[Shape.JOBS]}/job.yaml"])
    shared = pods.shared_template(base["spec"]["template"])
    made = []
    for index, trial in enumerate(pods.batch.trials):
        changed: Manifest = {
            "metadata": pods.trial_metadata(f"{pods.name}-{trial.id}"[:LONGEST_JOB_NAME], index),
            "spec": {
                "backoffLimitPerIndex": pods.run.retries,
                "activeDeadlineSeconds": job_deadline(pods),
                "template": merge(shared, pods.trial_template(index)),
            },
        }
        made.append(merge({**base, "spec": {**base["spec"], "template": {}}}, changed))
    return made
