"""Pausing, resuming and scaling merged batches by commits: spec, overlay, check, generator, collector."""

from pathlib import Path

import pytest

from sweepledger.errors import SpecError, UsageError
from sweepledger.formats import running_yaml
from sweepledger.formats.running_yaml import REFERENCE
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.operations.reports import status
from sweepledger.repo import batches, kustomize
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.structs.run_config import RunningState
from sweepledger.verbs.generate import push_batches
from tests.operations.test_collect import leave
from tests.repository import Sandbox, followed_by, replace_in


def codes(sandbox: Sandbox) -> list[str]:
    return [code for _, code in sandbox.problems()]


def stored(sandbox: Sandbox) -> batches.StoredBatch:
    (batch,) = sandbox.batches()
    return batch


def written(sandbox: Sandbox) -> dict[str, bytes]:
    files = stored(sandbox).stored
    return {path: files.read(path) for path in files.paths}


def jobs(sandbox: Sandbox) -> list[dict[str, object]]:
    rendered = kustomize.build(sandbox.root / stored(sandbox).folder)
    return [manifest["spec"] for manifest in rendered if manifest["kind"] == "Job"]


def merged_and_paused(sandbox: Sandbox) -> str:
    name = sandbox.merged()
    sandbox.pause(push=True)
    return name


def test_a_paused_batch_renders_suspended_jobs(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = sandbox.merged()
    before, (job,) = stored(sandbox), jobs(sandbox)

    made = sandbox.pause()

    (paused,) = jobs(sandbox)
    assert (made.batches, made.trials) == ((name,), 3)
    (tally,) = status.sweep_statuses(sandbox.workspace, "peak", state=sandbox.root / ".sweepledger")
    assert tally.counts == {"paused": 3}
    assert paused == job | {"suspend": True}
    assert stored(sandbox).tree == before.tree
    assert stored(sandbox).running == RunningState(paused=True)
    assert sandbox.git("log", "-1", "--format=%s").strip() == f"pause(peak): {name} (3 trials)"
    assert codes(sandbox) == []
    assert not sandbox.generate()[0].is_pending


def test_each_resume_counts(sandbox: Sandbox, needs_kustomize: None) -> None:
    name, spec = sandbox.merged(), sandbox.root / "sweeps/peak.yaml"
    for count in (1, 2):
        sandbox.pause(push=True)
        sandbox.resume()
        assert sandbox.workspace.sweeps(["peak"])[0].running[name].resumes == count
        assert codes(sandbox) == []
        sandbox.push()
    counted = spec.read_text()
    assert "resumes: 2" in counted

    for fewer in ("resumes: 1", "resumes: 0"):
        spec.write_text(counted.replace("resumes: 2", fewer))
        sandbox.generate()
        assert codes(sandbox) == ["resumes-lowered"]
    spec.write_text(counted[: counted.index("running:")])
    sandbox.generate()
    assert codes(sandbox) == ["resumes-lowered"]


@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "running"])
def test_a_change_by_hand_that_starts_pods_again_has_to_count(
    sandbox: Sandbox, needs_kustomize: None, *, is_paused: bool
) -> None:
    name = merged_and_paused(sandbox) if is_paused else sandbox.merged()
    path = sandbox.root / "sweeps/peak.yaml"
    spec = path.read_text().partition("running:")[0]
    states = {
        "{parallelism: 1}": ["resumes-lowered"],
        "{parallelism: 1, resumes: 1}": [],
        "{parallelism: 2}": ["resumes-lowered"] if is_paused else [],
        "{paused: true, parallelism: 1}": [],
    }

    for state, found in states.items():
        path.write_text(f"{spec}running:\n  {name}: {state}\n")
        sandbox.generate()
        assert codes(sandbox) == found, state


def test_parallelism_changes_to_at_most_the_trials(sandbox: Sandbox, needs_kustomize: None) -> None:
    sandbox.merged()
    path = sandbox.root / "sweeps/peak.yaml"
    before = path.read_text()

    sandbox.scale("peak", 50)

    assert [job["parallelism"] for job in jobs(sandbox)] == [3]
    assert codes(sandbox) == []
    sandbox.push()
    path.write_text(before)
    sandbox.generate()
    assert codes(sandbox) == ["resumes-lowered"], "fewer at once again"


