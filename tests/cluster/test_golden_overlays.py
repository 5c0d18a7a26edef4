"""A real API server with our platform accepts what we generate, and the pods that come of it."""

import json
import shutil
import time
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sweepledger import spec
from sweepledger.engine.cluster import workloads
from sweepledger.formats import batch_json, running_yaml
from sweepledger.formats.running_yaml import REFERENCE, RUNNING_FILE
from sweepledger.repo import kustomize
from sweepledger.structs.kubernetes import Kind
from sweepledger.structs.program import NO_IMAGE
from sweepledger.structs.run_config import SHAPE_KINDS, RunningState, Shape
from sweepledger.structs.settings import Controller, Settings
from tests.cluster import building
from tests.cluster.apiserver import Server
from tests.cluster.overlays import CASES, laid_out
from tests.cluster.templates import CONTROLLER, owned_pods, pods
from tests.golden.test_golden import SETTINGS as GOLDEN_SETTINGS
from tests.manifests import manifest
from tests.render.platforms import COLLECTOR, DISTRIBUTED, a_platform, a_source, manifests
from tests.sweeps import with_keys

pytestmark = pytest.mark.usefixtures("needs_kustomize")

NEEDS = {"pool-devices": 34}
"""The minor version of Kubernetes that a case needs; `sweep check` compares it with `kubernetes` in the settings."""


def _cases(*without: str) -> pytest.MarkDecorator:
    paths = [path for path in CASES if path.parents[1].name not in without]
    names = [path.parents[1].name for path in paths]
    older = [NEEDS.get(name, 0) > building.MINOR for name in names]
    reasons = [f"needs Kubernetes 1.{NEEDS.get(name)}" for name in names]
    rows = zip(paths, older, reasons, strict=True)
    values = [pytest.param(path, marks=pytest.mark.skipif(old, reason=why)) for path, old, why in rows]
    return pytest.mark.parametrize("overlay", values, ids=names)


OVERLAY = _cases()
UNQUEUED = _cases("options-indexed", "options-jobs")
GOLDEN = Path(__file__).parents[1] / "golden/cases"
WITH_SETTINGS = GOLDEN / "options-indexed/sweepledger.yaml"
OWN_PLATFORMS = ("bucket", "pool-devices", "pool-pod", "pool-tokens", "proxied", "several-datasets")
"""Cases whose settings a platform with those of the others would contradict."""
TRAINER_MINOR = 36
"""Its definitions have rules that an API server of 1.30 cannot read; versions between were not tried."""
SECONDS = 180
APPLY = ("apply", "--server-side", "--field-manager=kustomize-controller", "-f", "-")
"""As controllers apply: what git no longer says goes."""
WITHOUT_IMAGE = f'"{NO_IMAGE}"'
IMAGE = f'"registry.example.org/team/trainer@sha256:{"a" * 64}"'


PLAIN = "golden-plain"
"""Namespace of the overlays without settings of their own: a platform admits what its settings name."""


def platform_settings(text: str | bytes = WITH_SETTINGS.read_bytes(), **changes: Any) -> Settings:
    """Give the settings of the golden overlays, as those of a repository that Argo CD follows."""
    read = spec.parse_settings(text if isinstance(text, bytes) else text.encode(), "sweepledger.yaml")
    assert isinstance(read, Settings), read
    return with_keys(read, controller=Controller.ARGOCD, **changes)


@pytest.fixture(scope="module")
def platform(apiserver: Server) -> Server:
    """Their platform: a restricted namespace, quota, limits, accounts, admission policies, priority class."""
    full = platform_settings()
    full = with_keys(full, images={**full.trials.images, "collector": COLLECTOR})
    own = [
        platform_settings((GOLDEN / case / "sweepledger.yaml").read_bytes(), namespace=_namespace(case))
        for case in OWN_PLATFORMS
    ]
    every = (full, platform_settings(GOLDEN_SETTINGS, namespace=PLAIN), *own)
    made = [one for each in every for one in manifests(a_platform(each, a_source(shapes=DISTRIBUTED)))]
    objects = [one for one in made if "kind" in one]
    spaces = [one for one in objects if one["kind"] == "Namespace"]
    apiserver.apply(manifest("Namespace", "argocd"), *spaces)
    apiserver.apply(
        *(one for one in objects if one not in spaces),
        *(one for each in own for one in _named_by_pools(each)),
    )
    for quota in (one for one in objects if one["kind"] == "ResourceQuota"):
        _count(apiserver, quota)
    apiserver.until_refused(hostile(next(iter(pods(_bare_job())))))
    return apiserver


