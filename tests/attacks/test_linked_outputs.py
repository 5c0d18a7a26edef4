"""A committed link stands where a command writes: nothing is written through it, whatever the command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.cli.app import all_commands
from tests.operations.test_fetch import FILES, record, recorded
from tests.repository import Sandbox

READ = {
    *(("cluster collect", "--results"), ("cluster data", "path"), ("import", "file")),
    *(("cluster expire", option) for option in ("--results", "--checkpoints", "--artifacts")),
    *(("sync", "--credentials"), ("verify", "--signers")),
}
"""Paths that are only read, or name volumes, which are in no repository."""
STATE = {
    (command, "--state")
    for command in (
        "best",
        "cluster collect",
        "cluster local",
        "logs",
        "results",
        "run",
        "show",
        "site",
        "status",
    )
}
"""State folders; `tests/attacks/test_state_in_git.py` tries them."""
WRITTEN: dict[tuple[str, str], tuple[str, ...]] = {
    ("check", "--report"): ("check", "--report", "{place}"),
    ("check", "--summary"): ("check", "--summary", "{place}"),
    ("export", "--output"): ("export", "wandb", "peak", "--output", "{place}"),
    ("show", "--fetch"): ("show", "{trial}", "--state", "{state}", "--fetch", "{place}"),
    ("import", "--output"): ("import", "csv", "{source}", "--output", "{place}"),
    ("cluster init", "folder"): ("cluster", "init", "{place}"),
    ("cluster metrics", "--to"): ("cluster", "metrics", "--to", "{place}"),
    ("results", "--to"): ("results", "peak", "--output", "csv", "--to", "{place}"),
    ("site", "--out"): ("site", "--out", "{place}"),
    ("sync", "--to"): ("sync", "parquet", "peak", "--to", "{place}"),
}
"""Options by which a command writes, and a call that does; `{place}` is where."""
FOLDERS = {"check --report", "show --fetch", "site --out", "sync --to"}
FURTHER = {
    "model card": (("sync", "model-card", "peak"), "README.md"),
    "tensorboard": (("sync", "tensorboard", "peak"), "runs"),
    "below the folder": (("check", "--report", "out"), "out/check.json"),
    "below a chosen folder": (
        ("show", "{trial}", "--state", "{state}", "--fetch", "models"),
        "models/plots",
    ),
}
"""Further calls, and the path of the link."""


def declared(command: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each command and its parameter that is a path, as the command line declares them."""
    for below, each in getattr(command, "commands", {}).items():
        yield from declared(each, f"{name} {below}".strip())
    for parameter in () if hasattr(command, "commands") else command.params:
        if (parameter.metavar or "").strip("[]") in {"DIR", "FILE", "PATH", "PLACE"}:
            yield name, parameter.opts[0]


def test_each_path_of_each_command_is_read_or_tried_here() -> None:
    assert set(declared(all_commands())) == READ | STATE | WRITTEN.keys()


@pytest.fixture
def words(sandbox: Sandbox, tmp_path: Path) -> dict[str, str]:
    batch = recorded(sandbox, tmp_path / "state", [record(*item) for item in FILES.items()])
    source = tmp_path / "source.csv"
    source.write_text("x\n1\n2\n")
    (tmp_path / "elsewhere").mkdir()
    return {"trial": batch.rows[1].trial, "state": str(tmp_path / "state"), "source": str(source)}


def committed_link(sandbox: Sandbox, path: str, target: Path) -> None:
    link = sandbox.root / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    sandbox.git("add", "--force", path)
    sandbox.git("commit", "-q", "-m", "A link")


def run(sandbox: Sandbox, argv: tuple[str, ...], words: dict[str, str]) -> tuple[int, str]:
    done = sandbox.sweep(*(word.format(**words) for word in argv))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.sampled(10)
@pytest.mark.parametrize("output", [" ".join(option) for option in WRITTEN])
@pytest.mark.parametrize("where", ["link", "link/below", "folder/link"])
def test_no_command_writes_through_a_committed_link(
    output: str, where: str, sandbox: Sandbox, words: dict[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "elsewhere"
    if where != "link/below" and output not in FOLDERS and not output.startswith("cluster init"):
        target /= "file"
    committed_link(sandbox, where.removesuffix("/below"), target)
    name, _, option = output.rpartition(" ")

    code, text = run(sandbox, WRITTEN[name, option], {**words, "place": where})

    assert list((tmp_path / "elsewhere").iterdir()) == [], text
    assert code != 0, text
    assert code != 70, text


@pytest.mark.parametrize("further", FURTHER)
def test_nor_through_one_below(further: str, sandbox: Sandbox, words: dict[str, str], tmp_path: Path) -> None:
    argv, path = FURTHER[further]
    target = tmp_path / "elsewhere"
    committed_link(sandbox, path, target if "." not in path else target / "file")

    code, text = run(sandbox, argv, words)

    assert list((tmp_path / "elsewhere").iterdir()) == [], text
    assert (code, "not a symbolic link" in text) == (3, True), text


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("place", "output"),
    [
        ("{tmp}/out", "show --fetch"),
        ("../out", "cluster metrics --to"),
        ("{tmp}/mine/out", "results --to"),
        ("{tmp}/mine/out", "check --summary"),
    ],
    ids=["absolute", "relative", "by a link", "of a summary"],
)
def test_a_path_that_a_person_chooses_outside_is_written(
    output: str, place: str, sandbox: Sandbox, words: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path / "disk")
    place = place.format(tmp=tmp_path)
    name, _, option = output.rpartition(" ")

    code, text = run(sandbox, WRITTEN[name, option], {**words, "place": place})

    assert code in {0, 5}, text
    assert (sandbox.root / place).exists()
