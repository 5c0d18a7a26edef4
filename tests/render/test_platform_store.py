"""The platform of a repository whose results need no volume."""

import json

import pytest
from msgspec.structs import replace

from sweepledger.engine.cluster import helper_pods
from sweepledger.structs.kubernetes import RECORD_FINALIZER, TRIAL_ACCOUNT
from sweepledger.structs.settings import Controller, ResultsSettings, ResultsStore, Settings
from tests.render.judging import refusals
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, cron_pod, the, trial_policy
from tests.render.test_bucket_store import IMAGE
from tests.sweeps import with_keys

WITHOUT_FILES = replace(PLATFORM_SETTINGS, results=ResultsSettings(store=ResultsStore.API))
ON_A_DISK = replace(PLATFORM_SETTINGS, results=ResultsSettings(store=ResultsStore.CLAIM, claim="disk"))


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX], ids=str)
@pytest.mark.parametrize("settings", [WITHOUT_FILES, ON_A_DISK], ids=["api", "claim"])
def test_there_is_no_volume_for_results_and_the_collector_mounts_none(
    controller: Controller, settings: Settings
) -> None:
    tree = a_platform(with_keys(settings, controller=controller, datasets={}))
    pod = cron_pod("sweep-collector", tree)
    (collect,) = pod["containers"]

    assert "clusters/platform/volumes.yaml" not in tree.files
    assert not any(b"kind: PersistentVolume" in content for _, content in tree)
    assert collect["command"] == ["sweep", "cluster", "collect", "--push", "--cluster"]
    assert "results" not in json.dumps([pod["volumes"], collect["volumeMounts"]])
    assert "results export" not in tree.files["clusters/README.md"].decode()


@pytest.mark.parametrize(
    ("settings", "claim"), [(WITHOUT_FILES, None), (ON_A_DISK, "disk")], ids=["api", "claim"]
)
def test_the_doctors_proof_is_a_held_pod_and_admitted(settings: Settings, claim: str | None) -> None:
    job = helper_pods.write_test_job("research", claim, IMAGE, TRIAL_ACCOUNT, is_held=True)
    pod = job["spec"]["template"]

    judge = trial_policy(settings)
    assert pod["metadata"]["finalizers"] == [RECORD_FINALIZER]
    assert ("persistentVolumeClaim" in json.dumps(pod)) is (claim is not None)
    assert refusals(judge, job) == set()
    assert refusals(judge, pod) == set()


def verbs(settings: Settings) -> list[str]:
    rules = the("Role", "sweep-collector-reads", a_platform(settings))["rules"]
    (pods,) = [rule["verbs"] for rule in rules if rule["resources"] == ["pods"]]
    return list(pods)


def test_the_collector_may_patch_pods_only_where_records_are_in_them() -> None:
    assert verbs(PLATFORM_SETTINGS) == ["get", "list"]
    assert verbs(WITHOUT_FILES) == verbs(ON_A_DISK) == ["get", "list", "patch"]


def test_a_policy_binds_what_the_collector_changes_of_pods() -> None:
    name = f"{WITHOUT_FILES.trials.namespace}-releases"
    policy = the("ValidatingAdmissionPolicy", name, a_platform(WITHOUT_FILES))
    binding = the("ValidatingAdmissionPolicyBinding", name, a_platform(WITHOUT_FILES))

    collector = f"system:serviceaccount:{WITHOUT_FILES.trials.namespace}-collector:sweep-collector"
    assert policy["spec"]["variables"][0]["expression"] == f'["{collector}"]'
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["validationActions"] == ["Deny"]
    assert not any(name in content.decode() for _, content in a_platform(PLATFORM_SETTINGS))