def _named_by_pools(settings: Settings) -> list[dict[str, Any]]:
    """Give the objects that pools only name, because the platform team owns them."""
    named = [pool.pod for pool in settings.trials.pools.values() if pool.pod is not None]
    accounts = {pod.service_account for pod in named if pod.service_account}
    runtimes = {pod.runtime_class for pod in named if pod.runtime_class}
    priorities = {pod.priority_class for pod in named if pod.priority_class}
    return [
        *(manifest("ServiceAccount", name, settings.trials.namespace) for name in accounts),
        *(manifest("RuntimeClass", name, api="node.k8s.io/v1", handler=name) for name in runtimes),
        *(manifest("PriorityClass", name, api="scheduling.k8s.io/v1", value=1) for name in priorities),
    ]


def _count(server: Server, quota: Mapping[str, Any]) -> None:
    """Put a quota in force, as the controller does that runs in every cluster."""
    hard = quota["spec"]["hard"]
    metadata, status = quota["metadata"], {"hard": hard, "used": dict.fromkeys(hard, "0")}
    counted = manifest("ResourceQuota", metadata["name"], metadata["namespace"], status=status)
    arguments = ("apply", "--server-side", "--subresource=status", "--field-manager=controller", "-f", "-")
    server.kubectl(*arguments, given=[counted])


