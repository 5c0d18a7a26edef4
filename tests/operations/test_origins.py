"""`sweep status NAME` leads to the spec, the pull request, the batch and the results."""

import json

import pytest

from tests.operations.recording import record_batch
from tests.repository import Sandbox


def links(sandbox: Sandbox) -> dict[str, object]:
    done = sandbox.sweep("status", "peak", "--format", "json")
    (sweep,) = json.loads(done.stdout)["data"]["sweeps"]
    return dict(sweep["links"])


@pytest.mark.parametrize(
    "subject",
    ["Merge pull request #12 from team/peak", "Where is the peak? (#12)", "Merge '…' (!12)"],
    ids=["merge", "squash", "gitlab"],
)
def test_the_pull_request_is_the_one_that_the_merge_names(subject: str, sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "peak")
    sandbox.spec()
    made = sandbox.new_batch()
    sandbox.commit("Ask for a sweep")
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "--no-ff", "-m", subject, "peak")
    sandbox.push()
    record_batch(sandbox, made.name, lambda _: 1.0)
    sandbox.write("results/peak/README.md", "# peak\n")

    document = links(sandbox)

    assert document == {
        "spec": "sweeps/peak.yaml",
        "batches": [{"folder": f"overlays/archive/{made.name}", "pull_request": 12}],
        "results": "results/peak/README.md",
    }
    shown = sandbox.sweep("status", "peak").stdout
    assert f"  overlays/archive/{made.name} (#12)\n" in shown


def test_what_was_pushed_without_one_has_none(sandbox: Sandbox) -> None:
    name = sandbox.merged()

    assert links(sandbox) == {
        "spec": "sweeps/peak.yaml",
        "batches": [{"folder": f"overlays/active/{name}", "pull_request": None}],
        "results": None,
    }
