"""Small registries that misbehave in the ways that registries can."""

import base64
import hashlib
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

import pytest

from sweepledger.errors import SpecError, ToolError, UsageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import image_registry as registry
from sweepledger.repo.image_registry import ImageRepository
from sweepledger.verbs.cluster.pin import pin_image
from tests.repository import Sandbox

OLD = f"sha256:{'0' * 64}"
SETTINGS = """# ours
version: 1
images:
  # what trains
  trainer: "{repository}:v1@{digest}"   # of v1
"""


def settings(sandbox: Sandbox, host: str) -> None:
    text = SETTINGS.format(repository=f"{host}/team/trainer", digest=OLD)
    sandbox.write("sweepledger.yaml", text)


@dataclass
class Shelf:
    """What a small registry answers, and what it was asked."""

    manifest: bytes = b'{"schemaVersion": 2}'
    reported_digest: str | None = ""
    """Its Docker-Content-Digest; empty: the right one, None: none at all."""
    status: int = 200
    password: str | None = None
    may_answer: threading.Event = field(default_factory=threading.Event)
    leads_to: str | None = None
    leads_from: str = "/"
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.manifest).hexdigest()}"


def handler(shelf: Shelf) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            proof = self.headers.get("Authorization")
            shelf.requests.append((self.command, self.path, proof))
            shelf.accepted.append(self.headers.get("Accept", ""))
            shelf.may_answer.wait(60)
            if self.path.startswith("/token"):
                wanted = base64.b64encode(f"ada:{shelf.password}".encode()).decode()
                good = proof == f"Basic {wanted}"
                self.answer(200 if good else 401, json.dumps({"token": "a-token"}).encode())
            elif shelf.leads_to and self.path.startswith(shelf.leads_from):
                self.send_response(307)
                self.send_header("Location", shelf.leads_to)
                self.end_headers()
            elif shelf.password is not None and proof != "Bearer a-token":
                host = self.headers["Host"]
                challenge = f'Bearer realm="http://{host}/token",service="small",scope="repository:x:pull"'
                self.answer(401, b"", **{"WWW-Authenticate": challenge})
            else:
                message = shelf.digest if shelf.reported_digest == "" else shelf.reported_digest
                self.answer(
                    shelf.status, shelf.manifest, **({"Docker-Content-Digest": message} if message else {})
                )

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
    made = Shelf()
    made.may_answer.set()
    return made


@pytest.fixture
def host(shelf: Shelf) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(shelf))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_digest_alone_is_replaced(sandbox: Sandbox, host: str, shelf: Shelf) -> None:
    settings(sandbox, host)
    before = (sandbox.root / "sweepledger.yaml").read_text()

    result = pin_image(sandbox.workspace, "trainer")

    assert (result.digest, result.previous, result.changed) == (shelf.digest, OLD, True)
    assert (sandbox.root / "sweepledger.yaml").read_text() == before.replace(OLD, shelf.digest)
    assert shelf.requests == [("HEAD", "/v2/team/trainer/manifests/v1", None)]
    assert "application/vnd.oci.image.index.v1+json" in shelf.accepted[0]
    assert not pin_image(sandbox.workspace, "trainer").changed


def test_an_image_without_a_digest_gets_its_first_and_a_new_one_is_added(
    sandbox: Sandbox, host: str, shelf: Shelf
) -> None:
    text = f"version: 1\nimages:\n  trainer: {host}/team/trainer:v1\n"
    sandbox.write("sweepledger.yaml", f"{text}  other: {host}/team/other:v1\n")

    result = pin_image(Workspace.find(sandbox.root, unpinned=True), "trainer")

    assert (result.digest, result.previous) == (shelf.digest, "")
    pinned = f'trainer: "{host}/team/trainer:v1@{shelf.digest}"\n'
    assert pinned in (sandbox.root / "sweepledger.yaml").read_text()
    with pytest.raises(SpecError) as raised:
        _ = sandbox.workspace
    (problem,) = raised.value.problems
    hint = "`sweep cluster pin other` finds the digest of its tag"
    assert (problem.path, problem.hint) == ("images.other", hint)
    pin_image(Workspace.find(sandbox.root, unpinned=True), "other")

    with pytest.raises(UsageError, match="has no image 'collector'") as unknown:
        pin_image(sandbox.workspace, "collector")
    assert "`sweep cluster pin collector --repository R --tag T`" in (unknown.value.hint or "")
    pin_image(sandbox.workspace, "collector", repository=f"{host}/team/collector", tag="v1")
    added = sandbox.workspace.settings.trials.images["collector"]
    assert added.reference == f"{host}/team/collector:v1@{shelf.digest}"


def test_a_registry_that_names_no_digest_or_a_wrong_one_is_asked_for_the_bytes(
    host: str, shelf: Shelf
) -> None:
    shelf.reported_digest = None

    assert registry.resolve_digest(f"{host}/team/trainer", "v1") == shelf.digest
    assert [method for method, _, _ in shelf.requests] == ["HEAD", "GET"]
    shelf.reported_digest = "sha256:no"
    with pytest.raises(ToolError, match="but its manifest has the digest"):
        registry.resolve_digest(f"{host}/team/trainer", "v1")


def test_a_private_image(host: str, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.password = "secret word"  # noqa: S105 - of this test
    auth = base64.b64encode(b"ada:secret word").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    assert registry.resolve_digest(f"{host}/team/trainer", "v1") == shelf.digest

    token = next(path for _, path, _ in shelf.requests if path.startswith("/token"))
    assert token == "/token?service=small&scope=repository%3Ax%3Apull"  # noqa: S105


def test_a_missing_login(host: str, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.password = "secret word"  # noqa: S105 - of this test
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    with pytest.raises(ToolError, match="denies access to team/trainer") as raised:
        registry.resolve_digest(f"{host}/team/trainer", "v1")

    assert f"docker login {host}" in str(raised.value.hint)
    auth = base64.b64encode(b"ada:wrong word").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))
    with pytest.raises(ToolError) as raised:
        registry.resolve_digest(f"{host}/team/trainer", "v1")
    assert "wrong" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (404, UsageError, "has no team/trainer:v1"),
        (403, ToolError, "denies access to team/trainer"),
        (500, ToolError, "responds with status 500"),
    ],
)
def test_a_refusal_is_told_and_nothing_is_written(
    sandbox: Sandbox, host: str, shelf: Shelf, status: int, kind: type[Exception], message: str
) -> None:
    shelf.status = status
    settings(sandbox, host)
    before = (sandbox.root / "sweepledger.yaml").read_text()

    with pytest.raises(kind, match=message):
        pin_image(sandbox.workspace, "trainer")

    assert (sandbox.root / "sweepledger.yaml").read_text() == before


def test_a_slow_or_missing_registry(host: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "TIMEOUT_SECONDS", 0.2)
    shelf.may_answer.clear()
    with pytest.raises(ToolError, match=r"no response within"):
        registry.resolve_digest(f"{host}/team/trainer", "v1")
    shelf.may_answer.set()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and nobody listens
        port = free.getsockname()[1]

        with pytest.raises(ToolError, match=f"127.0.0.1:{port} cannot be reached"):
            registry.resolve_digest(f"127.0.0.1:{port}/team/trainer", "v1")


def test_a_digest_is_not_believed_from_where_the_registry_leads(host: str, shelf: Shelf) -> None:
    shelf.reported_digest = f"sha256:{'6' * 64}"
    shelf.leads_to, shelf.leads_from = f"http://{host}/elsewhere", "/v2/"

    with pytest.raises(ToolError, match="but its manifest has the digest"):
        registry.resolve_digest(f"{host}/team/trainer", "v1")

    shelf.reported_digest = ""
    assert registry.resolve_digest(f"{host}/team/trainer", "v1") == shelf.digest
    assert [method for method, path, _ in shelf.requests if path == "/elsewhere"] == ["GET", "GET"]


@pytest.mark.parametrize(
    "place",
    [
        *("http://registry.example.org/v2/", "http://127.0.0.1:1/x", "https://127.0.0.1:1/x"),
        *("ftp://127.0.0.1/x", "file:///etc/passwd", "https://["),
    ],
    ids=["no-encryption", "another-host", "another-scheme", "ftp", "file", "no-address"],
)
def test_a_registry_leads_to_itself_or_by_encryption_only(place: str, host: str, shelf: Shelf) -> None:
    shelf.leads_to = place
    expected = (
        "has no encryption" if place.startswith("http://r") else "cannot be reached|responds with status 307"
    )

    with pytest.raises(ToolError, match=expected):
        registry.resolve_digest(f"{host}/team/trainer", "v1")


@pytest.mark.parametrize(
    "answer",
    [
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000,
        [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *[b"x"] * 1000],
        [bytes([letter]) for letter in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: 1\r\n" * 50],
    ],
    ids=["endless-continue", "slow-body", "slow-headers"],
)
def test_all_requests_have_one_deadline(answer: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "TIMEOUT_SECONDS", 0.2)
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        while not over.is_set():
            with suppress(OSError):
                spoken, _ = listening.accept()
                with spoken:
                    request = spoken.recv(4096)
                    # A HEAD that names no digest leads to the GET, whose body then comes slowly.
                    if request.startswith(b"HEAD") and answer[0].startswith(b"HTTP/1.1 200"):
                        spoken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                        continue
                    for part in answer:
                        spoken.sendall(part)
                        if over.wait(0.05):
                            break

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        begun = time.monotonic()
        with pytest.raises(ToolError, match="no response within"):
            registry.resolve_digest(f"127.0.0.1:{listening.getsockname()[1]}/team/trainer", "v1")
        took = time.monotonic() - begun
        over.set()
        thread.join()

    assert took < 20  # the shortest answer takes 25 seconds to come


def test_who_is_led_to_gets_no_password_for_a_challenge_of_his_own() -> None:
    session = registry._Session(ImageRepository("a.example", "team/trainer"))  # noqa: SLF001 - two hosts

    def elsewhere(*_: object) -> NoReturn:
        headers = Message()
        headers["WWW-Authenticate"] = 'Bearer realm="https://b.example/token"'
        raise urllib.error.HTTPError("https://b.example/x", 401, "", headers, None)

    session._send = elsewhere  # type: ignore[method-assign,assignment]  # noqa: SLF001 - as above

    with pytest.raises(ToolError, match="denies access to team/trainer"):
        session.request("GET", "https://a.example/v2/team/trainer/manifests/v1")
    assert session._authorization is None  # noqa: SLF001 - as above


@pytest.mark.parametrize(
    ("registry_host", "realm", "may"),
    [
        ("a.example", "https://b.example/token", True),
        ("a.example", "http://127.0.0.1/token", False),
        ("a.example", "http://a.example/token", False),
        ("a.example", "https://[", False),
        ("localhost:5000", "http://localhost:5001/token", True),
        ("localhost:5000", "https://b.example/token", True),
    ],
)
def test_a_login_goes_where_nobody_listens(registry_host: str, realm: str, *, may: bool) -> None:
    session = registry._Session(ImageRepository(registry_host, "x"))  # noqa: SLF001 - foreign hosts

    assert session._may_send_credentials(realm) is may  # noqa: SLF001 - as above


def test_unknown_images_and_tags_are_refused_before_anyone_is_asked(sandbox: Sandbox) -> None:
    settings(sandbox, "registry.example.org")

    with pytest.raises(UsageError, match="has no image 'other'"):
        pin_image(sandbox.workspace, "other")
    with pytest.raises(UsageError, match="is not a valid tag"):
        pin_image(sandbox.workspace, "trainer", tag="../v1")
    with pytest.raises(SpecError):
        pin_image(sandbox.workspace, "local", repository="registry.example.org/team/trainer", tag="v1")


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("python", "https://registry-1.docker.io/v2/library/python/manifests/v1"),
        ("docker.io/team/x", "https://registry-1.docker.io/v2/team/x/manifests/v1"),
        ("registry.example.org/x", "https://registry.example.org/v2/x/manifests/v1"),
        ("localhost:5000/x/y", "http://localhost:5000/v2/x/y/manifests/v1"),
        ("localhost.example.org/x", "https://localhost.example.org/v2/x/manifests/v1"),
    ],
)
def test_a_repository_is_looked_for_where_container_tools_do(reference: str, url: str) -> None:
    assert ImageRepository.of(reference).url("v1") == url
