"""Budgets: what a month used up, what is reserved, and merges that would take more."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sweepledger.errors import SpecError, UsageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.plan.budgets import BudgetUnit
from sweepledger.problems import Problem
from sweepledger.verbs.check import check_change
from sweepledger.verbs.cluster.budget import MonthBudget
from sweepledger.verbs.cluster.budget import month_budget as report
from tests.builders import present
from tests.operations.recording import record_batch
from tests.repository import IMAGE, Sandbox, append_to, replace_in

SETTINGS = f"""version: 1
defaults: {{image: '{IMAGE}', pool: gpus}}
currency: EUR
pools:
  gpus: {{node: {{cpu: 16, memory: 64Gi, gpu: 4}}, price: 4.0}}
budgets:
  vision: {{sweeps: ["vision-*"], gpu_hours: {{hours}}}}
"""


def budget(sandbox: Sandbox, hours: float) -> None:
    sandbox.publish("Give the team a budget", {"sweepledger.yaml": SETTINGS.replace("{hours}", f"{hours:g}")})


def asked(sandbox: Sandbox, hours: int, trials: int) -> str:
    """Give the team a budget, and merge a batch of so many trials of an hour; return its name."""
    budget(sandbox, hours)
    name = ask(sandbox, "vision-a", trials)
    sandbox.publish("Ask")
    return name


def taken(sandbox: Sandbox, hours: int) -> str:
    """Merge a batch that reserves all of the team's budget; return its name."""
    return asked(sandbox, hours, hours)


def ask(sandbox: Sandbox, name: str, trials: int, shape: str = "jobs") -> str:
    spec = sandbox.spec(name, xs=", ".join(map(str, range(trials))), parallelism=trials)
    text = (
        spec.read_text()
        .replace("memory: 256Mi", "memory: 256Mi, gpu: 1")
        .replace("timeout: 1m", f"timeout: 1h\n  max_disruptions: 0\n  shape: {shape}")
    )
    spec.write_text(text)
    (made,) = [
        generated_batch for generated_batch in sandbox.generate() if generated_batch.sweep.name == name
    ]
    return present(made.batch).name


def overdrawn(sandbox: Sandbox, base: str | None = None, month: str | None = None) -> list[Problem]:
    problems = check_change(Workspace.find(sandbox.root), base=base, month=month).problems
    assert {problem.code for problem in problems} <= {"budget-overdrawn"}
    return list(problems)


@pytest.mark.parametrize(
    ("limit", "unit"), [("gpu_hours: 3", "GPU hours"), ("money: 3", "EUR")], ids=["hours", "money"]
)
def test_what_exceeds_it_is_refused_and_says_by_how_much(
    sandbox: Sandbox, needs_kustomize: None, limit: str, unit: str
) -> None:
    settings = SETTINGS.replace("gpu_hours: {hours}", limit)
    sandbox.publish("Give the team a budget", {"sweepledger.yaml": settings})
    ask(sandbox, "vision-a", 4)

    (problem,) = overdrawn(sandbox, month="2026-11")

    assert problem.file == "sweeps/vision-a.yaml"
    assert problem.message == (
        f"budget vision has 3 {unit} a month: 2026-11 has used 0, 0 are reserved by batches that are "
        "not recorded yet, this requests 4 at most"
    )


