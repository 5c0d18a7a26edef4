"""`sweep why`: what git alone says of a trial, and what the objects of a real API server say."""

import os

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import UsageError
from sweepledger.formats.record_json import format_time
from sweepledger.operations.reports.status import sweep_statuses
from sweepledger.verbs.why import WaitExplanation, explain_waiting
from tests.operations.clusters import MOMENT, Cluster
from tests.repository import Sandbox, replace_in


def kinds(explanation: WaitExplanation) -> list[tuple[str, int]]:
    groups = [group for batch in explanation.batches for group in batch.causes]
    return [(str(group.cause.kind), len(group.indexes)) for group in groups]


def remedies(explanation: WaitExplanation) -> str:
    return "\n".join(group.cause.remedy for batch in explanation.batches for group in batch.causes)


def test_from_the_spec_to_the_merge_git_alone_says_what_is_missing(sandbox: Sandbox) -> None:
    path = sandbox.spec()
    fresh = explain_waiting(sandbox.workspace, "peak")
    replace_in(path, "method: grid", "method: gird")
    wrong = explain_waiting(sandbox.workspace, str(path))
    sandbox.spec(xs="1, 2")
    sandbox.write("sweepledger.yaml", "version: 1\ngenerate: on-merge\n")
    unmerged = explain_waiting(sandbox.workspace, "peak")
    sandbox.publish("Ask for a sweep")
    merged = explain_waiting(sandbox.workspace, "peak")

    assert kinds(fresh) == [("not-generated", 3)]
    assert "`sweep generate peak`" in remedies(fresh)
    assert (kinds(wrong), "`sweep validate peak`" in remedies(wrong)) == ([("spec-invalid", 0)], True)
    assert kinds(unmerged) == [("not-merged", 2)]
    assert (kinds(merged), "sweep generate --push" in remedies(merged)) == ([("not-generated", 2)], True)


