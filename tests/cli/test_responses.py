"""Every command answers as text and as one JSON envelope, with the right exit code, and never a traceback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepledger.repo.state import create_state
from sweepledger.structs.record import Status
from tests.command_line import ROOT, run_program, run_sweep
from tests.repository import Sandbox

KEYS = {"version", "command", "status", "data", "problems"}
PROBLEM_KEYS = {"code", "file", "line", "column", "path", "message", "hint", "severity"}


def envelope(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout)
    assert set(document) == KEYS
    assert document["version"] == 1
    assert all(set(problem) == PROBLEM_KEYS for problem in document["problems"])
    assert "Traceback" not in done.stderr
    return document


def test_check_prints_how_much_of_their_pool_new_batches_use(sandbox: Sandbox) -> None:
    pool = "{selector: {disk: ssd}, node: {cpu: 2, memory: 1Gi}, max_nodes: 7}"
    sandbox.write("sweepledger.yaml", f"defaults: {{pool: small}}\npools: {{small: {pool}}}\n")
    sandbox.spec()
    sandbox.publish("Name a pool")
    assert sandbox.sweep("generate").returncode == 0
    (batch,) = sandbox.active()

    text = sandbox.sweep("check")
    document = envelope(sandbox.sweep("check", "--format", "json"))
    sandbox.publish("Ask")
    merged = envelope(sandbox.sweep("check", "--format", "json"))

    line = "3 × small (1 CPU, 256 MiB) · 2 at once · 1 node of at most 7"  # noqa: RUF001 - as shown
    assert f"{batch}: {line}\nok: 1 spec(s)" in text.stdout
    assert document["data"]["pools"][batch]["max_nodes"] == 7
    assert merged["data"]["pools"] == {}


def test_the_whole_story_as_json(sandbox: Sandbox) -> None:
    def ask(*arguments: str, code: int = 0) -> dict[str, Any]:
        done = sandbox.sweep(*arguments, "--format", "json")
        assert done.returncode == code, done.stderr
        document = envelope(done)
        assert document["command"] == " ".join(arguments[: 1 + (arguments[0] == "cluster")])
        assert document["status"] == "ok"
        data: dict[str, Any] = document["data"]
        return data

    sandbox.spec()
    size = {"trials": 3, "rounds": None, "round_size": None}
    assert ask("validate")["sweeps"] == [{"name": "peak", "path": "sweeps/peak.yaml", **size}]
    assert ask("try", "peak", "--trial", "1")["metrics"] == {"score": 0.5}
    assert ask("generate", "--check", code=5)["sweeps"][0]["new"] == 3
    batch = ask("generate")["sweeps"][0]["batch"]
    sandbox.publish("Ask")
    assert ask("check") == {"specs": 1, "built": [], "unchanged": [batch], "untracked": [], "pools": {}}
    assert (status := ask("status"))["sweeps"][0]["pending"] == 3
    assert status["disk"]["is_complete"]
    (landed,) = ask("cluster", "local", "--once")["collected"]
    assert landed["counts"] == {**{str(status): 0 for status in Status}, "ok": 3}
    sandbox.pull()
    assert ask("status", "peak")["sweeps"][0]["ok"] == 3
    trials = ask("results", "peak", "--top", "1")["trials"]
    assert [(trial["metrics"]["score"], trial["configuration"]) for trial in trials] == [
        (0.5, {"x": 2, "bias": 0.5})
    ]
    best = trials[0]["trial"]
    assert ask("logs", best)["attempts"][0]["stdout"] == "x=2.0 bias=0.5\n"
    shown = ask("show", best[:6])
    assert shown["configuration"] == {"x": 2, "bias": 0.5}
    assert [commit["action"] for commit in shown["commits"]] == ["requested", "generated", "recorded"]
    entries = ask("log", "peak")["entries"]
    expected = [("spec", None, None), ("batch", None, None), ("results", 0.5, None)]
    assert [(entry["kind"], entry["best"], entry["change"]) for entry in entries] == expected
    lists = ("collected", "waiting", "stalled", "requested", "remarks")
    assert ask("cluster", "collect") == {name: [] for name in lists}
    assert ask("generate", "peak", "--update")["sweeps"][0]["batch"] is None
    assert ask("new", "other")["paths"] == ["sweeps/other.yaml", ".gitattributes"]


def test_all_problems_are_printed_at_once_with_their_positions(sandbox: Sandbox) -> None:
    sandbox.write(
        "sweeps/wrong.yaml",
        "name: wrongg\n"
        "description: five mistakes\n"
        "method: gird\n"
        "metric: {name: score, goal: up}\n"
        "parameters:\n"
        "  x: {values: [1, 1.0]}\n"
        'command: [python, "${arg}"]\n',
    )

    done = sandbox.sweep("validate", "--format", "json")

    document = envelope(done)
    assert done.returncode == 1
    assert document["status"] == "problems"
    assert [(problem["line"], problem["column"], problem["path"]) for problem in document["problems"]] == [
        (1, 7, "name"),
        (3, 9, "method"),
        (4, 29, "metric.goal"),
        (6, 19, "parameters.x.values[1]"),
        (7, 19, "command[1]"),
    ]
    assert {problem["file"] for problem in document["problems"]} == {"sweeps/wrong.yaml"}
    assert all(problem["message"] and problem["code"] for problem in document["problems"])


ANYWHERE = pytest.mark.parametrize("form", ["text", "json"])


def refused(done: subprocess.CompletedProcess[str], code: int, words: str, form: str) -> None:
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + done.stdout
    if form == "json":
        document = envelope(done)
        assert document["status"] == "error"
        assert words in document["problems"][0]["message"]
    else:
        assert done.stdout == ""
        assert words in done.stderr


@ANYWHERE
def test_outside_a_repository(tmp_path: Path, form: str) -> None:
    refused(run_sweep("validate", "--format", form, cwd=tmp_path), 3, "is not inside a git repository", form)


@ANYWHERE
@pytest.mark.parametrize(
    ("change", "words"), [("remove origin", "no remote 'origin'"), ("set-url origin /no", "git fetch failed")]
)
def test_without_the_remote(sandbox: Sandbox, change: str, words: str, form: str) -> None:
    sandbox.merged()
    sandbox.git("remote", *change.split())

    refused(sandbox.sweep("cluster", "local", "--once", "--format", form), 3, words, form)


@ANYWHERE
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["validate", "nobody"], "no sweep 'nobody'"),
        (["results", "nobody"], "no sweep 'nobody'"),
        (["show", "t123"], "no trial 't123'"),
        (["logs", "t123"], "no trial 't123'"),
        (["generate", "--base", "nowhere"], "--base nowhere is not a commit"),
        (["new", "No Name"], "is not a valid sweep name"),
        (["try", "peak", "--trial", "9"], "has trials 0 to 2, got 9"),
        (["generate", "--push", "--check"], "--push cannot be combined with --check"),
        (["generate", "--push", "--exit-code"], "--push cannot be combined with"),
        (["generate", "--push", "--base", "HEAD"], "--push cannot be combined with"),
        (["bogus"], "No such command 'bogus'"),
        (["export", "bogus", "peak"], "Invalid value for 'FORMAT': 'bogus' is not one of 'wandb', "),
        (["status", "nobody"], "no sweep 'nobody'"),
        (["status", "--bogus"], "No such option: --bogus"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_unknown_words_are_wrong_usage(sandbox: Sandbox, arguments: list[str], words: str, form: str) -> None:
    sandbox.spec()

    refused(sandbox.sweep(*arguments, "--format", form), 2, words, form)


def test_a_detached_head_works_as_well(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("Ask")
    sandbox.git("checkout", "-q", "--detach")

    assert sandbox.sweep("generate").returncode == 0
    assert sandbox.sweep("check").returncode == 0


def test_from_a_folder_below_the_root(sandbox: Sandbox) -> None:
    sandbox.spec()

    done = run_sweep("validate", cwd=sandbox.root / "code")

    assert done.stdout == "sweeps/peak.yaml: ok, 3 trials\n"


GENERATOR = str(ROOT / "generator")
LARGE = 300_000
"""More than a pipe holds (64 KiB) and than Python keeps back."""

RESPONSES = {
    "json": f"respond('results', Format.JSON, lambda: Response({{'text': 'x' * {LARGE}}}))",
    "many lines": f"respond('results', Format.TEXT, lambda: Response({{}}, ('x' * 100,) * {LARGE // 100}))",
}


def piped(program: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run Python before a reader that closes after one letter; give its exit code and errors."""
    shell = '"$0" -c "$1" | head -c 1 >/dev/null; exit "${PIPESTATUS[0]}"'
    return run_program("bash", "-c", shell, sys.executable, program, cwd=root, PYTHONPATH=GENERATOR)


