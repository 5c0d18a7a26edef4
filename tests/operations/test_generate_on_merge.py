"""`generate: on-merge`: the overlay is judged before the merge, and written after it, by one commit."""

import pytest

from sweepledger.errors import UsageError
from sweepledger.verbs import generate
from tests.repository import IMAGE, Sandbox

SETTINGS = "version: 1\ngenerate: on-merge\n"


@pytest.fixture
def merging(sandbox: Sandbox) -> Sandbox:
    sandbox.publish("Generate on merge", {"sweepledger.yaml": SETTINGS})
    return sandbox


def remote_files(sandbox: Sandbox) -> set[str]:
    sandbox.git("fetch", "-q", "origin")
    return set(sandbox.git("ls-tree", "-r", "--name-only", "origin/main").split())


def test_merged_specs_become_batches_by_one_commit_with_nothing_else_in_it(merging: Sandbox) -> None:
    merging.merged("first")
    for name in ("second", "third"):
        merging.spec(name)
    merging.publish("Ask")
    before = remote_files(merging)

    made, commit = generate.push_batches(merging.workspace)

    after = remote_files(merging)
    assert [generated_batch.sweep.name for generated_batch in made.generated] == ["second", "third"]
    assert merging.git("log", "-1", "--format=%H %s", "origin/main").strip() == (
        f"{commit} generate(second, third): 6 trials"
    )
    folders = {path.split("/")[2] for path in after - before if path.startswith("overlays/active/")}
    assert folders == {
        generated_batch.batch.name for generated_batch in made.generated if generated_batch.batch
    }
    assert before <= after
    assert merging.git("status", "--porcelain") == ""
    assert merging.git("worktree", "list").count("\n") == 1
    assert generate.push_batches(merging.workspace) == (generate.Generation(()), None)


def test_what_came_to_the_branch_meanwhile_is_what_counts(merging: Sandbox) -> None:
    merging.spec("late", xs="1")
    merging.publish("Ask")
    merging.spec("late", xs="1, 2")
    merging.publish("Ask for more")
    merging.git("reset", "-q", "--hard", "HEAD^")

    made, _ = generate.push_batches(merging.workspace)

    assert [generated_batch.trials for generated_batch in made.generated] == [2]


def test_whoever_did_not_choose_it_writes_nothing(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.publish("Ask")

    with pytest.raises(UsageError, match="does not contain `generate: on-merge`"):
        generate.push_batches(sandbox.workspace)


def test_the_command_commits_the_others_and_fails(merging: Sandbox) -> None:
    merging.spec("good")
    merging.publish("Ask", {"sweeps/bad.yaml": "name: bad\n"})

    done = merging.sweep("generate", "--push")
    again = merging.sweep("generate", "--push")

    assert done.returncode == again.returncode == 1
    assert "committed as" in done.stdout
    assert "nothing to commit\n" in again.stdout
    assert "sweeps/bad.yaml:1:1" in done.stderr


def test_the_overlay_of_a_merge_is_judged_before(merging: Sandbox, needs_kustomize: None) -> None:
    merging.write("sweepledger.yaml", f"{SETTINGS}defaults: {{image: '{IMAGE}'}}\n")
    job = merging.root / "base/trial/v1/job.yaml"
    merging.merged("first")
    job.write_text(job.read_text().replace("runAsNonRoot: true", "runAsNonRoot: false", 1))
    merging.git("rm", "-q", "-r", "overlays/active", "sweeps")
    merging.commit("A base of yesterday, and nobody built on it")
    merging.git("update-ref", "refs/remotes/origin/main", "HEAD")
    merging.spec("second", xs=", ".join(map(str, range(30))))
    merging.commit("Ask")

    problems = merging.check().problems

    assert {"pending"} < {problem.code for problem in problems}
    assert {problem.file for problem in problems if problem.code != "overlay-layout"} == {
        "sweeps/second.yaml"
    }
