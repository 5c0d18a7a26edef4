"""What a shell is offered: asked as it asks, by the functions that Typer calls."""

from collections.abc import Callable
from pathlib import Path

import pytest

from generator.cli import completing
from tests.commands.test_read import recorded, trial_of
from tests.repository import IMAGE, Sandbox

ALL = (completing.sweeps, completing.batches, completing.images, completing.trials)


def test_names_that_lie_in_the_repository_are_offered(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = recorded(sandbox, tmp_path / "volume")
    sandbox.spec("tower")
    repository, _, digest = IMAGE.partition("@")
    entries = f"git: {{repository: {repository}, digest: '{digest}'}}, train: {{repository: {repository}}}"
    sandbox.write("sweepledger.yaml", f"images: {{{entries}}}\n")
    monkeypatch.chdir(sandbox.root / "code")

    assert completing.sweeps("") == ["peak", "tower"]
    assert completing.sweeps("to") == ["tower"]
    assert completing.batches("peak-b1") == [batch.name]
    assert completing.images("") == ["git", "train"]
    assert trial_of(batch) in completing.trials(trial_of(batch)[:4])


@pytest.mark.parametrize("complete", ALL)
def test_where_nothing_can_be_read_nothing_is_said(
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
