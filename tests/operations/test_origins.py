"""`sweep status NAME` leads to the spec, the pull request, the batch and the results."""

import json

from tests.operations.recording import record_batch
from tests.repository import Sandbox


def links(sandbox: Sandbox) -> dict[str, object]:
    done = sandbox.sweep("status", "peak", "--format", "json")
    (sweep,) = json.loads(done.stdout)["data"]["sweeps"]
    return dict(sweep["links"])


def test_the_pull_request_is_the_one_that_the_merge_names(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "peak")
    sandbox.spec()
    made = sandbox.new_batch()
    sandbox.commit("Ask for a sweep")
    sandbox.git("checkout", "-q", "main")
    base = sandbox.head()
    named = {
        "Ask for a sweep": None,
        "Merge pull request #12 from team/peak": 12,
        "Where is the peak? (#13)": 13,
        "Merge '…' (!14)": 14,
    }

    for subject, number in named.items():
        sandbox.git("reset", "-q", "--hard", base)
        sandbox.git("merge", "-q", "--no-ff", "-m", subject, "peak")
        sandbox.git("push", "-q", "--force", "origin", "main")
        assert links(sandbox) == {
            "spec": "sweeps/peak.yaml",
            "batches": [{"folder": f"overlays/active/{made.name}", "pull_request": number}],
            "results": None,
        }
    record_batch(sandbox, made.name, lambda _: 1.0)
    sandbox.write("results/peak/README.md", "# peak\n")
    assert links(sandbox)["results"] == "results/peak/README.md"
    assert f"  overlays/archive/{made.name} (#14)\n" in sandbox.sweep("status", "peak").stdout
