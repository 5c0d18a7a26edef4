"""Lock, launch file and table describe on this machine what the manifests describe in a cluster."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.local.local_batch import LocalBatch
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.operations.repository import rendered_manifests
from sweepledger.operations.repository.rendered_manifests import local_batch_at
from sweepledger.repo import batches, kustomize
from sweepledger.structs.kubernetes import BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED
from sweepledger.structs.quantities import whole_quantity
from sweepledger.structs.run_config import OTHER_DISK
from tests.golden.test_golden import CASES, generated
from tests.repository import Sandbox
from tests.sweeps import BASE, real_launcher

DISTRIBUTED = {"job-set", "mpi-job", "pytorch-job", "tf-job", "train-job"}
NEEDS_CLUSTER = {"job-set", "options-indexed", "pool-devices", "pool-pod"}
"""A case with several pods for a trial, with Secrets, and with devices of a pool."""
OF_A_POD = {"SWEEP_POD_UID", "SWEEP_NODE", "SWEEP_FAILURES", "SWEEP_DISRUPTIONS", "SWEEP_RAN"}
"""Variables that the node sets."""
VALUES = ("SWEEP_INDEX", "SWEEP_PARAM_")
"""Beginnings of variables of shape `jobs`, which the launcher sets from the table."""
AUTHORITIES = "/sweep/authorities/"
"""Certificates of a cluster: a machine has its own."""
OF_A_CLUSTER = {"tokens", "store-seals", "store-credentials", "authorities", "code"}
"""Volumes that only a cluster has: there the code comes from a clone, here from the repository."""


def made(sandbox: Sandbox, case: Path) -> tuple[LocalBatch, tuple[Mapping[str, Any], ...]]:
    generated(sandbox, case)
    shutil.copytree(BASE, sandbox.root / "base", dirs_exist_ok=True)
    sandbox.commit("Add the batch")
    repository = sandbox.workspace.repository
    (stored,) = batches.in_commit(repository, repository.commit("HEAD"))
    settings = sandbox.workspace.settings
    batch = local_batch_at(repository, "HEAD", stored, settings.trials, settings.network.proxy)
    return batch, kustomize.build(sandbox.root / stored.folder)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in DISTRIBUTED], ids=lambda case: case.name
)
def test_a_batch_runs_alike_here(case: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendered_manifests, "_cluster_needs", lambda *_: ())  # only to compare the rest
    batch, manifests = made(sandbox, case)
    jobs = [manifest for manifest in manifests if manifest["kind"] == "Job"]

    for number, job in enumerate(jobs):
        _compare_job(batch, job["spec"], of=len(jobs))
        _compare_times(batch, job["spec"])
        _compare_pod(batch, job["spec"]["template"]["spec"], number)
    maps = [manifest["data"] for manifest in manifests if manifest["kind"] == "ConfigMap"]
    contents = {name: text for data in maps for name, text in data.items()}
    assert contents == {path.rpartition("/")[2]: text.decode() for path, text in batch.files.items()}


def _compare_job(batch: LocalBatch, spec: Mapping[str, Any], *, of: int) -> None:
    pods = len({batch.pod_number(row) for row in batch.indexes})
    assert spec["completions"] * of == pods
    assert spec["parallelism"] * of == batch.parallelism
    attempts = batch.retries + 1
    if batch.pack is None:
        assert spec["backoffLimitPerIndex"] == batch.retries
    else:
        assert spec["backoffLimitPerIndex"] >= attempts
    if batch.max_failed is not None:
        assert spec["maxFailedIndexes"] == batch.max_failed
    rules = {rule["action"]: rule for rule in spec["podFailurePolicy"]["rules"]}
    assert rules["FailIndex"]["onExitCodes"]["values"] == [BAD_HYPERPARAMETERS, DISRUPTED]
    assert rules["FailJob"]["onExitCodes"]["values"] == [BAD_SWEEP]


def _compare_times(batch: LocalBatch, spec: Mapping[str, Any]) -> None:
    pod = spec["template"]["spec"]
    times = pod["terminationGracePeriodSeconds"], pod["activeDeadlineSeconds"], spec["activeDeadlineSeconds"]
    expected = batch.grace, batch.pod_deadline, batch.deadline
    if "initContainers" in pod:  # its sidecar needs time of its own after a signal
        assert all(time >= least for time, least in zip(times, expected, strict=True))
    else:
        assert times == expected


def _compare_pod(batch: LocalBatch, spec: Mapping[str, Any], number: int) -> None:
    (container,) = spec["containers"]
    assert tuple(container["command"]) == batch.command
    variables = {item["name"]: item.get("value") for item in container["env"]}
    parent = batch.parents.get(number)
    declared = batch.declared_variables(number, parent)
    expected = {name: value for name, value in declared.items() if name != "JOB_COMPLETION_INDEX"}
    shared = {
        name: value
        for name, value in variables.items()
        if name not in OF_A_POD and not name.startswith(VALUES) and not (value or "").startswith(AUTHORITIES)
    }
    if "initContainers" in spec:  # a pod that clones has a proxy for this alone
        shared = {name: value for name, value in shared.items() if not name.lower().endswith("_proxy")}
    assert shared == expected
    _compare_resources(batch, container["resources"])
    mounts = {
        mount["mountPath"]
        for mount in container["volumeMounts"]
        if mount["name"] not in OF_A_CLUSTER and not mount["name"].startswith("secret-")
    }
    folders = {
        **batch.kept_folders(number, parent, Path("/state")),
        **batch.temporary_folders(Path("/own")),
        **batch.read_only_folders(
            Path("/state"), Path("/c"), None if batch.data is None else Path("/state/data")
        ),
    }
    assert {_without_dataset(path) for path in mounts} == folders.keys() - {"/code"}
    scratch = next(volume for volume in spec["volumes"] if volume["name"] == "scratch")
    assert whole_quantity(scratch["emptyDir"]["sizeLimit"]) == batch.scratch


def _without_dataset(path: str) -> str:
    """Return the folder of all datasets for that of one of several."""
    return "/sweep/data" if path.startswith("/sweep/data/") else path


def _compare_resources(batch: LocalBatch, resources: Mapping[str, Any]) -> None:
    assert resources["limits"] == resources["requests"]
    amounts = resources["limits"]
    assert whole_quantity(amounts["cpu"], unit=1000) == batch.limits.milli_cpus
    assert whole_quantity(amounts["memory"]) == batch.limits.memory
    assert int(amounts.get("nvidia.com/gpu", 0)) == batch.limits.gpus
    assert whole_quantity(amounts["ephemeral-storage"]) >= batch.scratch + OTHER_DISK


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in NEEDS_CLUSTER], ids=lambda case: case.name
)
def test_what_only_a_cluster_can_run_is_refused_here(case: Path, sandbox: Sandbox) -> None:
    with pytest.raises(SpecError) as refused:
        made(sandbox, case)

    assert {problem.code for problem in refused.value.problems} == {"needs-cluster"}


def test_a_commit_without_a_part_of_the_launcher_runs_nothing(sandbox: Sandbox) -> None:
    part = "launch_lines.py"
    case = next(case for case in CASES if case.name == "indexed")
    batch, _ = made(sandbox, case)
    (sandbox.root / "base/launcher/v1" / part).unlink()
    commit = sandbox.commit("Remove the launcher")
    repository = sandbox.workspace.repository
    (stored,) = batches.in_commit(repository, commit)

    with pytest.raises(RepositoryError, match=f"lacks base/launcher/v1/{part}.* {batch.name}"):
        local_batch_at(repository, commit, stored, sandbox.workspace.settings.trials, None)


def test_only_the_launcher_and_its_parts_lie_beside_it(sandbox: Sandbox) -> None:
    made(sandbox, next(case for case in CASES if case.name == "indexed"))
    sandbox.write("base/launcher/v1/glob.py", "raise ImportError")
    sandbox.write("base/launcher/v1/notes/launch.py", "raise SystemExit(1)")
    commit = sandbox.commit("Add notes to the launcher")
    repository = sandbox.workspace.repository
    (stored,) = batches.in_commit(repository, commit)

    local = local_batch_at(repository, commit, stored, sandbox.workspace.settings.trials, None)

    programs = {
        path.removeprefix("launcher/"): content
        for path, content in local.files.items()
        if path.endswith(".py")
    }
    assert programs == real_launcher()


def test_a_trial_has_the_proxy_that_its_spec_asks_for(sandbox: Sandbox, tmp_path: Path) -> None:
    case = tmp_path / "case"
    shutil.copytree(next(case for case in CASES if case.name == "proxied"), case)
    spec = case / "sweeps/proxied.yaml"
    spec.write_text(spec.read_text().replace("  shape: jobs", "  shape: jobs\n  egress: [proxy]"))

    batch, _ = made(sandbox, case)

    assert batch.variables["HTTPS_PROXY"] == "http://proxy.example.org:3128"
