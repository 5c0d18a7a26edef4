"""Asking a container registry what a tag stands for: the OCI distribution API, by the standard library alone.

Nothing is made up: a digest is what the registry says and, where it sends the manifest, what the bytes are.
"""

import base64
import hashlib
import http.client
import json
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from generator.engine.redirects import QUOTED, Careful, host, is_loopback
from generator.errors import ToolError, UsageError

MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Indexes first: one digest then serves nodes of every architecture."""

DOCKER_HUB = "registry-1.docker.io"
HUB_NAMES = frozenset({"docker.io", "index.docker.io", DOCKER_HUB})
HUB_LOGIN = "https://index.docker.io/v1/"
"""What `docker login` calls Docker Hub in its file."""

TIMEOUT_SECONDS = 30.0
"""For all requests together, names looked up and logins included."""
LARGEST_MANIFEST = 4 << 20
"""Bytes; the specification asks registries to take no larger one."""
LARGEST_TOKEN = 1 << 20

DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
CHALLENGE = re.compile(r'([a-z_]+)="([^"]*)"', re.ASCII | re.IGNORECASE)

UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Repository:
    """Where an image lies."""

    registry: str
    """Host and port."""
    name: str

    @classmethod
    def of(cls, reference: str) -> "Repository":
        """Take a repository apart as container tools do: without a host it lies on Docker Hub."""
        host, slash, rest = reference.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            return cls(DOCKER_HUB, reference if slash else f"library/{reference}")
        if host in HUB_NAMES:
            return cls(DOCKER_HUB, rest if "/" in rest else f"library/{rest}")
        return cls(host, rest)

    def url(self, tag: str) -> str:
        """Give the address of a manifest. Only this machine itself is asked without encryption."""
        scheme = "http" if is_loopback(self.registry) else "https"
        return f"{scheme}://{self.registry}/v2/{urllib.parse.quote(self.name)}/manifests/{tag}"


def resolve(reference: str, tag: str) -> str:
    """Give the digest of what a tag of a repository stands for now.

    Raises UsageError for what is no tag or is not there, ToolError where the registry cannot be asked.
    """
    if not TAG.fullmatch(tag):
        raise UsageError(f"{tag!r} is no tag", hint="letters, digits, points, dashes and underscores")
    repository = Repository.of(reference)
    return _within(TIMEOUT_SECONDS, repository, lambda: _resolved(repository, reference, tag))


def _within(seconds: float, repository: Repository, work: Callable[[], str]) -> str:
    """Do the work, or give it up: a socket's timeout bounds no answer that comes byte by byte."""
    found: list[str] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where somebody waits for it
            failed.append(error)

    # A daemon: what hangs in it does not keep the program from ending.
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise _unreachable(repository, TimeoutError())
    return found[0]


def _resolved(repository: Repository, reference: str, tag: str) -> str:
    url = repository.url(tag)
    session = _Session(repository)
    said = session.ask("HEAD", url).headers.get("Docker-Content-Digest", "")
    if DIGEST.fullmatch(said):
        return said
    found = session.ask("GET", url)
    real = f"sha256:{hashlib.sha256(found.body).hexdigest()}"
    said = found.headers.get("Docker-Content-Digest", real)
    if said != real:
        raise ToolError(
            f"{repository.registry} says that {reference}:{tag} is {said[:QUOTED]}, "
            f"but what it sends is {real}",
            hint="something between here and the registry changes what it sends",
        )
    return real


@dataclass(frozen=True, slots=True)
class _Answer:
    headers: Message
    body: bytes


