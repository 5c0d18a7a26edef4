"""Specs on the command line: the schema that editors use, warnings, and the files beside a spec."""

import json
import os
from pathlib import Path

import pytest
import yaml

from sweepledger.spec.schema_keys import load_schema, schema_text
from tests.command_line import run_sweep
from tests.repository import Sandbox


def test_the_schema_is_printed_anywhere(tmp_path: Path) -> None:
    assert run_sweep("schema", cwd=tmp_path).stdout == schema_text("sweep")
    assert run_sweep("schema", "--settings", cwd=tmp_path).stdout == schema_text("settings")


def test_each_key_of_a_name_is_described_with_the_paths_at_which_it_may_be(tmp_path: Path) -> None:
    def lines(*options: str) -> list[str]:
        return run_sweep("schema", *options, cwd=tmp_path).stdout.splitlines()

    retries = lines("--key", "retries")
    port = json.loads(
        run_sweep("schema", "--settings", "--key", "dns.port", "--format", "json", cwd=tmp_path).stdout
    )

    assert [line for line in retries if line[0] != " "] == [
        "run.retries: integer, 0 to 10; default 0",
        "run.infrastructure.retries: integer, 0 to 10; required; such as 2",
    ]
    assert lines("--key", "parameters.lr.parameters.head.min") == lines("--key", "parameters.x.min")
    (key,) = port["data"]["keys"]
    assert (key["path"], key["also"]) == ("dns.port", ["clusters.NAME.dns.port"])
    assert key["schema"]["default"] == 53


def test_a_key_of_the_other_document_is_named_with_the_option(tmp_path: Path) -> None:
    done = run_sweep("schema", "--key", "pools.big.price", cwd=tmp_path)

    assert (done.returncode, "run the command with --settings" in done.stderr) == (2, True)


def test_a_new_spec_names_the_schema_next_to_it(sandbox: Sandbox) -> None:
    sandbox.write("sweeps/.schema.json", "of an older release")

    sandbox.sweep("new", "lr")

    first = (sandbox.root / "sweeps/lr.yaml").read_text().splitlines()[0]
    file = first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads((sandbox.root / "sweeps" / file).read_text()) == load_schema("sweep")
    assert sandbox.sweep("validate").stdout == "sweeps/lr.yaml: ok, 6 trials\n"


CLONES = """version: 1
defaults: {image: git}
images:
  git: registry.example.org/git@sha256:%s
code: {url: 'https://git.example.org/team/sweeps.git', image: git}
""" % ("1" * 64)


@pytest.mark.parametrize(("settings", "code"), [(CLONES, "clone"), ("version: 1\n", None)])
def test_a_new_spec_clones_code_if_pods_can(sandbox: Sandbox, settings: str, code: str | None) -> None:
    sandbox.write("sweepledger.yaml", settings)

    sandbox.sweep("new", "lr")

    spec = yaml.safe_load((sandbox.root / "sweeps/lr.yaml").read_text())
    assert spec["run"]["code"].get("mode") == code
    assert sandbox.sweep("validate").stdout == "sweeps/lr.yaml: ok, 6 trials\n"


@pytest.mark.parametrize("command", ["generate", "check"])
def test_warnings_are_printed_and_do_not_fail_the_command(sandbox: Sandbox, command: str) -> None:
    sandbox.write_spec("repeated", parameters={"x": {"values": [1, 2]}}, replicates=2)
    sandbox.commit("Ask")
    if command == "check":
        sandbox.sweep("generate")

    text = sandbox.sweep(command)
    data = json.loads(sandbox.sweep(command, "--format", "json").stdout)

    assert text.returncode == 0, text.stderr
    assert "warning:" in text.stderr
    assert data["status"] == "ok"
    assert {problem["severity"] for problem in data["problems"]} == {"warning"}


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_only_a_regular_file_is_opened(sandbox: Sandbox, kind: str) -> None:
    sandbox.write_spec("listed", method="list", assignments="points.csv")
    target = sandbox.root / "sweeps/points.csv"
    match kind:
        case "link":
            target.symlink_to(sandbox.write("secret.csv", "x\n1\n"))
        case "pipe":
            os.mkfifo(target)

    done = sandbox.sweep("validate")

    assert done.returncode == 1
    assert "there is no 'sweeps/points.csv' [list-file]" in done.stderr


@pytest.mark.parametrize("arguments", [("validate",)])
def test_without_specs_the_way_to_write_one_is_named(sandbox: Sandbox, arguments: tuple[str, ...]) -> None:
    done = sandbox.sweep(*arguments)

    assert (done.returncode, done.stdout) == (0, "no spec in sweeps/: `sweep new NAME` writes one\n")


@pytest.mark.parametrize("below", ["sweeps"])
@pytest.mark.parametrize("has_settings", [True, False])
def test_settings_below_the_root_are_refused(sandbox: Sandbox, below: str, *, has_settings: bool) -> None:
    sandbox.write("team/vision/sweepledger.yaml", "version: 1\n")
    sandbox.write("team/vision/sweeps/lr.yaml", "name: lr\n")
    (sandbox.root / "sweepledger.yaml").unlink(missing_ok=True)
    if has_settings:
        sandbox.write("sweepledger.yaml", "version: 1\n")

    done = run_sweep("validate", cwd=sandbox.root / "team/vision" / below)

    assert done.returncode == 3
    assert "sweepledger.yaml must be at the root of the repository, got one in team/vision" in done.stderr
    assert "`run.code.path: team/vision`" in done.stderr


@pytest.mark.parametrize("command", ["check"])
def test_no_check_passes_if_no_sweep_is_in_a_folder_that_is_read(sandbox: Sandbox, command: str) -> None:
    sandbox.write("team/vision/sweepledger.yaml", "version: 1\n")
    sandbox.write("team/vision/sweeps/lr.yaml", "name: lr\n")
    sandbox.write("docs/sweepledger.yaml", "version: 1\n")
    (sandbox.root / "sweepledger.yaml").unlink(missing_ok=True)
    sandbox.commit("Put the sweeps of a team into a folder")

    elsewhere = sandbox.sweep(command)
    sandbox.write("sweepledger.yaml", "version: 1\n")
    at_the_root = sandbox.sweep(command)

    assert elsewhere.returncode == 3
    assert (
        "sweepledger.yaml must be at the root of the repository, got one in team/vision" in elsewhere.stderr
    )
    assert at_the_root.returncode == 0, at_the_root.stderr


def test_a_program_named_from_its_folder_has_a_path_from_the_root(sandbox: Sandbox) -> None:
    sandbox.commit("Add a program", {"ml/experiments/code/score.py": "print('score=1')\n"})

    options = ("--command", "python code/score.py", "--param", "x=1,2")
    done = run_sweep("new", "lr", *options, cwd=sandbox.root / "ml/experiments")

    assert done.returncode == 2
    assert "did you mean ml/experiments/code/score.py?" in done.stderr