def test_a_batch_waits_for_its_merge_and_then_for_what_runs_it(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    merged = explain_waiting(sandbox.workspace, "peak")
    sandbox.git("push", "-q", "--force", "origin", "HEAD~1:main")
    sandbox.git("fetch", "-q", "origin")
    unmerged = explain_waiting(sandbox.workspace, "peak")
    trial = unmerged.batches[0].ids[1]

    explanation = explain_waiting(sandbox.workspace, trial[:6])
    completed = sandbox.sweep("why", "peak")

    assert (kinds(merged), "`sweep run peak`" in remedies(merged)) == ([("unknown", 3)], True)
    assert (kinds(unmerged), kinds(explanation)) == ([("not-merged", 3)], [("not-merged", 1)])
    assert explanation.trial == trial
    assert completed.stdout.splitlines()[:2] == [
        f"{batch}:",
        "  3 trials: not-merged: its batch is not on origin/main, as last fetched",
    ]
    with pytest.raises(UsageError, match="no sweep and no trial 'peek'"):
        explain_waiting(sandbox.workspace, "peek")


def test_a_batch_that_was_archived_or_cancelled(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    sandbox.git("mv", f"overlays/active/{batch}", f"overlays/archive/{batch}")
    sandbox.publish("Archive")
    archived = explain_waiting(sandbox.workspace, "peak")
    sandbox.git("checkout", "-q", "HEAD~1", "--", ".")
    sandbox.git("rm", "-q", "-r", f"overlays/archive/{batch}")
    behind = explain_waiting(sandbox.workspace, "peak")

    assert kinds(archived) == [("cancelled", 3)]
    assert (kinds(behind), remedies(behind)) == ([("recorded", 3)], "`git pull origin main`")


def test_the_link_to_the_log_system_names_the_trial_with_escaped_values(sandbox: Sandbox) -> None:
    link = "https://logs.example.org/{namespace}?q={batch}%20{trial}&pod={pod}"
    batch = sandbox.merged()
    trial = explain_waiting(sandbox.workspace, "peak").batches[0].ids[1]
    sandbox.write("sweepledger.yaml", f"version: 1\nlogs: '{link}'\n")

    (explained,) = explain_waiting(sandbox.workspace, trial).batches

    assert explained.logs == f"https://logs.example.org/sweeps?q={batch}%20{trial}&pod={batch}-1-"


def test_a_silent_cluster_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.merged()
    monkeypatch.setenv("KUBECONFIG", str(sandbox.root / "nowhere"))

    explanation = explain_waiting(sandbox.workspace, "peak", kubectl=Kubectl())

    (group,) = explanation.batches[0].causes
    assert str(group.cause.kind) == "unknown"
    assert "the cluster cannot be read" in group.cause.text


def test_a_real_api_server_says_what_each_trial_waits_for(sandbox: Sandbox, cluster: Cluster) -> None:
    batch = sandbox.merged(xs="1, 2, 3, 4, 5", parallelism=5)
    absent = explain_waiting(sandbox.workspace, "peak", kubectl=Kubectl())
    cluster.job(batch, trials=5)
    cluster.server.kubectl("patch", "job", batch, *cluster.here, "--patch", '{"spec": {"parallelism": 5}}')
    cluster.say("jobs", batch, {"completedIndexes": "0", "startTime": MOMENT})
    cluster.attempt(batch, 1, "first-1")
    cluster.ended("first-1", 1)
    cluster.attempt(batch, 2, "image-2")
    cluster.stands("image-2", "Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})
    uid = cluster.attempt(batch, 3, "volume-3")
    cluster.stands("volume-3", "Pending", {"waiting": {"reason": "ContainerCreating"}})
    cluster.event("Pod", "volume-3", "FailedMount", "mount failed: exit status 32", uid=uid)
    cluster.event("Job", batch, "FailedCreate", 'pods "x" is forbidden: exceeded quota: trials')
    cluster.attempt(batch, 4, "no-node-4")
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    cluster.say("pods", "no-node-4", {"phase": "Pending", "conditions": [unfit]})

    explanation = explain_waiting(sandbox.workspace, "peak", kubectl=Kubectl())

    assert kinds(absent) == [("not-synced", 5)]
    causes = ("collector-due", "quota", "image", "volume", "unschedulable")
    assert kinds(explanation) == [(cause, 1) for cause in causes]
    assert "mount failed: exit status 32" in explanation.batches[0].causes[3].cause.text


def test_a_batch_that_only_fails_names_the_commands_that_end_it(sandbox: Sandbox, cluster: Cluster) -> None:
    batch = sandbox.merged(xs="1, 2, 3, 4, 5", parallelism=5)
    cluster.job(batch, trials=5)
    cluster.say("jobs", batch, {"failedIndexes": "0-2", "startTime": MOMENT})

    explanation = explain_waiting(sandbox.workspace, "peak", kubectl=Kubectl())
    (result,) = sweep_statuses(sandbox.workspace, state=sandbox.root / ".sweepledger", kubectl=Kubectl())
    (remark,) = (each for each in result.remarks if "failed" in each.message)

    assert kinds(explanation)[0] == ("failed", 3)
    assert "3 trials of the batch failed and none is ok" in remark.message
    for command in ("cluster pause peak", f"cancel peak --batch {batch}", "retry peak --update"):
        assert f"`sweep {command}`" in explanation.batches[0].causes[0].cause.remedy
        assert f"`sweep {command}`" in remark.hint


def test_an_explanation_tells_when_this_clone_last_heard_of_the_branch(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.git("fetch", "-q", "origin")
    fetched = sandbox.root / ".git/FETCH_HEAD"
    log = sandbox.root / ".git/logs/refs/remotes/origin/main"
    pushed = max(int(line.split("\t")[0].split()[-2]) for line in log.read_text().splitlines())

    os.utime(fetched, (pushed + 3600, pushed + 3600))
    after_fetch = explain_waiting(sandbox.workspace, "peak")
    os.utime(fetched, (pushed - 3600, pushed - 3600))
    after_push = explain_waiting(sandbox.workspace, "peak")
    text = sandbox.sweep("why", "peak").stdout

    assert after_fetch.branch["updated"] == format_time(pushed + 3600)
    assert after_push.branch == {"name": "origin/main", "updated": format_time(pushed)}
    assert text.endswith(f"origin/main as this clone last heard of it, at {format_time(pushed)}\n")
    sandbox.git("remote", "remove", "origin")
    assert explain_waiting(sandbox.workspace, "peak").branch["updated"] is None
