"""Servers of object storage on loopback: versitygw for S3, Azurite for Azure's.

    python -m tests.bucket.servers     install Azurite; exit code 1 if npm cannot, and its tests are then skipped

There is none for Google's: fake-gcs-server refuses the uploads of the library, which are those of the XML API.
"""

import base64
import hmac
import http
import http.client
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

from tests import npm
from tests.cluster import building
from tests.cluster.processes import free_ports

KEY_ID, KEY = "the-test", "a-key-of-the-test"
BUCKET = "results"
START_SECONDS = 120
AZURITE = "azurite@3.37.0"
AZURITE_PINS = Path(__file__).parent / "azurite"
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""As Azurite's documentation has it: it accepts no other."""


class NoServerError(Exception):
    """What the server is made of cannot be had here."""


def free_port() -> int:
    return free_ports(1)[0]


@dataclass
class StorageServer:
    """A server that can go away and come back with what it has."""

    folder: Path
    url: str
    variables: Mapping[str, str]
    """What a client needs, by the names that the library knows."""
    command: Callable[["StorageServer"], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def secrets(self) -> Path:
        """The folder of credentials, as Kubernetes mounts a Secret."""
        return self.folder / "secrets"

    @property
    def access_log(self) -> Path:
        """A line for each request, of versitygw."""
        return self.folder / "access.log"

    def start(self) -> None:
        self.secrets.mkdir(exist_ok=True)
        for name, value in self.variables.items():
            (self.secrets / name).write_text(value.replace("PORT", str(self.port)))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(self),
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        until = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise AssertionError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status > 0
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def requests(self) -> int:
        lines = self.access_log.read_text().splitlines() if self.access_log.exists() else []
        return sum(" s3_" in line for line in lines)


def _program(group: building.Group) -> Path:
    folder = building.built(group)
    if folder is None:
        raise NoServerError(f"{group.name} is not built: python -m tests.cluster.building {group.name}")
    return folder / group.name


def _s3(folder: Path, data: Path | None = None) -> StorageServer:
    program, place = _program(building.VERSITYGW), data or folder / "data"
    (place / BUCKET).mkdir(parents=True, exist_ok=True)
    return StorageServer(
        folder,
        f"s3://{BUCKET}/sweeps",
        {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:PORT",
            "AWS_ALLOW_HTTP": "true",
        },
        lambda server: [
            *(str(program), "--port", f"127.0.0.1:{server.port}", "--access-log", str(server.access_log)),
            *("posix", str(place)),
        ],
        {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": KEY},
    )


def _azure(folder: Path) -> StorageServer:
    node, program = shutil.which("node"), building.BUILT / AZURITE / "node_modules/.bin/azurite-blob"
    if node is None or not program.exists():
        raise NoServerError("Azurite is not installed: make .venv/stamps/azurite")
    return StorageServer(
        folder,
        f"az://{BUCKET}/sweeps",
        {
            "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:PORT/{AZURE_ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        },
        lambda server: [
            *(node, str(program.resolve()), "--blobHost", "127.0.0.1", "--blobPort", str(server.port)),
            *("--location", str(folder), "--skipApiVersionCheck", "--silent"),
        ],
    )


KINDS: Mapping[str, Callable[[Path], StorageServer]] = {"s3": _s3, "azure": _azure}


@contextmanager
def running(kind: str, folder: Path, *, data: Path | None = None) -> Iterator[StorageServer]:
    """Run a server for a block. Raises NoServerError."""
    server = _s3(folder, data) if data else KINDS[kind](folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def create_azure_container(server: StorageServer) -> None:
    """Create the container, as its owner would by hand; the library only uses one."""
    date = formatdate(usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": "2021-12-02", "Content-Length": "0"}
    resource = f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{BUCKET}\nrestype:container"
    signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-12-02\n{resource}"
    signature = base64.b64encode(hmac.digest(base64.b64decode(AZURE_KEY), signed.encode(), "sha256")).decode()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(
        "PUT",
        f"/{AZURE_ACCOUNT}/{BUCKET}?restype=container",
        headers={**headers, "Authorization": f"SharedKey {AZURE_ACCOUNT}:{signature}"},
    )
    response = connection.getresponse()
    assert response.status == http.HTTPStatus.CREATED, response.read()
    connection.close()


def install_azurite() -> None:
    """Install the pinned packages, whose own scripts do not run. Raises NoServerError."""
    folder = building.BUILT / AZURITE
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(AZURITE_PINS / name, folder / name)
    try:
        npm.run(folder, "ci")
    except npm.NpmError as error:
        raise NoServerError(str(error)) from error


def main() -> int:
    """Install what npm has, and report if it is missing."""
    try:
        install_azurite()
    except NoServerError as error:
        sys.stderr.write(f"missing: Azurite ({error}); its tests will be skipped\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