def test_a_record_replaces_the_reservation_by_its_charge(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = asked(sandbox, 5, 4)
    record_batch(sandbox, name, lambda _: 900.0, failed=2)
    ask(sandbox, "vision-b", 3)

    assert overdrawn(sandbox, month="2026-11") == []
    (review,) = sandbox.plan("vision-b", month="2026-11").reviews
    (balance,) = review.balances
    # Six attempts of a quarter of an hour each: those that failed were paid for, too.
    expected = (BudgetUnit.GPU_HOURS, 1.5, 0, 3)
    assert (balance.unit, balance.used, balance.reserved, balance.requested) == expected


def test_a_month_counts_what_was_recorded_in_it(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = asked(sandbox, 5, 4)
    record_batch(sandbox, name, lambda _: 3600.0, at_once=1, began=datetime(2026, 10, 31, 22, 30, tzinfo=UTC))
    ask(sandbox, "vision-b", 3)

    # The first of four hours in a row ended in October, but all were recorded in November.
    assert overdrawn(sandbox, month="2026-10") == []
    (problem,) = overdrawn(sandbox, month="2026-11")
    assert "2026-11 has used 4," in problem.message


@pytest.mark.parametrize("seconds", [1e300, 3721.0])
def test_no_charge_exceeds_the_reservation(sandbox: Sandbox, needs_kustomize: None, seconds: float) -> None:
    name = asked(sandbox, 8, 4)
    record_batch(sandbox, name, lambda values: seconds if values["x"] == 1 else 900.0)

    (share,) = ledger(sandbox).sweeps

    assert share.used.gpu_hours == pytest.approx(1.75)  # an hour, and three quarters
    assert ledger(sandbox).doubtful == (name,)
    shown = sandbox.sweep("cluster", "budget", "--month", "2026-11").stderr
    assert f"results/vision-a/records/{name}.jsonl: warning: a trial took more time than" in shown
    assert "[times-absurd]" in shown


def test_a_result_in_no_time_is_named(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = asked(sandbox, 8, 2)
    record_batch(sandbox, name, lambda values: 0.0 if values["x"] == 1 else 900.0)

    assert ledger(sandbox).doubtful == (name,)


def test_a_shallow_clone_counts_by_records(sandbox: Sandbox, needs_kustomize: None, tmp_path: Path) -> None:
    name = asked(sandbox, 8, 2)
    record_batch(sandbox, name, lambda _: 900.0, recorded="2026-12-01T00:00:00Z")
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{sandbox.remote}", str(tmp_path / "shallow")], check=True
    )

    shallow = report(Workspace.find(tmp_path / "shallow"), month="2026-11")

    assert [share.used.gpu_hours for share in shallow.sweeps] == [0.5]
    assert ledger(sandbox).sweeps == ()
    assert [share.used.gpu_hours for share in ledger(sandbox, "2026-12").sweeps] == [0.5]


def ledger(sandbox: Sandbox, month: str = "2026-11") -> MonthBudget:
    return report(sandbox.workspace, month=month)


def test_without_a_month_the_commit_decides(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-03-31T23:30:00Z")
    budget(sandbox, 5)
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    sandbox.spec("vision-a")

    assert sandbox.plan().month == "2025-03"
    with pytest.raises(UsageError, match="2026-13 is not a month"):
        sandbox.plan(month="2026-13")


def cancel(sandbox: Sandbox, sweep: str, name: str) -> None:
    append_to(sandbox.root / f"sweeps/{sweep}.yaml", f"cancel: [{name}]\n")
    (sandbox.root / "overlays/archive").mkdir(parents=True, exist_ok=True)
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    (sandbox.root / "overlays/archive/.gitkeep").touch()


def test_with_generation_on_merge_the_spec_reserves(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("sweepledger.yaml", SETTINGS.replace("{hours}", "2") + "generate: on-merge\n")
    sandbox.publish("Generate after the merge")
    ask(sandbox, "vision-a", 3)
    subprocess.run(["git", "clean", "-fdq", "overlays"], cwd=sandbox.root, check=True)

    problems = check_change(Workspace.find(sandbox.root)).problems

    assert {problem.code for problem in problems} == {"budget-overdrawn", "pending"}


def test_the_ledger_of_a_month_shows_teams_and_sweeps(sandbox: Sandbox) -> None:
    name = asked(sandbox, 5, 4)
    record_batch(sandbox, name, lambda _: 900.0)
    ask(sandbox, "vision-b", 3)
    sandbox.publish("Ask for more")

    done = sandbox.sweep("cluster", "budget", "--month", "2026-11")

    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if "not observed" not in line]
    assert len(lines) == len(done.stdout.splitlines()) - 1, "nobody saw how long recorded trials took"
    assert [line.split() for line in lines] == [
        ["2026-11", "unit", "used", "reserved", "remaining", "limit"],
        ["vision", "GPU", "hours", "1.00", "3.00", "1.00", "5.00"],
        [],
        ["sweep", "GPU", "hours", "reserved", "EUR", "reserved"],
        ["vision-a", "1.00", "0.00", "1.00", "0.00"],
        ["vision-b", "0.00", "3.00", "0.00", "3.00"],
    ]


def test_a_resume_is_another_attempt_of_each_trial(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = asked(sandbox, 6, 2)
    for hours in (4, 6):
        sandbox.pause("vision-a", push=True)
        sandbox.resume("vision-a")
        assert overdrawn(sandbox, month="2026-11") == []
        sandbox.push()
        assert [share.reserved.gpu_hours for share in ledger(sandbox).sweeps] == [hours]

    replace_in(sandbox.root / "sweeps/vision-a.yaml", "resumes:", r'"r\x65sumes":')
    sandbox.publish("Spell the key otherwise")
    assert [share.reserved.gpu_hours for share in ledger(sandbox).sweeps] == [6]
    record_batch(sandbox, name, lambda _: 900.0)

    (share,) = ledger(sandbox).sweeps
    assert (share.used.gpu_hours, share.reserved.gpu_hours) == (4.5, 0)  # two quarters, and two hours twice


def test_fewer_trials_at_once_are_charged_like_a_resume(sandbox: Sandbox, needs_kustomize: None) -> None:
    budget(sandbox, 6)
    ask(sandbox, "vision-a", 2, shape="indexed")
    sandbox.publish("Ask")
    for parallelism, hours in ((1, 4), (2, 4), (1, 6)):
        sandbox.scale("vision-a", parallelism)
        assert overdrawn(sandbox, month="2026-11") == []
        sandbox.push()
        assert [share.reserved.gpu_hours for share in ledger(sandbox).sweeps] == [hours]
    sandbox.scale("vision-a", 2)
    sandbox.push()

    with pytest.raises(SpecError, match=r"6 are reserved .* this requests 2 at most"):
        sandbox.scale("vision-a", 1)
    sandbox.pause("vision-a")


def test_a_resume_above_the_budget_is_refused(sandbox: Sandbox, needs_kustomize: None) -> None:
    asked(sandbox, 5, 3)
    sandbox.pause("vision-a", push=True)
    spec = sandbox.root / "sweeps/vision-a.yaml"

    with pytest.raises(SpecError, match=r"3 are reserved .* this requests 3 at most"):
        sandbox.resume("vision-a")

    replace_in(spec, "paused: true", "paused: false\n    resumes: 1")
    sandbox.generate()
    (problem,) = overdrawn(sandbox, month="2026-11")
    assert (problem.file, problem.path) == ("sweeps/vision-a.yaml", "running")
