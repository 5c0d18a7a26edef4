"""Each option of a batch, as kustomize renders it in both shapes that it serves."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.formats import hyperparams_csv, yaml
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import EGRESS_LABEL
from sweepledger.structs.run_config import CodeMode, Resources, Shape
from sweepledger.structs.settings import (
    Egress,
    ResultsSettings,
    ResultsStore,
)
from tests.render.building import built, job_of, named, pod_of, pod_templates, rendered
from tests.render.judging import check_batch
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, a_sweep, with_keys

POOLS = pytest.mark.parametrize("pool", ["queued", "chosen", "sliced"])


WITHOUT_FILES = replace(FULL_SETTINGS, results=ResultsSettings(store=ResultsStore.API))
FINALIZER = "sweepledger.dev/record"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", sorted({*Shape} - {Shape.MPI_JOB}), ids=str)
def test_without_a_volume_pods_of_every_shape_are_held(shape: Shape, tmp_path: Path) -> None:
    batch = a_batch(shape, sweep=a_full_sweep("chosen", retries=0))
    made = rendered(batch, WITHOUT_FILES)
    manifests = built(batch, tmp_path, WITHOUT_FILES)

    assert check_batch(made.name, WITHOUT_FILES, manifests, file="x") == ()
    assert made.lock.store is ResultsStore.API
    templates = pod_templates(manifests)
    assert templates
    for template in templates:
        assert template["metadata"]["finalizers"] == [FINALIZER]
        (results,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "results"]
        assert results == {"name": "results", "emptyDir": {"sizeLimit": "10Gi"}}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", sorted(Shape), ids=str)
def test_a_command_starts_in_a_folder_of_its_own(shape: Shape, tmp_path: Path) -> None:
    manifests = built(a_batch(shape, sweep=a_full_sweep("chosen", retries=0)), tmp_path, FULL_SETTINGS)

    templates = pod_templates(manifests)
    assert templates
    for template in templates:
        (trial,) = template["spec"]["containers"]
        mounts = {mount["mountPath"]: mount for mount in trial["volumeMounts"]}
        assert mounts[trial["workingDir"]] == {"name": "scratch", "mountPath": "/sweep/scratch"}
        assert "emptyDir" in named(template["spec"]["volumes"], "scratch")
        assert mounts["/code"]["readOnly"] is True
        assert trial["securityContext"]["readOnlyRootFilesystem"] is True


def full(shape: Shape, folder: Path, pool: str = "queued", **run: Any) -> tuple[Any, ...]:
    return built(a_batch(shape, sweep=a_full_sweep(pool, **run)), folder, FULL_SETTINGS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", Shape, ids=str)
@POOLS
def test_all_options_together_pass_the_policy(shape: Shape, pool: str, tmp_path: Path) -> None:
    batch = a_batch(shape, sweep=a_full_sweep(pool, nodes=2 if shape.is_distributed else 1))
    name = rendered(batch, FULL_SETTINGS).name

    assert check_batch(name, FULL_SETTINGS, built(batch, tmp_path, FULL_SETTINGS), file="x") == ()


def test_a_slice_of_a_gpu_is_asked_for_by_its_own_name(tmp_path: Path) -> None:
    (container,) = pod_of(full(Shape.INDEXED, tmp_path, "sliced"))["containers"]

    limits = container["resources"]["limits"]
    assert limits["nvidia.com/mig-1g.5gb"] == "2"
    assert "nvidia.com/gpu" not in limits
    assert limits == container["resources"]["requests"]


def test_the_deadline_is_timeout_grace_and_the_start_up_of_the_pool(tmp_path: Path) -> None:
    pod = pod_of(full(Shape.INDEXED, tmp_path, "chosen", timeout_seconds=1000))

    assert pod["activeDeadlineSeconds"] == 1000 + 30 + 900, "a pool may only lengthen the fifteen minutes"


def test_a_pod_that_clones_may_reach_the_git_server_where_the_settings_know_it() -> None:
    git = Egress("git", ("198.51.100.7/32",), (443,))
    known = with_keys(FULL_SETTINGS, egress={**FULL_SETTINGS.network.egress, "git": git})
    baked = a_full_sweep(code_mode=CodeMode.IMAGE)

    def reached(batch: Batch) -> set[str]:
        labels = yaml.load(rendered(batch, known).tree["job.yaml"])["spec"]["template"]["metadata"]["labels"]
        return {label.removeprefix(EGRESS_LABEL) for label in labels if label.startswith(EGRESS_LABEL)}

    assert reached(a_batch(sweep=a_full_sweep())) == {"git", "hub"}
    assert reached(a_batch(sweep=baked)) == {"hub"}


def test_a_sweep_that_bears_few_failures_says_so(tmp_path: Path) -> None:
    few = a_sweep(run=replace(a_sweep().run, max_failed=0))

    assert job_of(built(a_batch(sweep=few), tmp_path))["spec"]["maxFailedIndexes"] == 0


def test_clones_without_credentials_mount_no_secret(tmp_path: Path) -> None:
    assert FULL_SETTINGS.git.code
    public = with_keys(
        FULL_SETTINGS, code=replace(FULL_SETTINGS.git.code, secret=None), results=ResultsSettings()
    )
    sweep = a_sweep(run=replace(a_sweep().run, code_mode=CodeMode.CLONE))

    pod = pod_of(built(a_batch(sweep=sweep), tmp_path, public))

    (clone,) = pod["initContainers"]
    assert {mount["mountPath"] for mount in clone["volumeMounts"]} == {"/code", "/sweep/clone"}
    assert clone["image"] == "registry.example.org/tools/git:2.50@sha256:" + "1" * 64
    assert clone["resources"]["limits"] == clone["resources"]["requests"]
    assert "secret" not in {key for volume in pod["volumes"] for key in volume}


def test_several_shards_are_paid_for_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperparams_csv.write_table, "__kwdefaults__", {"limit": 60})
    modest = a_sweep(run=replace(a_sweep().run, resources=Resources("1", "2Gi")))

    (container,) = pod_of(built(a_batch(sweep=modest), tmp_path))["containers"]

    assert container["resources"]["limits"]["memory"] == "2049Mi"
