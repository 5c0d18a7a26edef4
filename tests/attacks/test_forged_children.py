"""Objects with the label of a batch that its controllers did not make: the collector believes none of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from sweepledger.engine.cluster import workloads
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.pods import parse_pod
from sweepledger.structs.kubernetes import BATCH_LABEL
from sweepledger.structs.run_config import Shape
from tests.engine.trial_pods import a_pod

BATCH = "peak-b1-3f9a1c2e"
OWNERS: dict[str, list[dict[str, Any]]] = {
    "nobody": [],
    "a Job of another batch": [{"kind": "Job", "name": "peak-b2-00000000", "controller": True}],
    "a Job with a longer name": [{"kind": "Job", "name": f"{BATCH}0", "controller": True}],
    "a Job that does not control it": [{"kind": "Job", "name": BATCH}],
}


@pytest.mark.parametrize("owner", OWNERS)
def test_a_pod_that_no_controller_made_for_its_batch_says_nothing(owner: str) -> None:
    forged = a_pod(labels={BATCH_LABEL: BATCH}, ownerReferences=OWNERS[owner])

    assert parse_pod(a_pod(labels={BATCH_LABEL: BATCH})) is not None
    assert parse_pod(forged) is None


@pytest.mark.parametrize("name", ["other", "peak-b1-3f9a1c2e0", ""])
def test_an_object_that_is_not_named_like_its_batch_ends_it_not(name: str) -> None:
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}

    class Listing(Kubectl):
        def pages(self, *_: Any, **__: Any) -> Iterator[tuple[dict[str, Any], ...]]:
            labels = {BATCH_LABEL: BATCH}
            yield tuple(
                {"metadata": {"name": one, "labels": labels}, "status": ended} for one in (BATCH, name)
            )

    ((_, observed),) = workloads.list_workloads(Listing(), "research", [Shape.INDEXED]).items()

    assert len(observed.workloads) == 1
