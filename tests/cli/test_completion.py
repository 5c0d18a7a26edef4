"""What a shell is offered: asked as it asks, by the functions that Typer calls."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.cli import completion
from tests.operations.test_read import recorded, trial_of
from tests.repository import IMAGE, Sandbox

ALL = (completion.sweeps, completion.batches, completion.images, completion.trials)


def test_repository_names_complete(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = recorded(sandbox, tmp_path / "volume")
    sandbox.spec("tower")
    repository, _, digest = IMAGE.partition("@")
    entries = f"git: {repository}@{digest}, train: {repository}"
    sandbox.write("sweepledger.yaml", f"images: {{{entries}}}\n")
    monkeypatch.chdir(sandbox.root / "code")

    assert completion.sweeps("") == ["peak", "tower"]
    assert completion.sweeps("to") == ["tower"]
    assert completion.batches("peak-b1") == [batch.name]
    assert completion.images("") == ["git", "train"]
    assert trial_of(batch) in completion.trials(trial_of(batch)[:4])


@pytest.mark.parametrize("complete", ALL)
def test_errors_complete_nothing_and_print_nothing(
    complete: Callable[[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sweepledger.yaml").write_text(": no YAML [")
    monkeypatch.chdir(tmp_path)

    assert complete("") == []
    assert capfd.readouterr() == ("", "")
