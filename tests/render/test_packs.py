"""Pods of several trials: what the Job, the pods and the launcher are told, and what admission makes of them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.formats import batch_json
from sweepledger.formats.launch_json import PACK_PATH
from sweepledger.render import jobs
from sweepledger.structs import run_config
from sweepledger.structs.batch import Batch
from sweepledger.structs.quantities import format_bytes
from sweepledger.structs.run_config import Pack, Resources
from tests.render.building import built, job_of, named, pod_of, rendered
from tests.render.judging import refusals
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, a_source, the
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, pods_of, real_launcher

PACK = Pack(3, 2)


def packed(pack: Pack | None = PACK, **run: Any) -> Batch:
    return a_batch(sweep=replace(a_full_sweep("chosen", pack=pack, parallelism=4, **run), replicates=4))


def test_a_job_has_an_index_for_each_pack_and_as_many_pods_as_its_trials_may_need(tmp_path: Path) -> None:
    batch = packed(retries=1)
    trials = len(batch.trials)

    spec = job_of(built(batch, tmp_path, FULL_SETTINGS))["spec"]

    assert spec["completions"] == -(-trials // 3) == spec["maxFailedIndexes"]
    assert spec["parallelism"] == 2
    assert spec["backoffLimitPerIndex"] == 3 * (2 + 1) - 1, (
        "each attempt of each trial, and once beside others"
    )
    assert (
        spec["template"]["spec"]["activeDeadlineSeconds"] == 3 * (600 + 30) + run_config.POD_STARTUP_SECONDS
    )
    longest = spec["template"]["spec"]["activeDeadlineSeconds"] + 30 + run_config.MAX_BACKOFF_SECONDS
    starts = 3 * (2 + 1) + 3 * (batch.run.max_disruptions + 1)
    assert (
        spec["activeDeadlineSeconds"] == run_config.WAITING_SECONDS + spec["completions"] * starts * longest
    )


def test_no_deadline_is_longer_than_controllers_count() -> None:
    batch = packed(Pack(1000), timeout_seconds=30 * 86400)

    assert batch.run.pod_deadline(30) == run_config.LONGEST_DEADLINE
    assert jobs.job_deadline(pods_of(batch, FULL_SETTINGS)) == run_config.LONGEST_DEADLINE


def test_a_pod_has_room_for_the_trials_that_run_at_once_which_share_its_gpus(tmp_path: Path) -> None:
    manifests = built(packed(), tmp_path, FULL_SETTINGS)
    (trial,) = pod_of(manifests)["containers"]
    (alone,) = pod_of(built(packed(None), tmp_path, FULL_SETTINGS))["containers"]

    limits = trial["resources"]["limits"]
    assert (limits["cpu"], limits["memory"], limits["nvidia.com/gpu"]) == ("4", "16Gi", "2")
    volumes = pod_of(manifests)["volumes"]
    assert named(volumes, "scratch")["emptyDir"] == {"sizeLimit": "20Gi"}
    threads = [named(container["env"], "OMP_NUM_THREADS")["value"] for container in (trial, alone)]
    assert threads == ["2", "2"], "those of one trial, so that it computes the same"
    assert trial["command"] == ["python3", PACK_PATH]


def test_trials_that_share_a_pod_share_no_folder_for_temporary_files(tmp_path: Path) -> None:
    (trial,) = pod_of(built(packed(), tmp_path, FULL_SETTINGS))["containers"]
    (alone,) = pod_of(built(packed(None), tmp_path, FULL_SETTINGS))["containers"]

    shared, own = ({mount["mountPath"] for mount in each["volumeMounts"]} for each in (trial, alone))
    assert own - shared == {"/tmp"}  # noqa: S108 - inside the pod
    assert trial["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("pack", "size", "read_only"),
    [(PACK, None, True), (Pack(3), None, True), (Pack(3), "4Gi", False)],
    ids=str,
)
def test_shared_memory_is_read_only(tmp_path: Path, pack: Pack, size: str | None, *, read_only: bool) -> None:
    pod = pod_of(built(packed(pack, resources=Resources(shared_memory=size)), tmp_path, FULL_SETTINGS))

    mount = named(pod["containers"][0]["volumeMounts"], "shared-memory")
    assert mount == {"name": "shared-memory", "mountPath": "/dev/shm", "readOnly": read_only}  # noqa: S108
    assert named(pod["volumes"], "shared-memory")["emptyDir"]["sizeLimit"] == (size or "1Mi")


def test_a_pod_has_room_for_a_copy_of_the_code_for_each_trial_that_runs_at_once(tmp_path: Path) -> None:
    disk = 64 << 20
    limits = []
    for pack in (PACK, None):
        batch = packed(pack)
        code = replace(batch.program.code, disk=disk)
        pod = pod_of(
            built(
                replace(batch, program=replace(batch.program, code=code)),
                tmp_path,
                FULL_SETTINGS,
            )
        )
        limits.append(pod["containers"][0]["resources"]["limits"]["ephemeral-storage"])
        scratch = named(pod["volumes"], "scratch")["emptyDir"]["sizeLimit"]
        copies = 1 if pack is None else pack.at_once
        assert scratch == format_bytes(copies * ((10 << 30) + disk))
        for volume in ("clone", "code"):
            assert named(pod["volumes"], volume)["emptyDir"] == {"sizeLimit": format_bytes(2 * disk)}

    assert limits == [format_bytes((22 << 30) + 4 * disk), format_bytes((12 << 30) + 3 * disk)]


def test_the_launcher_knows_the_rows_of_a_pod_and_the_attempts_of_each(tmp_path: Path) -> None:
    made = rendered(packed(retries=2), FULL_SETTINGS)

    assert json.loads(made.tree.files["launch.json"])["pack"] == {"rows": 3, "at_once": 2, "attempts": 3}
    assert batch_json.read(made.tree.files["batch.json"]).run.pack == PACK
    assert "components/pack/v1" in made.lock.bases
    maps = [each for each in built(packed(), tmp_path, FULL_SETTINGS) if each["kind"] == "ConfigMap"]
    (launcher,) = (each for each in maps if each["metadata"]["name"].endswith("-launcher"))
    assert launcher["data"].keys() == {"launch.json", "pack.py", *real_launcher()}
    assert launcher["immutable"] is True


@pytest.mark.parametrize("kind", ["jobs", "pods"])
def test_admission_lets_a_pod_start_the_program_of_packs_and_no_other(kind: str, tmp_path: Path) -> None:
    settings, name = PLATFORM_SETTINGS, f"{PLATFORM_SETTINGS.trials.namespace}-trials"
    judged = the("ValidatingAdmissionPolicy", name, a_platform(settings, a_source()))

    jobs_built = {pack: job_of(built(packed(pack), tmp_path, settings)) for pack in (PACK, None)}

    def judge(batch: Batch, program: str | None = None) -> set[str]:
        job = deepcopy(jobs_built[batch.run.pack])
        template = job["spec"]["template"]
        if program is not None:
            template["spec"]["containers"][0]["command"][1] = program
        return refusals(judged, {**template, "kind": "Pod", "apiVersion": "v1"} if kind == "pods" else job)

    assert judge(packed()) == judge(packed(None))
    (refused,) = judge(packed(), "/sweep/results/pack.py") - judge(packed())
    assert "starts the launcher" in refused


@pytest.mark.parametrize(("trials", "at_once"), [(0, 1), (2, 3), (2, 0)])
def test_a_pod_runs_at_most_its_own_trials_at_once(trials: int, at_once: int) -> None:
    with pytest.raises(ValueError, match="must hold"):
        Pack(trials, at_once)
