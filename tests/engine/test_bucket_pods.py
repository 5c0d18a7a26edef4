"""Batches whose results go to a bucket, on one machine: their files stay in the state folder."""

from dataclasses import replace
from pathlib import Path

from sweepledger.engine.local import manifests
from sweepledger.engine.local.job_spec import BatchSpec, Mount, ResultsVolume
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import BucketSettings, ResultsSettings, ResultsStore
from tests.render.building import built, rendered
from tests.sweeps import SETTINGS, a_batch

IN_A_BUCKET = replace(
    SETTINGS,
    results=ResultsSettings(
        store=ResultsStore.BUCKET,
        bucket=BucketSettings("s3://sweeps/vision", "bucket", secret="sweep-bucket"),  # noqa: S106 - the name of one
    ),
)


def test_no_sidecar_runs_and_a_parents_checkpoints_are_among_the_results(tmp_path: Path) -> None:
    batch = replace(a_batch(Shape.JOBS), parents={1: "t-1"}, parent_folders={1: "lr-b1-3f9a1c2e/7"})
    name = rendered(batch, IN_A_BUCKET).name

    parsed = manifests.parse_batch(name, built(batch, tmp_path, IN_A_BUCKET))

    assert isinstance(parsed, BatchSpec), parsed
    first, second = parsed.jobs
    assert not {"store", "store-credentials"} & {*first.pod.volumes}
    assert first.pod.volumes["results"] == ResultsVolume()
    (mount,) = [mount for mount in second.pod.mounts if mount.path == "/sweep/parent"]
    assert mount == Mount("parent", "/sweep/parent", "lr-b1-3f9a1c2e/7/checkpoints", expanded=False)
    assert second.pod.volumes["parent"] == ResultsVolume()
