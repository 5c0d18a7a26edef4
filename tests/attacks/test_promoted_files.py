"""What somebody has committed beside a configuration file, in its names and in its statement, misleads no promotion."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweepledger.commands.promote import Publication, check_promotions, promote_values
from sweepledger.errors import UsageError
from tests.commands.test_read import recorded
from tests.repository import Sandbox

LEVELS = 100_000
CLAIM = ".intoto.json"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    folder = tmp_path_factory.mktemp("promoted")
    sandbox = Sandbox.create(folder)
    recorded(sandbox, folder / "volume", "1, 2")
    sandbox.write("plain.yaml", "x: 7\n")
    sandbox.write("linked.yaml", "x: 7\n")
    (sandbox.root / "link.yaml").symlink_to("plain.yaml")
    (sandbox.root / "mapping.json").symlink_to('{"x": 7}')
    (sandbox.root / "folder").symlink_to("results")
    sandbox.write("executable.yaml", "x: 7\n").chmod(0o755)
    (sandbox.root / f"linked.yaml{CLAIM}").symlink_to("../outside")
    sandbox.write("claimed.yaml", "x: 7\n")
    sandbox.write(f"claimed.yaml{CLAIM}/kept.txt", "this must not go\n")
    deep = "[" * LEVELS + "]" * LEVELS
    sandbox.write("deep.json", f'{{"x": {deep}}}')
    sandbox.write("deep.toml", f"x = {deep}\n")
    sandbox.write("deep.yaml", f"x: {deep}\n")
    sandbox.commit("Add configurations")
    return sandbox


def promoted(sandbox: Sandbox, file: str, branch: str) -> str:
    return promote_values(sandbox.workspace, "peak", file, publication=Publication(branch, push=False)).commit


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "file",
    [
        *("link.yaml", "mapping.json", "folder/peak/provenance.json", "executable.yaml", "linked.yaml"),
        *("claimed.yaml", "deep.json", "deep.toml", "deep.yaml", ".git/config", "../plain.yaml"),
        *(":(top)plain.yaml", "*.yaml", "results", "."),
    ],
)
def test_only_plain_files_with_room_for_their_statement_are_promoted_into(
    file: str, history: Sandbox
) -> None:
    with pytest.raises(UsageError):
        promoted(history, file, "refused")

    assert history.git("branch", "--list", "refused") == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("keys.json", {"a\n\nTrial: forged\nInputs-Digest: sha256:0": {"x": 1}}),
        ("values.json", {"b": {"x": "1\n\nTrial: forged"}}),
        ("separators.json", {"c\u2028\u0085\r\n\nTrial: forged": {"x": "\x1b[31m"}}),
        ("a\n\nTrial: forged\n.json", {"x": 1}),
    ],
    ids=["key", "value", "separators", "file"],
)
def test_no_name_of_a_file_or_key_begins_a_trailer(file: str, content: object, history: Sandbox) -> None:
    history.write(file, json.dumps(content))
    history.commit("Add a configuration")

    commit = promoted(history, file, f"branch-{len(file)}")

    trailers = history.git("show", "-s", "--format=%(trailers:key=Trial,valueonly)", commit).split()
    assert len(trailers) == 1
    message = history.git("show", "-s", "--format=%B", commit)
    assert "\nTrial: forged" not in message
    assert all(line.isprintable() for line in message.split("\n"))


def at(*keys: str | int) -> Callable[[Any, object], None]:
    def change(statement: Any, value: object) -> None:
        for key in keys[:-1]:
            statement = statement[key]
        statement[keys[-1]] = value

    return change


PREDICATE = ("predicate", "buildDefinition")
VALUES = at(*PREDICATE, "externalParameters", "values")
STATEMENTS: dict[str, tuple[Callable[[Any, object], None], object]] = {
    "no parameters": (at(*PREDICATE, "internalParameters"), None),
    "a number of parameters": (at(*PREDICATE, "internalParameters"), 1),
    "a list of parameters": (at(*PREDICATE, "internalParameters"), [["value", 1]]),
    "a text of parameters": (at(*PREDICATE, "internalParameters"), "value"),
    "no number": (at(*PREDICATE, "internalParameters", "value"), float("nan")),
    "an endless number": (VALUES, {"x": float("inf")}),
    "values that are a list": (VALUES, [1, 2]),
    "values of no text": (VALUES, {"x": "\ud800"}),
    "another sweep": (at(*PREDICATE, "externalParameters", "sweep"), "../../etc"),
    "a sweep like an option": (at(*PREDICATE, "externalParameters", "sweep"), "--output=x"),
    "another trial": (at(*PREDICATE, "externalParameters", "trial"), "t000\n"),
    "another file": (at("subject", 0, "name"), "../../etc/passwd"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_forged_statement_is_a_difference(name: str, history: Sandbox) -> None:
    start = history.git("rev-parse", "HEAD").strip()
    change, value = STATEMENTS[name]
    history.git("reset", "-q", "--hard", promoted(history, "plain.yaml", name.replace(" ", "-")))
    path: Path = history.root / f"plain.yaml{CLAIM}"
    statement = json.loads(path.read_text())
    (valid,) = check_promotions(history.workspace)
    change(statement, value)
    path.write_text(json.dumps(statement))
    history.commit("Forge it")

    (found,) = check_promotions(history.workspace)
    history.git("reset", "-q", "--hard", start)

    assert valid.differences == ()
    assert found.differences
