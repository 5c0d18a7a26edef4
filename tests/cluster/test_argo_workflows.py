"""Exported Workflows with Argo's own controller: the pods that it makes are those of the batch's Jobs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.exchange.argo.batch_workflow import EXECUTOR_ACCOUNT
from tests.cluster import argo_workflows, controller_files
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.cluster.machine import Machine, start
from tests.exchange.test_argo_writing import ONE_POD, job_pod, written

pytestmark = pytest.mark.usefixtures("needs_kustomize")

NAMESPACE = "workflows"
PAGE = Path(__file__).parents[2] / "docs/how-to/to-argo-workflows.md"
SECONDS = 180.0
PRIORITY = "batch"
"""Of the pods of a case."""
WORKFLOW = "workflows.argoproj.io/workflow"
NODE_NAME = "workflows.argoproj.io/node-name"
STEP = re.compile(r"\.trial-(?P<job>\d+)\(")


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A cluster without a node, with Argo's controller, and the accounts that the page asks for."""
    try:
        made = start(has_node=False)
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    try:
        server = made.server
        server.kubectl("create", "namespace", NAMESPACE)
        server.kubectl("create", "serviceaccount", "sweep-trial", f"--namespace={NAMESPACE}")
        (accounts,) = re.findall(r"```yaml executor.yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
        server.apply(*yaml.safe_load_all(accounts.replace("namespace: research", f"namespace: {NAMESPACE}")))
        server.kubectl("create", "priorityclass", PRIORITY, "--value=1")
        argo_workflows.start(made, NAMESPACE)
        yield made
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    finally:
        made.children.end_all()


def pods(machine: Machine, workflow: str) -> list[Mapping[str, Any]]:
    listed = controller_files.objects(machine, "pods", NAMESPACE)
    return [pod for pod in listed if pod["metadata"].get("labels", {}).get(WORKFLOW) == workflow]


def differences(wanted: Any, got: Any, path: str = "pod") -> Iterator[str]:
    """Yield what a pod lacks of what it must have; the API server and Argo may add to it."""
    match wanted:
        case dict() if isinstance(got, dict):
            for key, value in wanted.items():
                yield from differences(value, got.get(key), f"{path}.{key}")
        case [{"name": _}, *_] | [{"mountPath": _}, *_] if isinstance(got, list):
            key = "mountPath" if "mountPath" in wanted[0] else "name"
            named = {each.get(key): each for each in got}
            for each in wanted:
                yield from differences(each, named.get(each[key]), f"{path}[{each[key]}]")
        case [{"effect": _}, *_] if isinstance(got, list):  # tolerations, to which the API server adds two
            yield from (f"{path}: no {each}" for each in wanted if each not in got)
        case _:
            if wanted != got:
                yield f"{path}: wanted {wanted!r}, got {got!r}"


def as_argo_has_it(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod of a Job with Argo's name of its container, whose command begins with Argo's program."""
    (container,) = pod["containers"]
    kept = {key: value for key, value in container.items() if key != "command"}
    return pod | {"containers": [kept | {"name": "main"}]}


@pytest.mark.parametrize("case", ONE_POD, ids=lambda path: path.parents[1].name)
def test_argos_controller_makes_the_pods_of_the_jobs(machine: Machine, case: Path, tmp_path: Path) -> None:
    manifests, workflow, beside = written(tmp_path, case)
    for manifest in (*beside, workflow):
        manifest["metadata"]["namespace"] = NAMESPACE
    name = workflow["metadata"]["name"]
    jobs = [each for each in manifests if each["kind"] == "Job"]
    at_once = sum(job["spec"].get("parallelism", 1) for job in jobs)

    machine.server.apply(*beside, workflow)
    until(f"{name} has its pods", lambda: len(pods(machine, name)) == at_once, seconds=SECONDS)

    rows = set()
    for pod in pods(machine, name):
        step = STEP.search(pod["metadata"]["annotations"][NODE_NAME])
        assert step
        (main,) = [each for each in pod["spec"]["containers"] if each["name"] == "main"]
        (row,) = [each["value"] for each in main["env"] if each["name"] == "JOB_COMPLETION_INDEX"]
        wanted = job_pod(jobs[int(step["job"])], int(row))
        assert list(differences(as_argo_has_it(wanted), pod["spec"])) == []
        command = wanted["containers"][0]["command"]
        assert main["command"][-len(command) - 1 :] == ["--", *command]
        assert pod["spec"]["serviceAccountName"] == wanted["serviceAccountName"] != EXECUTOR_ACCOUNT
        rows.add((step["job"], row))
    assert len(rows) == at_once, "no row twice"
    machine.server.kubectl("delete", "workflow", name, f"--namespace={NAMESPACE}", "--wait=false")
