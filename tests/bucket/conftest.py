"""Fixtures of the tests of buckets: a folder that stands for a bucket, and real servers in the full suite."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.bucket.objects import Bucket
from tests.bucket import servers
from tests.bucket.pods import Pod
from tests.bucket.servers import NoServerError, StorageServer

MakePod = Callable[..., Pod]


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[StorageServer]:
    """A real S3 server of its own; it can be stopped and started."""
    folder = tmp_path / "s3"
    folder.mkdir()
    try:
        with servers.running("s3", folder) as server:
            yield server
    except NoServerError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture(
    params=[
        "folder",
        *(pytest.param(kind, marks=pytest.mark.full_suite("object storage")) for kind in servers.KINDS),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path | None]]:
    """The address of an empty bucket, and the folder of its credentials."""
    if request.param == "folder":
        yield f"file://{tmp_path / 'bucket'}", None
        return
    folder = tmp_path / "server"
    folder.mkdir()
    try:
        with servers.running(request.param, folder) as server:
            _create_container(server, request.param)
            yield server.url, server.secrets
    except NoServerError as error:
        pytest.skip(f"skipped: {error}")


def _create_container(server: StorageServer, kind: str) -> None:
    """Azurite alone has no bucket that a folder makes."""
    if kind == "azure":
        servers.create_azure_container(server)


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Callable[..., MakePod]]:
    made: list[Pod] = []

    def of(url: str, secrets: Path | None) -> MakePod:
        def pod(**changes: Any) -> Pod:
            made.append(Pod(tmp_path / f"pod-{len(made)}", url, secrets, **changes))
            return made[-1]

        return pod

    yield of
    for pod in made:
        if pod.sidecar is not None and pod.sidecar.poll() is None:
            pod.sidecar.send_signal(signal.SIGKILL)
            pod.sidecar.wait()


@pytest.fixture
def pod(pods: Callable[..., MakePod], place: tuple[str, Path | None]) -> MakePod:
    """Make pods whose results go to each kind of bucket."""
    return pods(*place)


@pytest.fixture
def s3_pod(pods: Callable[..., MakePod], s3: StorageServer) -> MakePod:
    """Make pods whose results go to the S3 server."""
    return pods(s3.url, s3.secrets)


@pytest.fixture
def plain_pod(pods: Callable[..., MakePod], tmp_path: Path) -> MakePod:
    """Make pods whose results go to a folder that stands for a bucket."""
    return pods(f"file://{tmp_path / 'bucket'}", None)


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(f"file://{tmp_path / 'bucket'}")
