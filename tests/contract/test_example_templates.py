"""docs/example-templates.md: the sweeps of NVIDIA's and EIDF's examples, as their templates meant them."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.repo import kustomize
from tests.repository import Sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"

SCRIPT = '''"""Look up item JOB_ID of hyperparams.yml, as the examples' scripts do, and say what was found."""
import hashlib, os, yaml
with open("hyperparams.yml") as stream:
    text = stream.read()
hyperparams = yaml.safe_load(text)[int(os.environ["JOB_ID"]) - 1]["hyperparam_set"]
print("set", sorted(hyperparams.items()))
print("digest", hashlib.sha256(text.encode()).hexdigest())
print("{metric}=" + str(hyperparams["batch_size"] / 1000))
with open(os.environ["SWEEP_RESULT"], "w") as log:
    log.write("{metric},".replace("_", " ") + str(hyperparams["batch_size"] / 1000) + "\\r\\n")
'''

SIXTEEN_TRIALS = pytest.mark.full_suite("larger examples")

CASES = {"cifar10": ("cifar10_train.py", "test_acc", 16), "mnist-eidf": ("main.py", "accuracy", 4)}


def example(sandbox: Sandbox, name: str) -> Sandbox:
    """Give the sandbox an example's settings, sweeps, and a script with the interface of the original."""
    script, metric, _ = CASES[name]
    shutil.rmtree(sandbox.root / "code")
    shutil.copy(EXAMPLES / name / "sweepledger.yaml", sandbox.root)
    shutil.copytree(EXAMPLES / name / "sweeps", sandbox.root / "sweeps")
    sandbox.publish("Bring the example", {f"code/{script}": SCRIPT.replace("{metric}", metric)})
    return sandbox


def rendered(sandbox: Sandbox) -> list[dict[str, Any]]:
    sandbox.commit_batches("Ask for it")
    (batch,) = sandbox.active()
    return [dict(manifest) for manifest in kustomize.build(sandbox.root / "overlays/active" / batch)]


def jobs(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [manifest for manifest in manifests if manifest["kind"] == "Job"]


@pytest.mark.usefixtures("needs_kustomize")
def test_nvidias_sixteen_jobs_have_what_the_template_meant(sandbox: Sandbox) -> None:
    made = jobs(rendered(example(sandbox, "cifar10")))

    assert len(made) == len({job["metadata"]["name"] for job in made}) == 16
    for job in made:
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert job["metadata"]["namespace"] == "cifar10"
        assert job["spec"]["parallelism"] == 1
        assert pod["restartPolicy"] == "Never"
        assert container["image"].startswith("nvcr.io/nvidia/pytorch:18.11-py3@sha256:")
        assert container["args"] == ["--", "python", "code/cifar10_train.py"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert volumes["data"]["persistentVolumeClaim"] == {"claimName": "cifar10-dataset", "readOnly": True}
        assert mounts["data"]["readOnly"] is True
        assert mounts["data"]["subPath"] == "cifar10-data"
        assert mounts["results"]["subPath"].endswith(f"/{job['metadata']['labels']['sweepledger.dev/index']}")
        assert not {"gitRepo", "nfs", "hostPath"} & {key for volume in pod["volumes"] for key in volume}
        assert pod["tolerations"][0]["key"] == "nvidia.com/gpu"
        assert pod["activeDeadlineSeconds"] > 30 * 60
        assert "ttlSecondsAfterFinished" not in job["spec"]
    assert sandbox.check().problems == ()


@pytest.mark.usefixtures("needs_kustomize")
def test_eidfs_job_queues_clones_its_code_and_names_its_gpu(sandbox: Sandbox) -> None:
    made = jobs(rendered(example(sandbox, "mnist-eidf")))

    assert sum(job["spec"]["completions"] for job in made) == 4
    for job in made:
        pod = job["spec"]["template"]["spec"]
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "eidf000ns-user-queue"
        assert job["metadata"]["labels"]["eidf/user"] == "somebody"
        assert "suspend" not in job["spec"]
        assert not {"nodeSelector", "tolerations"} & pod.keys()
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term["matchExpressions"] == [
            {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-A100-SXM4-40GB"]}
        ]
        assert len(pod["initContainers"]) == 1
        assert all(
            {"cpu", "memory"} <= init_container["resources"]["limits"].keys()
            for init_container in pod["initContainers"]
        )
    assert sandbox.check().problems == ()


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mnist-eidf", "jobs"),
        ("mnist-eidf", "indexed"),
        pytest.param("cifar10", "jobs", marks=SIXTEEN_TRIALS),
        pytest.param("cifar10", "indexed", marks=SIXTEEN_TRIALS),
    ],
)
def test_the_script_finds_its_set_in_either_shape(name: str, shape: str, sandbox: Sandbox) -> None:
    example(sandbox, name)
    (path,) = (sandbox.root / "sweeps").glob("*.yaml")
    data = yaml.safe_load(path.read_text())
    run = {"code": {"path": "code"}, "hyperparams_file": True, "shape": shape, "parallelism": 16}
    changed = {"command": [sys.executable, f"code/{CASES[name][0]}"], "run": run}
    path.write_text(yaml.safe_dump(data | changed, sort_keys=False))
    sandbox.commit("Run it here, without a cluster", {"sweepledger.yaml": "version: 1\n"})
    sandbox.publish_batches("Ask for it")

    (collected,) = [event for event in sandbox.local() if isinstance(event, ResultsCommit)]

    outcomes = collected.summary.outcomes
    assert len(outcomes) == CASES[name][2]
    for outcome in outcomes:
        metric = outcome.metric(CASES[name][1])
        assert metric == outcome.assignment["batch_size"] / 1000
