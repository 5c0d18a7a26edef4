"""What `sweep check` holds against the commit that stands."""

import shutil
from pathlib import Path

import pytest

from sweepledger.errors import SpecError
from sweepledger.operations.checks.new_batches import duplicate_objects
from sweepledger.problems import Severity
from tests.repo.test_signatures import key, line, signed_commit
from tests.repository import Sandbox, append_to, followed_by, replace_in


def move(sandbox: Sandbox, name: str) -> None:
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")


def cancelling(sandbox: Sandbox, name: str) -> None:
    append_to(sandbox.root / "sweeps/peak.yaml", f"cancel: [{name}]\n")


def listed(sandbox: Sandbox, made: Path) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\nsigners:\n- '{line(made)}'\n")


def test_a_batch_that_its_spec_cancels_moves_without_results_and_unchanged(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    cancelling(sandbox, name)
    assert sandbox.codes() == {"cancel-not-moved"}

    move(sandbox, name)
    assert sandbox.check().problems == ()

    sandbox.commit("cancel")
    assert sandbox.check().problems == ()

    sandbox.write(f"overlays/archive/{name}/job.yaml", "edited")
    assert sandbox.codes() == {"batch-edited"}

    (sandbox.root / f"overlays/archive/{name}/job.yaml").unlink()
    sandbox.git("checkout", "-q", "--", "overlays")
    sandbox.write("results/peak/summary.csv", "forged")
    assert sandbox.codes() == {"history-unsigned"}


@pytest.mark.parametrize("content", ["better\n", None], ids=["edit", "delete"])
def test_only_the_collector_changes_results(sandbox: Sandbox, content: str | None) -> None:
    sandbox.publish("results(peak)", {"results/peak/summary.csv": "measured\n"})
    (sandbox.root / "results/peak/summary.csv").unlink()
    if content is not None:
        sandbox.write("results/peak/summary.csv", content)
    sandbox.write("results/peak/more.csv", "x")
    expected = [(f"results/peak/{name}.csv", "history-unsigned") for name in ("more", "summary")]

    assert sorted(sandbox.problems()) == expected
    sandbox.commit("Mend")
    assert sandbox.codes() == {"history-unsigned"}


def test_only_a_key_listed_before_the_change_mends_history(sandbox: Sandbox, tmp_path: Path) -> None:
    trusted, own = key(tmp_path, "trusted"), key(tmp_path, "own")
    listed(sandbox, trusted)
    sandbox.publish("List a key")
    sandbox.write("results/peak/summary.csv", "mended\n")
    signed_commit(sandbox, trusted, "Mend")
    assert sandbox.check().problems == ()

    listed(sandbox, own)
    sandbox.write("results/peak/summary.csv", "forged\n")
    signed_commit(sandbox, own, "Mend it my way")

    (problem,) = sandbox.check().problems
    assert problem.code == "history-unsigned"
    assert "no listed key signed it" in problem.message


def test_one_unsigned_commit_among_signed_ones_is_enough(sandbox: Sandbox, tmp_path: Path) -> None:
    trusted = key(tmp_path, "trusted")
    listed(sandbox, trusted)
    sandbox.publish("List a key")
    sandbox.commit("Unsigned", {"results/a": "1\n"})
    sandbox.write("results/a", "2\n")
    signed_commit(sandbox, trusted, "Signed")

    assert sandbox.codes() == {"history-unsigned"}


def test_a_merge_that_takes_back_what_stands_is_a_change_of_history(sandbox: Sandbox) -> None:
    sandbox.commit("results(a)", {"results/a": "old\n"})
    sandbox.git("switch", "-q", "-c", "ask")
    sandbox.commit("More", {"code/more.py": "x"})
    sandbox.git("switch", "-q", "main")
    sandbox.publish("results(a): more", {"results/a": "new\n"})
    sandbox.git("switch", "-q", "ask")
    sandbox.git("merge", "-q", "--strategy=ours", "-m", "Merge", "main")

    assert sandbox.codes() == {"history-unsigned"}


def test_a_branch_behind_the_base_is_told_to_catch_up_and_blamed_for_nothing_else(sandbox: Sandbox) -> None:
    sandbox.merged("first")
    sandbox.git("switch", "-q", "-c", "ask")
    sandbox.git("switch", "-q", "main")
    sandbox.write("results/a", "new\n")
    name = sandbox.merged()
    sandbox.git("switch", "-q", "ask")

    (problem,) = sandbox.check(base="main").problems

    assert (problem.file, problem.code) == (f"overlays/active/{name}", "batch-vanished")
    tip = sandbox.git("rev-parse", "main")[:12]
    assert (
        problem.hint
        == f"the base commit is newer: merge it into this branch, `git merge {tip}`, then check again"
    )
    sandbox.git("merge", "-q", tip)
    assert sandbox.check(base="main").problems == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", ["base/components/data/v1/patch.yaml", "base/launcher/v1/more.py"])
def test_what_an_archived_batch_builds_on_is_frozen_too(sandbox: Sandbox, path: str) -> None:
    digest = "sha256:" + "b" * 64
    sandbox.write("sweepledger.yaml", f"datasets: {{digits: {{claim: digits, digest: '{digest}'}}}}\n")
    sandbox.commit("Data")
    replace_in(sandbox.spec(xs=", ".join(map(str, range(30)))), "  code:", "  data: digits\n  code:")
    made = sandbox.new_batch()
    sandbox.commit("Ask")
    move(sandbox, made.name)
    sandbox.publish("results(peak)", {f"results/peak/records/{made.name}.jsonl": ""})
    shutil.copytree(sandbox.root / "base/trial/v1", sandbox.root / "base/trial/v2")
    assert sandbox.check().problems == (), "a new version beside it is welcome"
    target = sandbox.root / path
    target.write_text((target.read_text() if target.exists() else "") + "# more\n")

    assert sandbox.problems() == [(path, "base-changed")]


def test_what_is_generated_on_merge_is_pending_and_no_failure(sandbox: Sandbox) -> None:
    sandbox.commit("On merge", {"sweepledger.yaml": "generate: on-merge\n"})
    sandbox.spec()

    (problem,) = sandbox.check().problems

    assert (problem.code, problem.severity, problem.file) == ("pending", Severity.WARNING, "sweeps/peak.yaml")


def test_of_two_branches_that_ask_for_the_same_trial_the_second_is_refused(sandbox: Sandbox) -> None:
    sandbox.merged(xs="1")
    for branch, xs in (("one", "1, 2"), ("two", "1, 3, 2")):
        sandbox.git("switch", "-q", "-c", branch, "main")
        sandbox.spec(xs=xs)
        sandbox.commit_batches(f"Ask for {xs}")
        assert sandbox.check().problems == ()
    sandbox.git("switch", "-q", "main")
    sandbox.git("merge", "-q", "--no-ff", "-m", "Merge one", "one")
    sandbox.push()
    assert sandbox.check().problems == ()

    sandbox.git("merge", "-q", "--no-ff", "--strategy-option=theirs", "-m", "Queue two", "two")

    report = sandbox.check(base="main^")
    assert {"trial-repeated", "drift"} <= {problem.code for problem in report.problems}
    (problem,) = [problem for problem in report.problems if problem.code == "trial-repeated"]
    assert "is in peak-b2-" in problem.message


def test_the_same_delta_made_twice_is_one_batch_and_merges(sandbox: Sandbox) -> None:
    sandbox.merged(xs="1")
    for branch in ("one", "two"):
        sandbox.git("switch", "-q", "-c", branch, "main")
        sandbox.spec(xs="1, 2")
        sandbox.commit_batches("Ask")
    sandbox.git("switch", "-q", "main")
    sandbox.git("merge", "-q", "--no-ff", "-m", "Merge one", "one")
    sandbox.git("merge", "-q", "--no-ff", "-m", "Merge two", "two")

    assert sandbox.check().problems == ()


def test_two_active_batches_render_no_object_of_the_same_name(sandbox: Sandbox) -> None:
    name = sandbox.merged(xs="1", parallelism=1)
    other = sandbox.root / "overlays/active" / name.replace("peak", "peek")
    shutil.copytree(sandbox.root / "overlays/active" / name, other)
    sandbox.spec("peek")

    report = sandbox.check(everything=True)

    messages = [problem.message for problem in report.problems if problem.code == "object-twice"]
    assert messages
    assert all("'s, too" in message for message in messages)


def test_an_object_that_begins_like_another_batch_is_that_batchs() -> None:
    job = {"kind": "Job", "metadata": {"name": "lr-b1-00000000-x-b1-11111111"}}
    rendered = {"lr-b1-00000000": (job,)}

    (problem,) = duplicate_objects(rendered, ["lr-b1-00000000", "lr-b1-00000000-x-b1-11111111"])

    assert problem.code == "object-twice"


def test_flux_has_one_file_for_each_active_batch(sandbox: Sandbox) -> None:
    sandbox.commit("Flux", {"sweepledger.yaml": followed_by("flux")})
    name = sandbox.merged()
    assert sandbox.check().problems == ()
    path = sandbox.root / f"clusters/flux/active/{name}.yaml"
    text = path.read_text()

    path.write_text(text.replace("prune: true", "prune: false"))
    sandbox.write("clusters/flux/active/other.yaml", text)
    (foreign, forged) = sandbox.check().problems
    path.unlink()
    (_, missing) = sorted(sandbox.check().problems, key=lambda problem: "missing" in problem.message)

    assert {forged.code, foreign.code, missing.code} == {"drift"}
    assert forged.message == "is not what the generator writes"
    assert foreign.message == "belongs to no active batch"
    assert missing.file == f"clusters/flux/active/{name}.yaml"


def test_a_spec_that_stands_as_it_was_generated_is_not_read_again(sandbox: Sandbox) -> None:
    sandbox.merged()
    spec = sandbox.root / "sweeps/peak.yaml"
    assert sandbox.check().specs == 1

    replace_in(spec, "values: [1, 2, 3]", "values: [1, 2, 3, 4]")
    assert sandbox.codes() == {"drift"}

    sandbox.publish("No batch with it")
    assert sandbox.codes() == {"drift"}

    sandbox.write("sweepledger.yaml", "limits: {max_trials: 2}\n")
    with pytest.raises(SpecError):
        sandbox.check()
