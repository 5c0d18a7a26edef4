"""What a cluster adds to pods of trials and rewrites in them: the policies admit what the settings list."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from sweepledger.render.platform.admission_lists import with_mirrors
from sweepledger.structs.settings.platform import AddedContainer
from tests.render.building import built
from tests.render.judging import refusals
from tests.render.platforms import PLATFORM_SETTINGS, trial_policy
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, with_keys

Manifest = dict[str, Any]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
PROXY = AddedContainer("istio-proxy", "docker.io/istio/proxyv2", ("istio-envoy", "istio-token"))
MESHED = with_keys(
    PLATFORM_SETTINGS,
    sidecars={PROXY.name: PROXY},
    mirrors={"registry.example.org": "mirror.example.org/cache"},
)
TOKEN = {"serviceAccountToken": {"audience": "istio-ca", "path": "istio-token"}}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    made = built(a_batch(sweep=a_full_sweep(), image=IMAGE), tmp_path_factory.mktemp("built"), FULL_SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def with_sidecar(job: Manifest) -> Manifest:
    """Return a Job whose template is as a mesh makes its pods."""
    changed = deepcopy(job)
    pod = changed["spec"]["template"]["spec"]
    sidecar = {
        "name": "istio-proxy",
        "image": "docker.io/istio/proxyv2:1.24.1",
        "args": ["proxy", "sidecar"],
        "restartPolicy": "Always",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "env": [{"name": "PROXY_CONFIG", "value": "{}"}],
        "readinessProbe": {"httpGet": {"path": "/healthz/ready", "port": 15021}},
        "volumeMounts": [
            {"name": "istio-envoy", "mountPath": "/etc/istio/proxy"},
            {"name": "istio-token", "mountPath": "/var/run/secrets/tokens"},
        ],
    }
    pod["initContainers"] = [sidecar, *pod.get("initContainers", [])]
    pod["volumes"] += [
        {"name": "istio-envoy", "emptyDir": {"medium": "Memory"}},
        {"name": "istio-token", "projected": {"sources": [TOKEN]}},
    ]
    return changed


def test_a_listed_sidecar_is_admitted_in_a_pod_and_refused_without_the_setting(job: Manifest) -> None:
    pod = with_sidecar(job)["spec"]["template"]

    assert refusals(trial_policy(MESHED), pod) == set()
    assert refusals(trial_policy(PLATFORM_SETTINGS), pod)


def test_no_job_in_git_has_it(job: Manifest) -> None:
    assert refusals(trial_policy(MESHED), job) == set()
    assert refusals(trial_policy(MESHED), with_sidecar(job))


def of_another_image(pod: Manifest) -> None:
    pod["initContainers"][0]["image"] = "docker.io/istio/proxyv2-of-mine:1"


def of_another_name(pod: Manifest) -> None:
    pod["initContainers"][0]["name"] = "proxy"


def that_reads_results(pod: Manifest) -> None:
    pod["initContainers"][0]["volumeMounts"].append({"name": "results", "mountPath": "/all"})


def whose_token_the_trial_mounts(pod: Manifest) -> None:
    pod["containers"][0]["volumeMounts"].append({"name": "istio-token", "mountPath": "/token"})


def that_reads_a_secret_by_a_variable(pod: Manifest) -> None:
    reference = {"secretKeyRef": {"name": "wandb", "key": "key"}}
    pod["initContainers"][0]["env"].append({"name": "KEY", "valueFrom": reference})


def whose_volume_is_a_secret(pod: Manifest) -> None:
    (volume,) = (one for one in pod["volumes"] if one["name"] == "istio-envoy")
    del volume["emptyDir"]
    volume["secret"] = {"secretName": "wandb"}


FAULTS: tuple[Callable[[Manifest], None], ...] = (
    of_another_image,
    of_another_name,
    that_reads_results,
    that_reads_a_secret_by_a_variable,
    whose_token_the_trial_mounts,
    whose_volume_is_a_secret,
)


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change.__name__)
def test_no_other_container_passes_for_it(change: Callable[[Manifest], None], job: Manifest) -> None:
    changed = with_sidecar(job)

    change(changed["spec"]["template"]["spec"])

    assert refusals(trial_policy(MESHED), changed["spec"]["template"])


def test_what_else_is_wrong_with_the_pod_is_still_refused(job: Manifest) -> None:
    changed = with_sidecar(job)
    changed["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh"]

    (message,) = refusals(trial_policy(MESHED), changed["spec"]["template"])

    assert "starts the launcher" in message


def test_an_image_from_a_mirror_is_admitted_in_a_pod_and_in_no_job(job: Manifest) -> None:
    changed = deepcopy(job)
    for one in changed["spec"]["template"]["spec"]["containers"]:
        one["image"] = one["image"].replace("registry.example.org/", "mirror.example.org/cache/")

    assert refusals(trial_policy(MESHED), changed["spec"]["template"]) == set()
    assert refusals(trial_policy(PLATFORM_SETTINGS), changed["spec"]["template"])
    assert refusals(trial_policy(MESHED), changed)


def test_a_mirror_takes_the_place_of_whole_parts_of_a_name() -> None:
    named = {"registry.example.org/train", "registry.example.org.evil/train"}

    assert with_mirrors(MESHED.admission, named) == named | {"mirror.example.org/cache/train"}
