"""Batches as Argo Workflows: the pods of their Jobs, started by another controller."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from sweepledger.commands.exchange import export_batch
from sweepledger.commands.generate import generate
from sweepledger.errors import UsageError
from sweepledger.exchange.argo import batch_workflow
from sweepledger.repo import kustomize
from tests.cluster import building
from tests.cluster.apiserver import Server
from tests.cluster.overlays import CASES, laid_out
from tests.exchange.imported import whats
from tests.repository import IMAGE, Sandbox

ONE_POD = [
    case for case in CASES if case.parents[1].name in {"jobs", "indexed", "options-indexed", "options-jobs"}
]
case = pytest.mark.parametrize("case", ONE_POD, ids=lambda path: path.parents[1].name)
Manifests = Sequence[Any]


def written(folder: Path, overlay: Path) -> tuple[Manifests, dict[str, Any], list[Any]]:
    """Return the manifests of an overlay, its Workflow, and the objects beside it."""
    manifests = kustomize.build(laid_out(folder, overlay))
    *beside, workflow = yaml.safe_load_all(batch_workflow.write(overlay.name, manifests).text)
    return manifests, workflow, beside


def pod_of(workflow: dict[str, Any], template: dict[str, Any], row: int) -> dict[str, Any]:
    """Return the spec of the pod that Argo makes of a template, without Argo's own containers."""
    text = json.dumps(template["container"]).replace("{{inputs.parameters.row}}", str(row))
    pod = json.loads(template.get("podSpecPatch", "{}"))
    pod |= {key: template[key] for key in batch_workflow.TEMPLATE_KEYS if key in template}
    if "imagePullSecrets" in workflow["spec"]:
        pod["imagePullSecrets"] = workflow["spec"]["imagePullSecrets"]
    pod |= {"restartPolicy": "Never", "containers": [{"name": "trial", **json.loads(text)}]}
    return dict(pod)


def job_pod(job: Any, row: int) -> dict[str, Any]:
    """Return the spec of a Job's pod as its controller completes it, without the annotations that only a Job has."""
    pod: dict[str, Any] = deepcopy(job["spec"]["template"]["spec"])
    container = pod["containers"][0]
    kept = [one for one in container["env"] if one["name"] not in {"SWEEP_FAILURES", "SWEEP_DISRUPTIONS"}]
    container["env"] = [{"name": "JOB_COMPLETION_INDEX", "value": str(row)}, *kept]
    return pod


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("needs_kustomize")
@case
def test_the_pods_of_a_workflow_are_those_of_the_jobs(case: Path, tmp_path: Path) -> None:
    manifests, workflow, beside = written(tmp_path, case)

    jobs = [each for each in manifests if each["kind"] == "Job"]
    steps, *templates = workflow["spec"]["templates"]
    assert beside == [each for each in manifests if each["kind"] == "ConfigMap"]
    assert len(templates) == len(jobs) == len(steps["steps"][0])
    for job, template, step in zip(jobs, templates, steps["steps"][0], strict=True):
        rows = job["spec"].get("completions", 1)
        assert (step["template"], step["withSequence"]) == (template["name"], {"count": str(rows)})
        for row in range(rows):
            assert pod_of(workflow, template, row) == job_pod(job, row)
        assert template["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]
        assert template["retryStrategy"]["limit"] == str(job["spec"]["backoffLimitPerIndex"])


@pytest.mark.full_suite("the definitions of Argo Workflows")
@pytest.mark.usefixtures("needs_kustomize")
@case
def test_argos_own_definition_has_every_key_of_a_workflow(case: Path, tmp_path: Path) -> None:
    folder = building.built(building.WORKFLOW_CRDS)
    if folder is None:
        pytest.skip("skipped: no definitions of Argo Workflows (make api-tools)")
    definition = yaml.load((folder / "argoproj.io_workflows.yaml").read_text(), yaml.CSafeLoader)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {}
    refuse_unknown(schema)

    _, workflow, _ = written(tmp_path, case)

    validator = jsonschema_rs.validator_for(schema)
    assert [error.message for error in validator.iter_errors(workflow)] == []
    template = workflow["spec"]["templates"][1]
    template["containers"] = [template.pop("container")]
    assert not validator.is_valid(workflow), "an unknown key is refused"


@pytest.mark.full_suite("a real API server with the definitions of Argo Workflows")
@pytest.mark.usefixtures("needs_kustomize")
def test_a_real_api_server_with_argos_definitions_takes_the_workflows(
    apiserver: Server, tmp_path: Path
) -> None:
    folder = building.built(building.WORKFLOW_CRDS)
    if folder is None:
        pytest.skip("skipped: no definitions of Argo Workflows (make api-tools)")
    apiserver.define(folder, ("argoproj.io_workflows",))

    for number, overlay in enumerate(ONE_POD):
        _, workflow, beside = written(tmp_path / str(number), overlay)
        # Another one than that of the platform, whose policies other tests of this server put in force.
        for manifest in (*beside, workflow):
            manifest["metadata"]["namespace"] = "workflows"
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "workflows"}})
        assert apiserver.refuses(*beside, workflow) == ""
        workflow["spec"]["templates"][0]["stepz"] = []
        assert 'unknown field "stepz"' in apiserver.refuses(workflow)


