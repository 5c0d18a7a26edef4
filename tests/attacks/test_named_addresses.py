"""A repository names an address, and a person who reads the repository has a credential: it is not sent there."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.errors import GeneratorError, RepositoryError, UsageError
from sweepledger.operations.record_stores.bucket import bucket_results
from sweepledger.structs.settings import BucketSettings
from sweepledger.verbs.sync import sync_stores
from tests.operations.test_read import recorded
from tests.operations.test_sync import with_stores
from tests.repository import Sandbox

BUCKETS: dict[str, dict[str, Any]] = {
    "az": {"url": "az://container/vision", "account": "someone"},
    "s3": {"url": "s3://bucket/vision", "region": "eu-central-1"},
}
CREDENTIALS = {
    "AZURE_STORAGE_TOKEN": "AZ-BEARER-SECRET",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "key",
    "AWS_SESSION_TOKEN": "S3-SESSION-SECRET",
    "MLFLOW_TRACKING_TOKEN": "MLFLOW-SECRET",
}


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own configuration of git; the person has credentials."""
    file = tmp_path / "gitconfig"
    file.write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    for name in ("SWEEP_TRUSTED_CLONE", "AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return file


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    heard: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(str(self.headers))
            self.send_error(404)

        do_HEAD = do_POST = do_GET  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}", heard
        made.shutdown()


def names(sandbox: Sandbox, kind: str, endpoint: str | None) -> None:
    settings = BucketSettings(egress="bucket", endpoint=endpoint, **BUCKETS[kind])
    bucket_results(settings, sandbox.workspace.repository).names()


@pytest.mark.parametrize(("kind", "place"), [("az", "/folder"), ("s3", "")])
def test_an_endpoint_of_a_repository_hears_nothing(
    kind: str, place: str, sandbox: Sandbox, configuration: Path, server: tuple[str, list[str]]
) -> None:
    address, heard = server
    sandbox.git(
        "config", "--local", "sweepledger.trust", address
    )  # what a repository brings is no word of a person

    with pytest.raises(RepositoryError, match="would get a credential of yours") as refused:
        names(sandbox, kind, address + place)

    assert heard == []
    assert f"git config --global --add sweepledger.trust {address}" in (refused.value.hint or "")


@pytest.mark.parametrize("kind", BUCKETS)
def test_one_that_the_person_trusts_once_is_asked(
    kind: str, sandbox: Sandbox, configuration: Path, server: tuple[str, list[str]]
) -> None:
    address, heard = server
    sandbox.git("config", "--global", "--add", "sweepledger.trust", address)

    with pytest.raises(GeneratorError):  # the server has no bucket
        names(sandbox, kind, address)

    assert "SECRET" in "".join(heard)
    with pytest.raises(RepositoryError, match="would get a credential"):
        names(sandbox, kind, "https://127.0.0.1:1")


def test_a_bearer_goes_to_no_other_machine_in_the_clear(sandbox: Sandbox, configuration: Path) -> None:
    sandbox.git("config", "--global", "--add", "sweepledger.trust", "http://objects.example.org")

    with pytest.raises(UsageError, match="in the clear"):
        names(sandbox, "az", "http://objects.example.org/account")


@pytest.mark.parametrize("kind", BUCKETS)
def test_a_cloud_needs_no_word_nor_does_an_endpoint_of_the_persons_own(
    kind: str, sandbox: Sandbox, configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = sandbox.workspace.repository
    variable = {"az": "AZURE_STORAGE_ENDPOINT", "s3": "AWS_ENDPOINT_URL"}[kind]

    assert bucket_results(BucketSettings(egress="bucket", **BUCKETS[kind]), repository)
    monkeypatch.setenv(variable, "https://mine.example.org")
    named = BucketSettings(egress="bucket", endpoint="https://theirs.example.org", **BUCKETS[kind])
    assert bucket_results(named, repository)


@pytest.mark.parametrize(
    "address",
    [
        "https://mlflow.example.org",
        "postgresql://database.example.org/x",
        "mysql+pymysql://d.example.org/x?host=e",
    ],
)
def test_a_store_gets_no_secrets(address: str, sandbox: Sandbox, configuration: Path, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume")
    kind = "mlflow" if address.startswith("https") else "optuna"

    (failure,) = sync_stores(with_stores(sandbox.workspace, **{kind: address})).failures

    assert "would get a credential of yours" in str(failure)


def test_the_pods_of_the_platform_trust_their_own_clone(
    sandbox: Sandbox, configuration: Path, monkeypatch: pytest.MonkeyPatch, server: tuple[str, list[str]]
) -> None:
    address, heard = server
    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))

    with pytest.raises(GeneratorError):
        names(sandbox, "s3", address)

    assert heard
