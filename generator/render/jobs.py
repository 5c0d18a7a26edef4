"""Shape `jobs`: one complete, readable Job a trial; what a reviewer reads is what runs."""

from generator.formats import yaml
from generator.formats.table import Table
from generator.render import components, options, pod
from generator.render.bases import Bases
from generator.render.merging import merge, merge_all
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.labels import TRIAL_LABEL
from generator.structs.settings import Settings

BASE = "jobs/v1"


def manifests(name: str, batch: Batch, settings: Settings, table: Table, bases: Bases) -> list[Manifest]:
    """Fill in `base/jobs/v1/job.yaml` for every trial, in the order of the table."""
    base: Manifest = yaml.load(bases.files[f"{BASE}/job.yaml"])
    shared = merge_all(
        base["spec"]["template"],
        *(components.patch(bases, component) for component in components.chosen(batch, settings)),
        options.template(name, batch, settings, table.shards),
    )
    made = []
    for index in range(len(batch.trials)):
        own = options.of_trial(name, batch, settings, table, index)
        changed: Manifest = {
            "metadata": _metadata(name, batch, settings, index),
            "spec": {"backoffLimit": batch.run.retries, "template": merge(shared, own)},
        }
        made.append(merge({**base, "spec": {**base["spec"], "template": {}}}, changed))
    return made


def _metadata(name: str, batch: Batch, settings: Settings, index: int) -> Manifest:
    labels = pod.labels(name, batch, settings) | pod.queue_labels(batch, settings)
    trial = batch.trials[index]
    return {
        "name": f"{name}-{trial.id}",
        "namespace": settings.namespace,
        "labels": labels | pod.trial_labels(batch, index),
        "annotations": pod.annotations(batch) | {TRIAL_LABEL: f"sha256:{trial.digest}"},
    }