def test_what_a_person_writes_under_running_is_generated_and_taken_back(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    original, spec = written(sandbox), (sandbox.root / "sweeps/peak.yaml").read_text()
    sandbox.write("sweeps/peak.yaml", f"{spec}running: {{{name}: {{parallelism: 2}}}}\n")

    assert codes(sandbox) == ["running-not-written"]
    sandbox.generate()
    assert codes(sandbox) == []
    sandbox.publish("Scale it")
    sandbox.write("sweeps/peak.yaml", spec)
    assert codes(sandbox) == ["running-not-written"]
    sandbox.generate()

    assert written(sandbox) == original


def test_an_edited_state_is_reported_and_not_built(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = merged_and_paused(sandbox)
    state = sandbox.root / "overlays/active" / name / "running.yaml"
    text = state.read_text()
    unreadable = {"running-not-written", "batch-unreadable"}

    for before, after, reported in (
        ("value: true", "value: false", {"running-not-written"}),
        ("patch: |-\n", "patch: |-\n  - {op: remove, path: /spec}\n", unreadable),
        ("PatchTransformer", "PrefixTransformer", unreadable),
    ):
        assert before in text
        state.write_text(text.replace(before, after))
        assert sandbox.codes() == reported, before
    state.unlink()
    assert {"running-not-written", "batch-edited"} <= sandbox.codes()


def test_a_state_that_no_spec_asks_for_is_reported(sandbox: Sandbox) -> None:
    folder = sandbox.root / "overlays/active" / sandbox.merged()
    forged = running_yaml.write(RunningState(paused=True), stored(sandbox).lock)
    (folder / "running.yaml").write_bytes(forged)
    assert "batch-edited" in codes(sandbox), "nothing refers to it"
    kustomization = folder / "kustomization.yaml"
    kustomization.write_bytes(kustomization.read_bytes() + REFERENCE)

    assert codes(sandbox) == ["running-not-written"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("peak-b9-0a1b2c3d: {paused: true}", "is no merged batch"),
        ("other-b1-0a1b2c3d: {paused: true}", "must be a batch of this sweep"),
        ("{name}: {{parallelism: 0}}", "must be at least 1"),
    ],
)
def test_a_wrong_state_is_refused(sandbox: Sandbox, written: str, message: str) -> None:
    name = sandbox.merged()
    spec = (sandbox.root / "sweeps/peak.yaml").read_text()
    text = written.format(name=name) if "{name}" in written else written
    sandbox.write("sweeps/peak.yaml", f"{spec}running: {{{text}}}\n")

    with pytest.raises(SpecError, match=message):
        sandbox.generate()


def test_a_paused_batch_is_cancelled_and_then_no_longer_paused(
    sandbox: Sandbox, tmp_path: Path, needs_kustomize: None
) -> None:
    name = sandbox.merged()
    whole = stored(sandbox).tree
    sandbox.pause(push=True)

    sandbox.cancel()

    assert codes(sandbox) == []
    sandbox.push()
    with pytest.raises(UsageError, match="no active batch"):
        sandbox.pause()
    with pytest.raises(UsageError, match="is not active"):
        sandbox.pause(batch=name)
    sandbox.record(tmp_path, alive=())
    archived = stored(sandbox)
    assert archived.folder == f"overlays/archive/{name}"
    assert archived.contents.paths == ("batch.json", "hyperparams.csv")
    assert archived.tree == whole
    assert sandbox.active() == []


def test_a_merge_of_the_spec_alone_is_enough_where_the_branch_generates(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\ngenerate: on-merge\n")
    name = sandbox.merged()
    spec = (sandbox.root / "sweeps/peak.yaml").read_text()
    sandbox.publish("Pause it", {"sweeps/peak.yaml": f"{spec}running: {{{name}: {{paused: true}}}}\n"})
    generated, commit = push_batches(sandbox.workspace)

    assert commit is not None
    assert [one.sweep.name for one in generated.generated] == ["peak"]
    sandbox.pull()
    assert stored(sandbox).running.paused
    assert push_batches(sandbox.workspace)[1] is None


@pytest.mark.parametrize(
    ("controller", "run", "message"),
    [("flux", "  pool: shared\n", "queue of Kueue"), ("submit", "", "created by `sweep submit`")],
)
def test_a_batch_that_a_queue_or_a_person_started_is_not_paused(
    sandbox: Sandbox, controller: str, run: str, message: str
) -> None:
    pool = "pools:\n  shared: {queue: main, node: {cpu: 4, memory: 8Gi}}\n"
    sandbox.write("sweepledger.yaml", f"{followed_by(controller)}{pool}")
    replace_in(sandbox.spec(), "run:\n", f"run:\n{run}")
    sandbox.commit("Ask")
    sandbox.publish_batches("Its batch")

    with pytest.raises(SpecError, match=message):
        sandbox.pause()


def test_ended_attempts_of_a_paused_batch_are_not_recorded(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    for index in range(3):
        for attempt in range(1, 2 + stored(sandbox).lock.run.retries):
            ended = {"status": "failed", "reason": "signal-15", "metrics": {}}
            leave(tmp_path, stored(sandbox), index, uid=f"uid-{attempt}", attempt=attempt, **ended)
    assert BatchAttempts.read(VolumeResults(tmp_path), stored(sandbox)).is_settled()
    sandbox.pause(push=True)

    assert sandbox.collect(tmp_path) == ()