@pytest.mark.parametrize("case", ["json", "many lines"])
def test_a_closed_pipe_does_not_fail_a_large_response(case: str, tmp_path: Path) -> None:
    program = f"""
import typer
from sweepledger.cli.response import Format, Response, respond
try:
    {RESPONSES[case]}
except typer.Exit as leaving:
    raise SystemExit(leaving.exit_code)
"""

    done = piped(program, tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


def unread(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose answer nobody reads; its errors are read."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        return subprocess.run(
            [sys.executable, "-m", "sweepledger.cli", *arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": GENERATOR},
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["generate", "--check"], 5),
        (["status", "--bogus", "--format", "json"], 2),
        *(
            pytest.param(arguments, code, marks=pytest.mark.full_suite("more closed pipes"))
            for arguments, code in (
                (["validate", "--format", "json"], 0),
                (["generate", "--help"], 0),
                (["--version"], 0),
                (["schema"], 0),
                (["validate"], 0),
                (["plan"], 0),
                (["generate", "--check", "--format", "json"], 5),
                (["status", "nobody", "--format", "json"], 2),
            )
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_closed_pipe_keeps_the_exit_code(sandbox: Sandbox, arguments: list[str], code: int) -> None:
    sandbox.spec()
    assert sandbox.sweep(*arguments).stdout

    done = unread(sandbox.root, *arguments)

    assert (done.returncode, done.stderr) == (code, "")


@ANYWHERE
def test_a_trial_of_try_has_no_id(sandbox: Sandbox, form: str) -> None:
    sandbox.spec()

    done = sandbox.sweep("try", "peak", "--trial", "2", "--format", form)

    assert done.returncode == 0, done.stderr
    assert not re.search(r"\bt[0-9a-f]{11}\b", done.stdout + done.stderr)
    assert "launch.py: try: ok" in done.stderr


def test_status_says_what_this_clone_takes_of_the_disk(sandbox: Sandbox) -> None:
    sandbox.spec()
    create_state(sandbox.workspace.repository)
    sandbox.write(".sweepledger/data/large", "x" * (5 << 20))

    assert ".sweepledger takes 5 MiB of the disk" in sandbox.sweep("status").stdout


def test_local_warns_of_batches_that_are_not_on_the_branch(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.sweep("generate")
    sandbox.commit("Ask")

    done = sandbox.sweep("cluster", "local", "--once")

    assert "1 batch of your work tree is not on origin/main yet: push it" in done.stdout
    sandbox.push()
    assert "work tree" not in sandbox.sweep("cluster", "local", "--once").stdout


def test_status_of_a_sweep_without_a_batch(sandbox: Sandbox) -> None:
    sandbox.spec()

    done = sandbox.sweep("status", "peak")

    assert "no batch yet" in done.stdout
    sweeps = envelope(sandbox.sweep("status", "peak", "--format", "json"))["data"]["sweeps"]
    assert [(sweep["name"], sweep["batches"], sweep["planned"]) for sweep in sweeps] == [("peak", 0, 0)]


def test_control_characters_in_commit_messages_are_escaped(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("\x1b[31mred\x1e\x1f")

    done = sandbox.sweep("log")

    assert (done.returncode, "\x1b" in done.stdout) == (0, False)


TOP = (
    "new import schema validate plan try run generate check submit status list why results best show logs log compare "
    "site retry cancel rename delete verify export sync cluster"
)
"""The commands of `sweep` in the order of use."""
OF_A_CLUSTER = (
    "init pin data bootstrap doctor upgrade local collect next pause resume scale budget metrics expire"
)
"""The commands of `sweep cluster` in the order of use."""


@pytest.mark.parametrize(
    ("group", "commands"), [((), TOP), (("cluster",), OF_A_CLUSTER)], ids=["sweep", "cluster"]
)
def test_the_help_names_every_command(tmp_path: Path, group: tuple[str, ...], commands: str) -> None:
    shown = run_sweep(*group, "--help", cwd=tmp_path, COLUMNS="80").stdout

    rows = shown.partition("Commands:\n")[2].splitlines()
    assert [row.split()[0] for row in rows] == commands.split()
    assert not [row for row in rows if row.endswith("...")]
    lines = shown.splitlines()
    assert len(lines) < 40  # a prompt follows
    assert max(map(len, lines)) <= 80
    for command in commands.split():
        assert run_sweep(*group, command, "--help", cwd=tmp_path).returncode == 0
    bare = run_sweep(*group, cwd=tmp_path, COLUMNS="80")
    assert (bare.returncode, bare.stdout, bare.stderr) == (2, shown, "")


@pytest.mark.parametrize(
    ("command", "reason"),
    {
        "generate --update": "--update needs the names of sweeps",
        "generate peak --update --push": "--push cannot be combined with",
        "schema --key run.retry": "did you mean 'run.retries'?",
        "compare peak peak --write": "--write needs --explain",
        "show t0 --run": "--run needs --reproduce",
        "show t0 --by-pod": "--by-pod needs --fetch DIR",
        "show t0 --reproduce --fetch out": "--fetch cannot be combined with --reproduce",
        "import trials runs.csv": "trials need --name",
        "import csv runs.csv --as old": "--as and --study are for trials",
        "cluster collect --by-pod --cluster": "--by-pod cannot be combined with --cluster",
    }.items(),
)
def test_options_that_do_not_belong_together_are_refused(sandbox: Sandbox, command: str, reason: str) -> None:
    done = sandbox.sweep(*command.split())

    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr
