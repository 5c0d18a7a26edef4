"""A real registry where there is one, and small ones that misbehave in the ways that registries can."""

import base64
import hashlib
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from generator.commands.pin import pin
from generator.engine import registry
from generator.engine.registry import Repository
from generator.errors import ToolError, UsageError
from tests.repository import Sandbox

OLD = f"sha256:{'0' * 64}"
SETTINGS = """# ours
version: 1
images:
  trainer:   # what trains
    repository: {repository}
    tag: v1
    digest: {digest}   # of v1
"""


def settings(sandbox: Sandbox, host: str) -> None:
    text = SETTINGS.format(repository=f"{host}/team/trainer", digest=OLD)
    sandbox.write("sweepledger.yaml", text)


@dataclass
class Shelf:
    """What a small registry answers, and what it was asked."""

    manifest: bytes = b'{"schemaVersion": 2}'
    said: str | None = ""
    """Its Docker-Content-Digest; empty: the right one, None: none at all."""
    status: int = 200
    password: str | None = None
    wait: float = 0.0
    leads_to: str | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.manifest).hexdigest()}"


def handler(shelf: Shelf) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            proof = self.headers.get("Authorization")
            shelf.asked.append((self.command, self.path, proof))
            shelf.accepted.append(self.headers.get("Accept", ""))
            time.sleep(shelf.wait)
            if self.path.startswith("/token"):
                wanted = base64.b64encode(f"ada:{shelf.password}".encode()).decode()
                good = proof == f"Basic {wanted}"
                self.answer(200 if good else 401, json.dumps({"token": "a-token"}).encode())
            elif shelf.leads_to:
                self.send_response(307)
                self.send_header("Location", shelf.leads_to)
                self.end_headers()
            elif shelf.password is not None and proof != "Bearer a-token":
                host = self.headers["Host"]
                challenge = f'Bearer realm="http://{host}/token",service="small",scope="repository:x:pull"'
                self.answer(401, b"", **{"WWW-Authenticate": challenge})
            else:
                said = shelf.digest if shelf.said == "" else shelf.said
                self.answer(shelf.status, shelf.manifest, **({"Docker-Content-Digest": said} if said else {}))

        do_HEAD = do_GET  # noqa: N815 - what the standard library calls

        def answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def host(shelf: Shelf) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(shelf))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_digest_is_written_where_the_old_one_stood_and_nothing_else_changes(
    sandbox: Sandbox, host: str, shelf: Shelf
) -> None:
    settings(sandbox, host)
    before = (sandbox.root / "sweepledger.yaml").read_text()

    found = pin(sandbox.workspace, "trainer")

    assert (found.digest, found.before, found.is_new) == (shelf.digest, OLD, True)
    assert (sandbox.root / "sweepledger.yaml").read_text() == before.replace(OLD, shelf.digest)
    assert shelf.asked == [("HEAD", "/v2/team/trainer/manifests/v1", None)]
    assert "application/vnd.oci.image.index.v1+json" in shelf.accepted[0]
    assert not pin(sandbox.workspace, "trainer").is_new


def test_another_tag_is_written_as_well(sandbox: Sandbox, host: str, shelf: Shelf) -> None:
    settings(sandbox, host)

    found = pin(sandbox.workspace, "trainer", tag="v2")

    assert found.reference == f"{host}/team/trainer:v2@{shelf.digest}"
    assert sandbox.workspace.settings.images["trainer"].tag == "v2"


def test_a_registry_that_names_no_digest_is_asked_for_the_bytes(host: str, shelf: Shelf) -> None:
    shelf.said = None

    assert registry.resolve(f"{host}/team/trainer", "v1") == shelf.digest
    assert [method for method, _, _ in shelf.asked] == ["HEAD", "GET"]


def test_bytes_that_are_not_what_the_registry_says_are_refused(host: str, shelf: Shelf) -> None:
    shelf.said = "sha256:no"

    with pytest.raises(ToolError, match="but what it sends is"):
        registry.resolve(f"{host}/team/trainer", "v1")


def test_a_private_image_is_shown_to_whoever_has_logged_in(
    host: str, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.password = "secret word"  # noqa: S105 - of this test
    auth = base64.b64encode(b"ada:secret word").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    assert registry.resolve(f"{host}/team/trainer", "v1") == shelf.digest

    token = next(path for _, path, _ in shelf.asked if path.startswith("/token"))
    assert token == "/token?service=small&scope=repository%3Ax%3Apull"  # noqa: S105


def test_without_a_login_the_way_to_one_is_told_and_no_password(
    host: str, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.password = "secret word"  # noqa: S105 - of this test
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    with pytest.raises(ToolError, match="does not show team/trainer") as raised:
        registry.resolve(f"{host}/team/trainer", "v1")

    assert f"docker login {host}" in str(raised.value.hint)
    auth = base64.b64encode(b"ada:wrong word").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
    with pytest.raises(ToolError) as raised:
        registry.resolve(f"{host}/team/trainer", "v1")
    assert "wrong" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, UsageError, "has no team/trainer:v1"),
        (403, ToolError, "does not show team/trainer"),
        (500, ToolError, "answers 500"),
    ],
)
def test_a_refusal_is_told_and_nothing_is_written(
    sandbox: Sandbox, host: str, shelf: Shelf, status: int, kind: type[Exception], said: str
) -> None:
    shelf.status = status
    settings(sandbox, host)
    before = (sandbox.root / "sweepledger.yaml").read_text()

    with pytest.raises(kind, match=said):
        pin(sandbox.workspace, "trainer")

    assert (sandbox.root / "sweepledger.yaml").read_text() == before


def test_a_registry_that_is_slow_or_gone_is_told_by_name(
    host: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "TIMEOUT_SECONDS", 0.2)
    shelf.wait = 1.0
    with pytest.raises(ToolError, match=r"no answer within"):
        registry.resolve(f"{host}/team/trainer", "v1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(ToolError, match=f"127.0.0.1:{port} cannot be asked"):
        registry.resolve(f"127.0.0.1:{port}/team/trainer", "v1")


def test_nobody_is_led_out_of_encryption(host: str, shelf: Shelf) -> None:
    shelf.leads_to = "http://registry.example.org/v2/"

    with pytest.raises(ToolError, match="without encryption"):
        registry.resolve(f"{host}/team/trainer", "v1")


def test_unknown_images_and_tags_are_refused_before_anyone_is_asked(sandbox: Sandbox) -> None:
    settings(sandbox, "registry.example.org")

    with pytest.raises(UsageError, match="names no image 'other'"):
        pin(sandbox.workspace, "other")
    with pytest.raises(UsageError, match="is no tag"):
        pin(sandbox.workspace, "trainer", tag="../v1")


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("python", "https://registry-1.docker.io/v2/library/python/manifests/v1"),
        ("docker.io/team/x", "https://registry-1.docker.io/v2/team/x/manifests/v1"),
        ("team/x", "https://registry-1.docker.io/v2/team/x/manifests/v1"),
        ("registry.example.org/x", "https://registry.example.org/v2/x/manifests/v1"),
        ("localhost:5000/x/y", "http://localhost:5000/v2/x/y/manifests/v1"),
        ("localhost.example.org/x", "https://localhost.example.org/v2/x/manifests/v1"),
    ],
)
def test_a_repository_is_looked_for_where_container_tools_do(reference: str, url: str) -> None:
    assert Repository.of(reference).url("v1") == url


@pytest.fixture
def real_registry(tmp_path: Path) -> Iterator[str]:
    """Distribution's own registry on this machine."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("skipped: docker-registry not found")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    config = tmp_path / "registry.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/store}}}}\n"
        f"http: {{addr: '{host}'}}\n"
    )
    with subprocess.Popen([program, "serve", str(config)], stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://{host}/v2/", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield host
        process.terminate()


def push(host: str) -> str:
    """Push an image of one empty layer; give its digest as computed here."""

    def put(path: str, content: bytes, kind: str) -> None:
        url = path if path.startswith("http") else f"http://{host}{path}"
        request = urllib.request.Request(url, content, {"Content-Type": kind}, method="PUT")  # noqa: S310
        urllib.request.urlopen(request).close()  # noqa: S310

    config = b"{}"
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    start = urllib.request.Request(f"http://{host}/v2/team/trainer/blobs/uploads/", b"", method="POST")
    with urllib.request.urlopen(start) as begun:  # noqa: S310
        place = begun.headers["Location"]
    put(f"{place}{'&' if '?' in place else '?'}digest={digest}", config, "application/octet-stream")
    kind = "application/vnd.oci.image.manifest.v1+json"
    described = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest, "size": 2}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": kind, "config": described, "layers": []}).encode()
    put("/v2/team/trainer/manifests/v1", manifest, kind)
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def test_a_real_registry_is_understood(
    sandbox: Sandbox, real_registry: str, run_sweep: Callable[..., CompletedProcess[str]]
) -> None:
    digest = push(real_registry)
    settings(sandbox, real_registry)

    done = run_sweep("pin", "trainer", cwd=sandbox.root)

    assert done.returncode == 0, done.stderr
    assert f"digest: {digest}   # of v1" in (sandbox.root / "sweepledger.yaml").read_text()
    assert run_sweep("pin", "trainer", "--tag", "v9", cwd=sandbox.root).returncode == 2