def _bare_job() -> dict[str, Any]:
    container = {"name": "trial", "image": "a.example/b"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    namespace = platform_settings().trials.namespace
    return manifest("Job", "bare", namespace, api="batch/v1", spec={"template": template})


def _namespace(case: str) -> str:
    return f"golden-{case}"


def hostile(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Give a pod the account that nobody granted it."""
    made = deepcopy(dict(pod))
    made["spec"]["serviceAccountName"] = "default"
    return made


def built(folder: Path, overlay: Path) -> list[dict[str, Any]]:
    """Build an overlay; one without an image, which only `sweep cluster local` runs, with one."""
    texts = [
        json.dumps(one).replace(WITHOUT_IMAGE, IMAGE) for one in kustomize.build(laid_out(folder, overlay))
    ]
    case = overlay.parents[1]
    if case.name in OWN_PLATFORMS or not (case / "sweepledger.yaml").exists():
        own = _namespace(case.name) if case.name in OWN_PLATFORMS else PLAIN
        texts = [text.replace('"namespace": "research"', f'"namespace": "{own}"') for text in texts]
    return [json.loads(text) for text in texts]


@OVERLAY
def test_the_server_accepts_every_golden_overlay(overlay: Path, platform: Server, tmp_path: Path) -> None:
    assert platform.refuses(*built(tmp_path, overlay)) == ""


@OVERLAY
def test_what_the_server_applies_has_known_fields(overlay: Path, platform: Server, tmp_path: Path) -> None:
    """Argo CD is told not to validate: it would read the whole schema of an API for each object."""
    made = next(one for one in built(tmp_path, overlay) if one["kind"] in SHAPE_KINDS)
    made["spec"]["unheardOf"] = "nothing"
    argocd = ("apply", "--server-side", "--dry-run=server", "--validate=false", "-f", "-")

    refused = platform.kubectl(*argocd, given=[made], check=False)

    assert refused.returncode
    assert ".spec.unheardOf: field not declared in schema" in refused.stderr


@OVERLAY
def test_the_platform_admits_pods_and_no_stranger(overlay: Path, platform: Server, tmp_path: Path) -> None:
    made = [pod for each in built(tmp_path, overlay) for pod in owned_pods(each)]

    assert made
    assert platform.refuses(*_numbered(made), user=CONTROLLER) == ""
    assert "service account sweep-trial" in platform.refuses(hostile(made[0]), user=CONTROLLER)


@OVERLAY
def test_overlays_are_accepted_as_they_are_submitted(overlay: Path, platform: Server, tmp_path: Path) -> None:
    """Where GitOps is forbidden; the platform there is not ours, and its policies ask for the opposite."""
    made = next(one for one in built(tmp_path, overlay) if one["kind"] in SHAPE_KINDS)
    turned = workloads.prepare_manifest(made, ttl=3600, queue="project-user-queue")
    turned["metadata"]["namespace"] = "default"

    create = ("create", "--dry-run=server", "--validate=strict", "-f", "-", "--output=yaml")
    text = platform.kubectl(*create, given=[turned]).stdout

    assert "generateName: " in text
    assert ("ttlSecondsAfterFinished: 3600" in text) == (made["kind"] != "TrainJob")


@UNQUEUED
def test_batches_of_every_shape_can_be_paused(overlay: Path, platform: Server, tmp_path: Path) -> None:
    lock = batch_json.read((overlay / "batch.json").read_bytes())
    kind = lock.shape.kind
    states = (None, RunningState(paused=True), RunningState(paused=False, parallelism=1), None)
    asked: list[list[dict[str, Any]]] = []
    for number, state in enumerate(states):
        asked.append(built(tmp_path / str(number), in_state(tmp_path / f"overlays{number}", overlay, state)))
    namespace = next(one for one in asked[0] if one["kind"] == kind.kind)["metadata"]["namespace"]
    seen: list[tuple[set[bool], list[object]]] = []
    try:
        for manifests_now in asked:
            platform.kubectl(*APPLY, given=manifests_now)
            path = f"/apis/{kind.group}/{kind.version}/namespaces/{namespace}/{kind.plural}"
            listed = (platform.ask(path) or {})["items"]
            objects = [one for one in listed if one["metadata"]["name"].startswith(lock.name)]
            suspended = {_is_suspended(one, kind) for one in objects}
            seen.append((suspended, [one["spec"].get("parallelism") for one in objects]))
    finally:
        platform.kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=asked[0])

    as_made, paused, scaled, forgotten = seen
    assert paused == ({True}, as_made[1])
    assert scaled[0] == {False}
    assert forgotten == as_made
    # Other shapes have a Job per trial, so that there is nothing to scale.
    assert scaled[1] == ([1] if lock.shape is Shape.INDEXED else as_made[1])


def _is_suspended(value: Any, kind: Kind) -> bool:
    """Tell whether an object says that it is suspended; the API does not fill in the field of every kind."""
    for key in (*kind.policy, "suspend"):
        value = value.get(key) or {}
    return value is True


def in_state(folder: Path, overlay: Path, state: RunningState | None) -> Path:
    target = folder / overlay.parents[1].name / "expected" / overlay.name
    shutil.copytree(overlay, target)
    for settings_file in overlay.parents[1].glob("sweepledger.yaml"):
        shutil.copy(settings_file, target.parents[1])
    if state is not None:
        lock = batch_json.read((overlay / "batch.json").read_bytes())
        (target / RUNNING_FILE).write_bytes(running_yaml.write(state, lock))
        kustomization = target / "kustomization.yaml"
        kustomization.write_bytes(kustomization.read_bytes() + REFERENCE)
    return target


def test_the_platform_refuses_a_batch_without_an_image(platform: Server, tmp_path: Path) -> None:
    (overlay,) = [path for path in CASES if path.parents[1].name == "indexed"]

    made = kustomize.build(laid_out(tmp_path, overlay))

    assert "images are named by digest" in platform.refuses(*made)


def test_the_namespace_is_one_that_refuses_what_is_not_restricted(platform: Server) -> None:
    (loose,) = pods(_bare_job())

    assert 'violates PodSecurity "restricted' in platform.refuses(loose)


@pytest.mark.skipif(
    building.MINOR < TRAINER_MINOR, reason="the newest release of Kubeflow Trainer needs a newer server"
)
def test_train_jobs_are_accepted_by_newest_and_oldest_release(platform: Server, tmp_path: Path) -> None:
    crds, newest = building.built(building.CRDS), building.built(building.NEWEST_CRDS)
    if newest is None or crds is None:
        pytest.skip("skipped: crds-newest is not built (run `make cluster-tools`)")
    (overlay,) = [path for path in CASES if path.parents[1].name == "train-job"]
    made = built(tmp_path, overlay)
    (first, *_) = [one for one in made if one["kind"] == "TrainJob"]
    newer = {**first, "spec": {**first["spec"], "activeDeadlineSeconds": 60}}
    assert "activeDeadlineSeconds" in platform.refuses(newer)

    platform.define(newest)
    try:
        deadline = time.monotonic() + SECONDS
        while platform.refuses(newer) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert platform.refuses(newer, *made) == ""
    finally:
        platform.define(crds)


def _numbered(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give pods of several templates names of their own."""
    return [
        {**pod, "metadata": {**pod["metadata"], "name": f"pod-{number}"}} for number, pod in enumerate(made)
    ]
