"""Trials whose records are in pods and whose files are on a volume that one node mounts."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller, ResultsSettings, ResultsStore, Settings
from tests.render.building import accepted, built, job_of, named, pod_templates
from tests.render.judging import refusals
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, cron_pod, trial_policy
from tests.render.test_bucket_store import IMAGE
from tests.sweeps import a_batch, a_full_sweep, with_keys


def on_a_claim(**results: Any) -> Settings:
    chosen = ResultsSettings(store=ResultsStore.CLAIM, claim="disk", **results)
    return replace(PLATFORM_SETTINGS, results=chosen)


SETTINGS = on_a_claim()


@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOB_SET], ids=str)
def test_in_every_shape_pods_are_held_and_mount_their_folder(shape: Shape, tmp_path: Path) -> None:
    batch = a_batch(shape, sweep=a_full_sweep("chosen", retries=0, nodes=2), image=IMAGE)

    made, manifests = accepted(batch, tmp_path, SETTINGS)

    assert made.lock.store is ResultsStore.CLAIM
    assert pod_templates(manifests)
    for template in pod_templates(manifests):
        pod = template["spec"]
        assert template["metadata"]["finalizers"] == ["sweepledger.dev/record"]
        assert named(pod["volumes"], "results") == {
            "name": "results",
            "persistentVolumeClaim": {"claimName": "disk"},
        }
        (trial,) = pod["containers"]
        mount = named(trial["volumeMounts"], "results")
        assert mount.get("subPath", mount.get("subPathExpr", "")).startswith(f"{made.name}/")
        assert "store" not in [each["name"] for each in pod.get("initContainers", ())]


def test_a_pod_that_is_not_held_is_refused(tmp_path: Path) -> None:
    job = job_of(built(a_batch(sweep=a_full_sweep("chosen"), image=IMAGE), tmp_path, SETTINGS))
    del job["spec"]["template"]["metadata"]["finalizers"]

    (message,) = refusals(trial_policy(SETTINGS), job)

    assert "finalizer sweepledger.dev/record alone" in message


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX], ids=str)
def test_the_expiry_mounts_the_claim(controller: Controller) -> None:
    tree = a_platform(with_keys(on_a_claim(keep_days=30), controller=controller, datasets={}))

    volumes = cron_pod("sweep-expiry", tree)["volumes"]
    assert named(volumes, "results")["persistentVolumeClaim"]["claimName"] == "disk"