class _Session:
    """Asks one registry, and proves who asks where it wants to know."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._proof: str | None = None
        handlers: list[urllib.request.BaseHandler] = [Careful()]
        if is_loopback(repository.registry):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def ask(self, method: str, url: str) -> _Answer:
        """Ask for a manifest, a second time with a proof where the first is refused.

        The answer is empty where a HEAD would have been led elsewhere.
        """
        headers = {"Accept": ", ".join(MANIFESTS)}
        try:
            return self._send(method, url, headers, LARGEST_MANIFEST)
        except urllib.error.HTTPError as error:
            challenge = error.headers.get("WWW-Authenticate", "")
            # Whoever the registry leads to gets no password by a challenge of his own.
            is_elsewhere = host(error.url) != host(url)
            if error.code != UNAUTHORIZED or self._proof is not None or is_elsewhere:
                return self._answered(method, url, error)
        self._proof = self._prove(challenge)
        try:
            return self._send(method, url, headers, LARGEST_MANIFEST)
        except urllib.error.HTTPError as error:
            return self._answered(method, url, error)

    def _answered(self, method: str, url: str, error: urllib.error.HTTPError) -> _Answer:
        if method == "HEAD" and error.code in REDIRECTS:
            return _Answer(Message(), b"")
        raise self._refusal(error, url) from error

    def _send(self, method: str, url: str, headers: Mapping[str, str], most: int) -> _Answer:
        request = urllib.request.Request(url, headers=dict(headers), method=method)  # noqa: S310 - see Careful
        if self._proof is not None:
            # Not sent along to where the registry may lead: that is often somebody else's store.
            request.add_unredirected_header("Authorization", self._proof)
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                body = answer.read(most + 1)
                if len(body) > most:
                    raise ToolError(
                        f"{self._repository.registry} sends more than {most} bytes for a manifest"
                    )
                return _Answer(answer.headers, body)
        except urllib.error.HTTPError as error:
            error.close()
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unreachable(self._repository, error) from error

    def _prove(self, challenge: str) -> str:
        """Answer a challenge: with user and password, or with a token that another server gives for them."""
        basic = _credentials(self._repository.registry)
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic" and basic is not None:
            return basic
        asked = {name.lower(): value for name, value in CHALLENGE.findall(rest)}
        realm = asked.get("realm", "")
        if kind.lower() != "bearer" or not self._may_prove(realm):
            raise self._unknown()
        scope = asked.get("scope") or f"repository:{self._repository.name}:pull"
        wanted = {"service": asked["service"]} if "service" in asked else {}
        query = urllib.parse.urlencode({**wanted, "scope": scope})
        self._proof = basic
        try:
            found = self._send("GET", f"{realm}{'&' if '?' in realm else '?'}{query}", {}, LARGEST_TOKEN)
            told = json.loads(found.body)
            token = told.get("token") or told.get("access_token")
        except urllib.error.HTTPError as error:
            raise self._unknown() from error
        except (ValueError, AttributeError, RecursionError) as error:
            raise ToolError(f"{realm[:QUOTED]} gives no token: its answer is no JSON object") from error
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise ToolError(f"{realm[:QUOTED]} gives no token")
        return f"Bearer {token}"

    def _may_prove(self, realm: str) -> bool:
        try:
            parts = urllib.parse.urlsplit(realm)
        except ValueError:
            return False
        is_here = is_loopback(self._repository.registry) and is_loopback(parts.netloc)
        return parts.scheme == "https" or (parts.scheme == "http" and is_here)

    def _refusal(self, error: urllib.error.HTTPError, url: str) -> Exception:
        registry, name = self._repository.registry, self._repository.name
        if error.code == NOT_FOUND:
            tag = url.rpartition("/")[2]
            return UsageError(f"{registry} has no {name}:{tag}", hint="is it pushed, and spelled so?")
        if error.code in {UNAUTHORIZED, FORBIDDEN}:
            return self._unknown()
        return ToolError(f"{registry} answers {error.code} for {name}", hint="try again later")

    def _unknown(self) -> ToolError:
        registry = self._repository.registry
        return ToolError(
            f"{registry} does not show {self._repository.name} to whoever asks",
            hint=f"log in with `docker login {registry}`; passwords in a credential helper are not read",
        )


def _unreachable(repository: Repository, error: Exception) -> ToolError:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        reason = f"no answer within {TIMEOUT_SECONDS:.0f} s"
    return ToolError(
        f"{repository.registry} cannot be asked: {reason}",
        hint="is the host right, and reachable from here? Digests are never made up",
    )


def _credentials(registry: str) -> str | None:
    """Find user and password where `docker login` keeps them; None where there are none."""
    folder = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
    try:
        known = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))["auths"]
        names = (registry, f"https://{registry}", *((HUB_LOGIN,) if registry == DOCKER_HUB else ()))
        held = next(known[name]["auth"] for name in names if known.get(name, {}).get("auth"))
        base64.b64decode(held, validate=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    return f"Basic {held}"
