"""Results that go to the servers of the settings: what they lack, whatever happens to another server."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from msgspec import structs

from sweepledger.errors import ToolError, UsageError
from sweepledger.operations.collection.collector import collect_from_state
from sweepledger.operations.repository.workspace import Workspace, results_target
from sweepledger.repo.git import Repository
from sweepledger.stores.registry import stores
from sweepledger.structs.settings.results import SyncTarget
from sweepledger.verbs import sync as command
from tests.operations.test_collect import leave
from tests.repository import Sandbox

optuna.logging.set_verbosity(optuna.logging.ERROR)


def record(sandbox: Sandbox, volume: Path, name: str = "peak") -> None:
    """Merge a sweep of three trials, and record two of them as finished."""
    batch = sandbox.merged(name)
    for index in range(2):
        leave(volume, sandbox.batch(batch), index)
    target = results_target(sandbox.workspace, push=False)
    (commit,) = collect_from_state(target, volume, volume / "none", over={batch}).collected
    assert commit.batches


def with_stores(workspace: Workspace, **places: str) -> Workspace:
    """Return a workspace whose settings name stores, which tests keep in files."""
    targets = {store: SyncTarget(place, "store") for store, place in places.items()}
    settings = workspace.settings
    return replace(
        workspace, settings=structs.replace(settings, results=structs.replace(settings.results, sync=targets))
    )


def trials(storage: str, name: str = "peak") -> list[str]:
    return [trial.state.name for trial in optuna.load_study(study_name=name, storage=storage).trials]


def test_what_a_server_has_is_not_read_again(sandbox: Sandbox, tmp_path: Path) -> None:
    record(sandbox, tmp_path / "volume")
    storage = f"sqlite:///{tmp_path}/optuna.db"
    workspace = with_stores(sandbox.workspace, optuna=storage)

    first, second = command.sync_stores(workspace), command.sync_stores(workspace)

    assert [(each.sweep, each.added, each.unfinished) for each in first.data["synced"]] == [("peak", 2, 1)]
    assert second.data == {"synced": [], "unchanged": [{"store": "optuna", "sweep": "peak"}]}
    assert second.failures == ()
    assert trials(storage) == ["COMPLETE", "COMPLETE"]


def test_a_failing_server(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(sandbox, tmp_path / "volume")
    storage = f"sqlite:///{tmp_path}/optuna.db"
    attempted = []

    def unreachable(sweep: str, place: str) -> None:
        attempted.append(sweep)
        raise ToolError("MLflow does not answer", hint="")

    kinds = {name: replace(kind, version=unreachable) for name, kind in stores().items()}
    monkeypatch.setattr(command, "all_stores", lambda: kinds)
    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))

    synced = command.sync_stores(with_stores(sandbox.workspace, mlflow="https://mlflow.example.org"))

    assert synced.data["synced"] == []
    assert [str(failure) for failure in synced.failures] == ["MLflow does not answer"]
    assert attempted == ["peak"]
    monkeypatch.undo()
    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))
    both = with_stores(sandbox.workspace, mlflow="https://mlflow.example.org", optuna=storage)
    assert [each.store for each in command.sync_stores(both).data["synced"]] == ["optuna"], (
        "mlflow is not installed"
    )
    assert [type(failure) for failure in command.sync_stores(both).failures] == [ToolError]


def test_a_clone_is_enough(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(sandbox, tmp_path / "volume")
    sandbox.push()
    subprocess.run(["git", "-C", str(sandbox.remote), "config", "uploadpack.allowFilter", "true"], check=True)
    clone = [*("git", "clone", "-q", "--depth=1", "--filter=blob:none", "--sparse"), sandbox.remote.as_uri()]
    subprocess.run([*clone, str(tmp_path / "clone")], check=True)
    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(tmp_path / "clone"))
    workspace = Workspace(Repository(tmp_path / "clone"), sandbox.workspace.settings)
    storage = f"sqlite:///{tmp_path}/optuna.db"

    synced = command.sync_stores(with_stores(workspace, optuna=storage))

    assert [each.added for each in synced.data["synced"]] == [2]
    assert trials(storage) == ["COMPLETE", "COMPLETE"]


def test_credentials_of_a_store(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))
    record(sandbox, tmp_path / "volume")
    for store, password in (("mlflow", "one"), ("optuna", "two")):
        folder = tmp_path / "accounts" / store
        folder.mkdir(parents=True)
        (folder / "PGPASSWORD").write_text(f"{password}\n")
        (folder / "..data").mkdir()
    seen = {}

    def version(sweep: str, place: str) -> None:
        seen[place.partition(":")[0]] = os.environ.get("PGPASSWORD")
        raise ToolError(f"{sweep} at {place}", hint="")

    kinds = {name: replace(kind, version=version) for name, kind in stores().items()}
    monkeypatch.setattr(command, "all_stores", lambda: kinds)
    workspace = with_stores(sandbox.workspace, mlflow="https://mlflow.example.org", optuna="postgresql://db")

    command.sync_stores(workspace, credentials=tmp_path / "accounts")

    assert seen == {"https": "one", "postgresql": "two"}
    assert "PGPASSWORD" not in os.environ


def test_a_store_is_named_with_a_sweep_or_by_the_settings(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match="names no server"):
        command.sync_stores(sandbox.workspace)

    done = sandbox.sweep("sync", "optuna")

    assert (done.returncode, "name a store and a sweep, or neither" in done.stderr) == (2, True)
