"""A real API server takes the policies for pods with a bucket, within its bound of their cost, and judges by them."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.engine.cluster import helper_pods
from sweepledger.render import base_files
from sweepledger.render import pod as render_pod
from sweepledger.structs.settings import Controller, ResultsStore
from tests.cluster.apiserver import Server
from tests.cluster.platforms import policed_job, rendered_and_applied
from tests.cluster.templates import CONTROLLER, owned_pods, pods
from tests.render.test_bucket_store import BUCKET, FAULTS, IMAGE, in_a_bucket
from tests.sweeps import a_batch, a_full_sweep, real_bases, with_keys

NAMESPACE = "bucket-test"
SETTINGS = with_keys(
    in_a_bucket(keep_days=30),
    namespace=NAMESPACE,
    controller=Controller.ARGOCD,
    datasets={},
    priority_class=None,  # the cluster has none
)
INVALID = {"a container that ends"}
"""Faults that no policy is asked about: the server knows no such pod."""
REPEATED = {f"{name} from an annotation" for name in ("SWEEP_BATCH", "SWEEP_STORE_URL", "AWS_REGION")}
"""Faults that repeat a variable, which a server that merges objects takes once."""
TWICE = "duplicate entries for key"
FIRST = {"the clone has the credential": "base/components/clone"}
"""Faults of which the server names another rule, which it asks before."""


@pytest.fixture(scope="module")
def platform(apiserver: Server) -> Iterator[Server]:
    """The platform, without what Argo CD reads; what lies in no namespace is taken away again."""
    with rendered_and_applied(apiserver, SETTINGS):
        yield apiserver


@pytest.fixture(scope="module")
def job(platform: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A Job with every option; given once the policies are at work."""
    sweep = replace(a_full_sweep("chosen"), run=replace(a_full_sweep("chosen").run, data=None))
    return policed_job(
        platform, a_batch(sweep=sweep, image=IMAGE), SETTINGS, tmp_path_factory.mktemp("built")
    )


def test_a_batch_with_a_bucket_and_its_pods_are_admitted(platform: Server, job: dict[str, Any]) -> None:
    assert platform.refuses(job) == ""
    assert platform.refuses(*owned_pods(job), user=CONTROLLER) == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_the_server_refuses_any_other_sidecar(fault: str, platform: Server, job: dict[str, Any]) -> None:
    says, change = FAULTS[fault]
    faulty = deepcopy(job)

    change(faulty["spec"]["template"]["spec"])

    for judged in (faulty, *pods(faulty)):
        said = platform.refuses(judged)
        assert said
        assert fault in INVALID or (TWICE if fault in REPEATED else FIRST.get(fault, says)) in said


def test_the_server_admits_the_doctors_proof(platform: Server, job: dict[str, Any]) -> None:
    assert platform.refuses(job) == ""  # so the policies are at work
    component = base_files.component_patch(real_bases(), ResultsStore.BUCKET.facts.component)
    trials, network = SETTINGS.trials, SETTINGS.network
    store = render_pod.store_proof("sweep-doctor", trials, network, BUCKET, component)
    proof = helper_pods.write_test_job(NAMESPACE, None, IMAGE, "sweep-trial", is_held=True, store=store)

    assert platform.refuses(proof, *pods(proof)) == ""
