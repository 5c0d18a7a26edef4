"""A real API server admits several datasets of the settings, at no more cost than its bound, and nothing else."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from sweepledger.structs.settings import Controller, Dataset, Settings
from tests.cluster.apiserver import Server
from tests.cluster.platforms import policed_job, rendered_and_applied
from tests.cluster.templates import CONTROLLER, owned_pods, pods
from tests.render.test_bucket_store import a_variable
from tests.render.test_several_datasets import IN_THE_BUCKET, a_batch_of_several
from tests.sweeps import with_keys

OTHERS = {
    f"dataset-{number}": Dataset(
        f"dataset-{number}", None, "sha256:" + "e" * 64, copied_from=f"data/other/{number}", size="1Gi"
    )
    for number in range(50)
}
"""A platform that offers many: the cost of the policies depends on it."""


def of_cluster(settings: Settings, name: str) -> Settings:
    """Return settings for a namespace of the server, which has no priority class."""
    return with_keys(settings, namespace=name, controller=Controller.ARGOCD, priority_class=None)


def test_a_sidecar_may_copy_several_datasets_and_no_other(apiserver: Server, tmp_path: Path) -> None:
    settings = of_cluster(
        with_keys(IN_THE_BUCKET, datasets={**IN_THE_BUCKET.trials.datasets, **OTHERS}), "copies-of-data"
    )
    with rendered_and_applied(apiserver, settings):
        job = policed_job(apiserver, a_batch_of_several(settings), settings, tmp_path)

        assert apiserver.refuses(job, *owned_pods(job), user=CONTROLLER) == ""
        for folders in (
            "labels=data/mnist",
            "labels=data/labels mnist=lr-b1-3f9a1c2e/records",
            "labels=data/labels ",
        ):
            assert_refused(apiserver, job, a_variable("SWEEP_STORE_DATA", folders), folders)


def assert_refused(
    server: Server, job: dict[str, Any], change: Callable[[dict[str, Any]], object], fault: str
) -> None:
    faulty = deepcopy(job)
    change(faulty["spec"]["template"]["spec"])
    for judged in (faulty, *pods(faulty)):
        assert "ValidatingAdmissionPolicy" in server.refuses(judged), fault
