"""The admission policies, evaluated by Google's own CEL, on what we render and on single faults."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cel_expr_python import cel  # type: ignore[import-untyped]

from generator.structs.settings import Controller, Settings
from generator.structs.sweep import Shape
from tests.render.building import built
from tests.render.platforms import DISTRIBUTED, PLATFORM_SETTINGS, THREE_POOLS, a_platform, a_source, the
from tests.render.pod_faults import POD_FAULTS, a_volume
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep

Manifest = dict[str, Any]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64


def refusals(policy: Manifest, manifest: Manifest) -> set[str]:
    """Give the messages of the rules that do not hold."""
    given: dict[str, Any] = {"object": manifest, "variables": {}}
    for variable in policy["spec"].get("variables", ()):
        given["variables"][variable["name"]] = evaluated(variable["expression"], given)
    return {
        rule["message"] for rule in policy["spec"]["validations"] if not evaluated(rule["expression"], given)
    }


def evaluated(expression: str, given: dict[str, Any]) -> Any:
    return _plain(_compiled(expression).eval(data=given).value())


@cache
def _compiled(expression: str) -> Any:
    return cel.NewEnv(variables={"object": cel.Type.DYN, "variables": cel.Type.DYN}).compile(expression)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(getattr(item, "value", lambda item=item: item)()) for item in value]
    if isinstance(value, dict):
        return {
            str(_plain(getattr(key, "value", lambda key=key: key)())): _plain(
                getattr(item, "value", lambda item=item: item)()
            )
            for key, item in value.items()
        }
    return value


def jobs_policy(settings: Settings = PLATFORM_SETTINGS, shapes: tuple[Shape, ...] = ()) -> Manifest:
    tree = a_platform(settings, a_source(shapes=shapes))
    return the("ValidatingAdmissionPolicy", f"{settings.namespace}-trial-jobs", tree)


def pods_policy() -> Manifest:
    return the("ValidatingAdmissionPolicy", "research-trial-pods", a_platform())


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """An Indexed Job with every option, as kustomize builds it."""
    batch = a_batch(sweep=a_full_sweep(), image=IMAGE)
    made = built(batch, tmp_path_factory.mktemp("built"), FULL_SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def test_a_rendered_job_with_every_option_is_admitted(job: Manifest) -> None:
    assert refusals(jobs_policy(), job) == set()


def test_its_pods_are_admitted(job: Manifest) -> None:
    assert refusals(pods_policy(), job["spec"]["template"]) == set()


def test_jobs_of_the_shape_jobs_are_admitted(tmp_path: Path) -> None:
    made = built(a_batch(Shape.JOBS, sweep=a_full_sweep(), image=IMAGE), tmp_path, FULL_SETTINGS)

    for manifest in made:
        if manifest["kind"] == "Job":
            assert refusals(jobs_policy(), manifest) == set()


@pytest.mark.parametrize("fault", POD_FAULTS)
def test_a_single_fault_is_refused_in_the_job_and_in_the_pod(fault: str, job: Manifest) -> None:
    says, change = POD_FAULTS[fault]
    faulty = deepcopy(job)

    change(faulty["spec"]["template"]["spec"])

    for policy, manifest in ((jobs_policy(), faulty), (pods_policy(), faulty["spec"]["template"])):
        (message,) = refusals(policy, manifest)
        assert says in message


def test_a_job_with_a_ttl_is_refused(job: Manifest) -> None:
    faulty = deepcopy(job)

    faulty["spec"]["ttlSecondsAfterFinished"] = 60

    assert "TTL" in refusals(jobs_policy(), faulty).pop()


def test_a_job_with_a_generated_name_is_refused(job: Manifest) -> None:
    faulty = deepcopy(job)

    faulty["metadata"]["generateName"] = "lr-"

    assert "name" in refusals(jobs_policy(), faulty).pop()


def test_where_every_pool_has_a_queue_no_job_goes_past_them(job: Manifest) -> None:
    policy = jobs_policy(replace(PLATFORM_SETTINGS, pools=THREE_POOLS))
    past, wrong, through = deepcopy(job), deepcopy(job), deepcopy(job)

    past["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    wrong["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "somebody-elses"
    through["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "heavy"

    assert "cpu, heavy, light" in refusals(policy, past).pop()
    assert "cpu, heavy, light" in refusals(policy, wrong).pop()
    assert refusals(policy, through) == set()


def test_where_a_pool_has_no_queue_a_job_needs_none_but_may_name_no_foreign_one(job: Manifest) -> None:
    past, wrong = deepcopy(job), deepcopy(job)

    past["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    wrong["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "somebody-elses"

    assert refusals(jobs_policy(), past) == set()
    assert refusals(jobs_policy(), wrong)


def test_jobs_that_a_distributed_trial_consists_of_need_no_queue_of_their_own(job: Manifest) -> None:
    policy = jobs_policy(replace(PLATFORM_SETTINGS, pools=THREE_POOLS), DISTRIBUTED)
    child = deepcopy(job)

    child["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    child["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "lr", "controller": True}]

    assert refusals(policy, child) == set()


def test_only_where_mpi_runs_the_keys_that_its_operator_makes_are_admitted(job: Manifest) -> None:
    launcher = deepcopy(job)

    a_volume(secret={"secretName": "lr-b1-3f9a1c2e-t0-ssh"})(launcher["spec"]["template"]["spec"])

    assert refusals(jobs_policy(), launcher)
    assert refusals(jobs_policy(shapes=(Shape.MPI_JOB,)), launcher) == set()


def test_flux_is_asked_for_nothing_but_batches_and_their_root() -> None:
    tree = a_platform(active=("lr-b1-3f9a1c2e",))
    policy = the("ValidatingAdmissionPolicy", "research-flux-batches", tree)
    batch = the("Kustomization", "lr-b1-3f9a1c2e", tree)

    assert refusals(policy, batch) == set()
    assert refusals(policy, the("Kustomization", "sweeps", tree)) == set()
    for change in (
        {"serviceAccountName": "sweep-root"},
        {"path": "./clusters/platform"},
        {"path": "./overlays/active/another"},
        {"force": True},
        {"postBuild": {"substitute": {"a": "b"}}},
        {"kubeConfig": {"secretRef": {"name": "x"}}},
        {"targetNamespace": "kube-system"},
        {"sourceRef": {"kind": "GitRepository", "name": "sweeps", "namespace": "flux-system"}},
        {"sourceRef": {"kind": "OCIRepository", "name": "sweeps"}},
    ):
        assert refusals(policy, {**batch, "spec": {**batch["spec"], **change}}), change
    bare = {key: value for key, value in batch["spec"].items() if key != "serviceAccountName"}
    assert refusals(policy, {**batch, "spec": bare})


def test_policies_bind_to_the_namespace_of_the_trials_and_deny() -> None:
    tree = a_platform(replace(PLATFORM_SETTINGS, controller=Controller.ARGOCD))

    for resource in ("jobs", "pods"):
        name = f"research-trial-{resource}"
        policy, binding = (the(f"ValidatingAdmissionPolicy{kind}", name, tree) for kind in ("", "Binding"))
        (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert (rule["resources"], rule["operations"]) == ([resource], ["CREATE", "UPDATE"])
        assert binding["spec"] == {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}}
            },
        }