def refuse_unknown(schema: Any) -> None:
    """Refuse keys that a schema does not name, as the API server does with strict validation."""
    if isinstance(schema, list):
        for inner in schema:
            refuse_unknown(inner)
    if isinstance(schema, dict):
        if schema.get("x-kubernetes-int-or-string"):
            schema.pop("type", None)
        is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
        if isinstance(schema.get("properties"), dict) and not is_open:
            schema["additionalProperties"] = False
        for inner in schema.values():
            refuse_unknown(inner)


@pytest.mark.usefixtures("needs_kustomize")
def test_what_argo_does_otherwise_is_reported(tmp_path: Path) -> None:
    (full,) = (case for case in ONE_POD if case.parents[1].name == "options-indexed")
    manifests = kustomize.build(laid_out(tmp_path, full))

    losses = whats(batch_workflow.write(full.name, manifests).losses)

    assert losses == ["max_disruptions", "deadline of the Job", "max_failed: 1", "queue: research"]


@pytest.mark.usefixtures("needs_kustomize")
def test_text_that_argo_would_replace_and_trials_of_several_pods_are_refused(tmp_path: Path) -> None:
    (small,) = (case for case in ONE_POD if case.parents[1].name == "indexed")
    *maps, job = kustomize.build(laid_out(tmp_path, small))
    hostile = json.loads(json.dumps(job))
    hostile["spec"]["template"]["spec"]["containers"][0]["args"] = ["{{workflow.name}}"]

    with pytest.raises(UsageError, match="in which Argo would replace"):
        batch_workflow.write("small", [*maps, hostile])
    with pytest.raises(UsageError, match="of the kind JobSet, and a step of Argo is one pod"):
        batch_workflow.write("small", [*maps, {**job, "kind": "JobSet"}])


@pytest.mark.usefixtures("needs_kustomize")
def test_a_committed_batch_is_exported_if_nothing_else_runs_it(
    sandbox: Sandbox, run_sweep: Callable[..., Any]
) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\ndefaults: {{image: '{IMAGE}'}}\n")
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    done = run_sweep("export", "argo", "peak", "--output", "peak.yaml", cwd=sandbox.root)

    assert done.returncode == 0, done.stderr
    assert "max_disruptions" in done.stderr
    *_, workflow = yaml.safe_load_all((sandbox.root / "peak.yaml").read_text())
    assert workflow["spec"]["templates"][0]["steps"][0][0]["withSequence"] == {"count": "3"}
    sandbox.write("sweepledger.yaml", f"version: 1\ncontroller: argocd\ndefaults: {{image: '{IMAGE}'}}\n")
    with pytest.raises(UsageError, match="argocd applies the Jobs of peak-b1-"):
        export_batch(sandbox.workspace, "argo", "peak")


@pytest.mark.usefixtures("needs_kustomize")
def test_a_batch_without_an_image_is_refused(sandbox: Sandbox) -> None:
    sandbox.merged()

    with pytest.raises(UsageError, match="has the image local, and Argo starts containers"):
        export_batch(sandbox.workspace, "argo", "peak")
