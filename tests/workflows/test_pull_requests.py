"""The steps of a team's workflows, in order, from the YAML itself, on a fresh clone."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.operations.test_budgets import ask, budget
from tests.operations.test_read import recorded
from tests.repository import Sandbox, replace_in
from tests.searches import begun, record
from tests.workflows.runner import OURS, TEAMS, Host

Propose = Callable[[], dict[str, object]]
CHECK = TEAMS / "check.yaml"
CHECKED = "Say what is wrong, on its lines"
PLANNED = "Show the plan"

pytestmark = pytest.mark.usefixtures("needs_kustomize")


def test_a_good_pull_request_shows_the_plan(sandbox: Sandbox, host: Host, propose: Propose) -> None:
    sandbox.propose()

    ran = host.run(CHECK, propose())

    assert ran.is_green, ran.output
    assert ran.annotations == ()
    assert ran.summary.startswith("## Ready to merge\n\n## peak: 3 trials\n")
    assert json.loads((ran.artifact("check") / "check.json").read_text())["status"] == "ok"
    assert not (ran.artifact("check") / "mend.patch").exists()


def test_a_bad_spec_is_annotated_on_its_lines(sandbox: Sandbox, host: Host, propose: Propose) -> None:
    sandbox.spec("good")
    bad = sandbox.spec("bad")
    replace_in(bad, "goal: maximize", "goal: up")
    replace_in(bad, "1m", "soon")

    ran = host.run(CHECK, propose())

    assert {name: code for name, code in ran.steps.items() if code} == {CHECKED: 1, PLANNED: 1}
    assert {(one.level, one.file, one.line) for one in ran.annotations} == {
        ("error", "sweeps/bad.yaml", 4),
        ("error", "sweeps/bad.yaml", 13),
    }
    assert ran.summary.startswith("## Not ready to merge: 2 problems\n")


def test_a_missing_overlay_comes_with_its_patch(sandbox: Sandbox, host: Host, propose: Propose) -> None:
    sandbox.spec()

    ran = host.run(CHECK, propose())
    patch = ran.artifact("check") / "mend.patch"
    sandbox.git("apply", "--index", str(patch))
    mended = host.run(CHECK, propose())

    assert (ran.steps[CHECKED], ran.steps[PLANNED], mended.is_green) == (5, 0, True), mended.output
    assert [(one.file, one.title) for one in ran.annotations] == [("sweeps/peak.yaml", "drift")]
    assert "`git apply mend.patch`" in ran.summary
    assert "## peak: 3 trials" in ran.summary


def test_g9_of_two_with_one_name_the_first_wins(sandbox: Sandbox, host: Host, propose: Propose) -> None:
    sandbox.propose("mine")
    first = propose()
    sandbox.git("checkout", "-q", "--detach", "origin/main")
    sandbox.propose("mine", xs="7, 8")
    sandbox.git("checkout", "-q", "-b", "second")
    second_tip = sandbox.commit("Propose the same name")
    assert host.run(CHECK, first).is_green

    # The queue builds the second upon the first; git itself cannot merge two files of one name.
    sandbox.git("checkout", "-q", "--detach", str(first["sha"]))
    sandbox.git("merge", "-q", "--no-ff", "-X", "theirs", "-m", "Queue", second_tip)
    group = sandbox.head()
    sandbox.git("push", "-q", "origin", f"{group}:refs/heads/gh-readonly-queue/main/pr-2")
    queued = {"sha": group, "event": {"merge_group": {"base_sha": first["sha"]}}}

    ran = host.run(CHECK, queued)

    assert ran.steps[CHECKED] == 5
    assert {one.title for one in ran.annotations} <= {"drift", "batch-forged", "batch-edited"}


def test_a_pull_request_for_another_branch_is_judged(sandbox: Sandbox, host: Host, propose: Propose) -> None:
    """It can name main afterwards, and keeps its green check: what its base has counts as its own."""
    sandbox.spec()
    sandbox.write("sweepledger.yaml", "egress: {any: {cidrs: [0.0.0.0/0], ports: [443]}}\n")
    sandbox.git("rm", "-q", ".github/sweep.lock")
    base = sandbox.commit("A base that nobody reviewed: a spec without its batch, and another generator")
    sandbox.git("push", "-q", "origin", f"{base}:refs/heads/base")
    sandbox.git("commit", "-q", "--allow-empty", "-m", "Merge the proposal")
    merge = sandbox.head()
    sandbox.git("push", "-q", "origin", f"{merge}:refs/pull/1/merge")
    event = {"pull_request": {"base": {"ref": "base", "sha": base}}}

    ran = host.run(CHECK, {"sha": merge, "ref": "refs/pull/1/merge", "event": event})

    assert ran.steps["Install the generator of main"] == 0, ran.output
    assert ran.steps[CHECKED] == 5
    assert "drift" in {one.title for one in ran.annotations}


def test_a_release_is_made_of_a_commit_on_main_alone(sandbox: Sandbox, host: Host) -> None:
    refused = "Refuse a commit that is not on main"
    on_main = sandbox.git("rev-parse", "origin/main").strip()
    beside = sandbox.commit("Beside main", {"beside.txt": "not on main\n"})
    sandbox.git("push", "-q", "origin", f"{beside}:refs/heads/beside")

    ran = [host.run(OURS / "release.yaml", {"sha": sha}, job="build") for sha in (on_main, beside)]

    assert [one.steps[refused] != 0 for one in ran] == [False, True]
    assert list(ran[1].steps)[-1] == refused


def test_results_commits_are_verified_everywhere(sandbox: Sandbox, host: Host, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume")
    before = sandbox.git("rev-parse", "HEAD^").strip()
    good = sandbox.head()
    sandbox.git("push", "-q", "origin", "HEAD:main")
    on_main = {"sha": good, "ref": "refs/heads/main", "event": {"before": before}}
    summary = sandbox.root / "results/peak/summary.csv"
    summary.write_text(summary.read_text().replace(",ok,", ",failed,", 1))
    bad = sandbox.commit("results(peak): 3/3 trials", {"base/trial/v1/more.yaml": "a: 1\n"})
    sandbox.git("push", "-q", "origin", f"{bad}:refs/heads/results/peak/0123")
    on_branch = {"sha": bad, "ref": "refs/heads/results/peak/0123", "event": {"before": "0" * 40}}

    green, red = (host.run(TEAMS / "results.yaml", event) for event in (on_main, on_branch))

    assert green.is_green, green.output
    assert red.steps["Work the results out again"] == 5
    assert "records peak and must not touch this file" in red.output
    assert "results/peak/summary.csv: t" in red.output


def test_each_merge_publishes_and_previews_exist(sandbox: Sandbox, host: Host, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "results")
    sandbox.push()
    merged = sandbox.head()
    sandbox.write(
        "sweeps/peak.yaml", (sandbox.root / "sweeps/peak.yaml").read_text() + "# <script>alert(1)</script>\n"
    )
    change = sandbox.commit("Propose")
    sandbox.git("push", "-q", "origin", f"{change}:refs/pull/1/merge")

    built = host.run(TEAMS / "site.yaml", {"sha": merged, "ref": "refs/heads/main"}, job="build")
    published = host.run(TEAMS / "site.yaml", {"sha": merged}, job="deploy", after=built)
    preview = host.run(TEAMS / "preview.yaml", {"sha": change, "ref": "refs/pull/1/merge"})

    assert built.is_green, built.output
    assert published.is_green
    assert preview.is_green, preview.output
    assert merged[:12] in (host.folder / "pages/index.html").read_text()
    assert change[:12] in (preview.artifact("site") / "index.html").read_text()


def test_a_merged_spec_is_generated_on_main_by_one_commit(sandbox: Sandbox, host: Host) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\ngenerate: on-merge\n")
    sandbox.spec()
    tip = sandbox.commit("Ask")
    sandbox.push()

    secrets = {"GENERATE_TOKEN": "canary-5d1f"}
    ran = host.run(TEAMS / "generate.yaml", {"sha": tip, "ref": "refs/heads/main"}, secrets=secrets)

    sandbox.pull()
    assert ran.is_green, ran.output
    assert sandbox.git("log", "-1", "--format=%s").strip() == "generate(peak): 3 trials"
    assert len(sandbox.active()) == 1
    assert "canary-5d1f" not in ran.output + ran.summary + sandbox.git("log", "-p", "--all")


def test_a_due_round_is_asked_for_on_main_once(sandbox: Sandbox, host: Host, tmp_path: Path) -> None:
    begun(sandbox, settings="next: workflow\n")
    record(sandbox, tmp_path / "results")
    event = {"sha": sandbox.head(), "ref": "refs/heads/main"}
    secrets = {"GENERATE_TOKEN": "canary-5d1f"}

    ran = host.run(TEAMS / "next.yaml", event, secrets=secrets)
    sandbox.pull()
    subject = sandbox.git("log", "-1", "--format=%s").strip()
    again = host.run(TEAMS / "next.yaml", event, secrets=secrets)

    assert ran.is_green, ran.output
    assert subject == "next(hill): round 2, 3 trials of tpe"
    assert again.is_green, again.output
    assert sandbox.git("ls-remote", "origin", "main").split()[0] == sandbox.head()
    assert "canary-5d1f" not in ran.output + ran.summary + sandbox.git("log", "-p", "--all")


def test_the_month_whose_budget_counts_is_the_one_that_it_is(
    sandbox: Sandbox, host: Host, propose: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-02-03T04:05:06Z")
    budget(sandbox, 3)
    ask(sandbox, "vision-a", 4)

    before = datetime.now(UTC)
    ran = host.run(CHECK, propose())
    months = {f"{moment:%Y-%m}" for moment in (before, datetime.now(UTC))}

    (found,) = ran.annotations
    assert found.title == "budget-overdrawn"
    assert any(f": {month} has used 0" in found.message for month in months), found.message
    assert any(f"vision {month}: 0 of 3" in ran.summary for month in months), ran.summary
