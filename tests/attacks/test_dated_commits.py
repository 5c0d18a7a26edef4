"""An author chooses the dates of commits, and a host that merges by fast-forward keeps them: no charge is forgotten."""

import os
import subprocess
from unittest.mock import patch

import pytest

from sweepledger.verbs.cluster.budget import MonthBudget
from sweepledger.verbs.cluster.budget import month_budget as report
from tests.operations.recording import record_batch
from tests.operations.test_budgets import ask, overdrawn, taken
from tests.repository import Sandbox

pytestmark = pytest.mark.usefixtures("needs_kustomize")
HOURS = 3
NOVEMBER = "2026-11"
DATES = ["1970-01-02T00:00:00Z", "2000-01-01T00:00:00Z", "2026-10-31T23:59:59Z", "2027-03-01T00:00:00Z"]


def charged(sandbox: Sandbox, month: str = NOVEMBER) -> MonthBudget:
    return report(sandbox.workspace, month=month)


def merged(sandbox: Sandbox, date: str) -> None:
    with patch.dict(os.environ, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date):
        sandbox.commit("A remark")
    sandbox.push()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("date", DATES)
def test_a_commit_of_another_date_frees_no_budget(date: str, sandbox: Sandbox) -> None:
    record_batch(sandbox, taken(sandbox, HOURS), lambda _: 3600.0)
    sandbox.write("docs/remark.md", "x\n")
    merged(sandbox, date)
    ask(sandbox, "vision-b", 2)

    (problem,) = overdrawn(sandbox, month=NOVEMBER)

    assert f"{NOVEMBER} has used {HOURS}, 0 are reserved" in problem.message


@pytest.mark.sampled(1)
@pytest.mark.parametrize("date", DATES)
def test_records_that_were_there_for_a_moment_date_no_charge(date: str, sandbox: Sandbox) -> None:
    name = taken(sandbox, HOURS)
    path = f"results/vision-a/records/{name}.jsonl"
    sandbox.write(path, "\n")
    merged(sandbox, date)
    sandbox.git("rm", "-q", path)
    merged(sandbox, date)

    record_batch(sandbox, name, lambda _: 3600.0)

    (share,) = charged(sandbox).sweeps
    assert share.used.gpu_hours == HOURS


@pytest.mark.parametrize("seconds", ["0", "253402300800", "9007199254740993", "9223372036854775807"])
def test_a_time_that_no_calendar_has_ends_no_check(seconds: str, sandbox: Sandbox) -> None:
    record_batch(sandbox, taken(sandbox, HOURS), lambda _: 3600.0)
    who = f"a <a@example.org> {seconds} +0000"
    lines = [f"tree {sandbox.git('rev-parse', 'HEAD^{tree}').strip()}", f"parent {sandbox.head()}"]
    content = "\n".join([*lines, f"author {who}", f"committer {who}", "", "x"]).encode()
    command = ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"]
    made = subprocess.run(command, cwd=sandbox.root, input=content, check=True, capture_output=True)
    sandbox.git("reset", "-q", "--hard", made.stdout.decode().strip())
    sandbox.push()

    assert charged(sandbox).sweeps[0].used.gpu_hours == HOURS
    assert report(sandbox.workspace).month  # that of the last commit
