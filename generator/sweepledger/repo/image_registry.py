"""Container registries: the digest of an image's tag, by the OCI distribution API and the standard library.

The digest that the registry reports is compared with the manifest's bytes if the registry sends them. A redirect is
followed only with the same scheme, and without encryption only to the same host.
"""

import base64
import hashlib
import http.client
import ipaddress
import json
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from sweepledger.errors import ToolError, UsageError

EXCERPT_LENGTH = 200
"""Characters of untrusted text in a message."""


class SafeRedirectHandler(urllib.request.HTTPRedirectHandler):
    """Follows redirects of GET requests, whose bytes can be verified; never those of HEAD requests."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        """Follow a redirect, or close the response, which the standard library leaves open."""
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (OSError, ValueError):
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the next request; None for HEAD. Raises URLError for a refused target."""
        if req.get_method() == "HEAD":
            return None  # becomes an error with the status code; a GET request follows
        try:  # the scheme stays, and, without encryption, the host
            scheme = urllib.parse.urlsplit(newurl).scheme
            is_same = scheme == urllib.parse.urlsplit(req.full_url).scheme
            is_allowed = is_same and (scheme == "https" or host_of(req.full_url) == host_of(newurl))
        except ValueError:
            is_allowed = False
        if not is_allowed:
            raise urllib.error.URLError(
                f"it redirects to {newurl[:EXCERPT_LENGTH]}, which has no encryption or another scheme"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def host_of(url: str | None) -> str:
    """Return host and port of a URL."""
    return urllib.parse.urlsplit(url or "").netloc.rpartition("@")[2].lower()


def is_loopback(host: str) -> bool:
    """Return whether a host, with or without port, is this machine."""
    name = urllib.parse.urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Indexes first, because one digest then serves nodes of every architecture."""

DOCKER_HUB = "registry-1.docker.io"
HUB_NAMES = frozenset({"docker.io", "index.docker.io", DOCKER_HUB})
HUB_LOGIN = "https://index.docker.io/v1/"
"""The name of Docker Hub in the file of `docker login`."""

TIMEOUT_SECONDS = 30.0
"""For all requests together, name resolution and login included."""
LARGEST_MANIFEST = 4 << 20
"""Bytes; the specification advises registries to accept no larger manifest."""
LARGEST_TOKEN = 1 << 20

DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
CHALLENGE = re.compile(r'([a-z_]+)="([^"]*)"', re.ASCII | re.IGNORECASE)

UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class ImageRepository:
    """The registry and name of an image."""

    registry: str
    """Host and port."""
    name: str

    @classmethod
    def of(cls, reference: str) -> "ImageRepository":
        """Return the repository of a reference, parsed as container tools do: without a host, it is on Docker Hub."""
        host, slash, rest = reference.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            return cls(DOCKER_HUB, reference if slash else f"library/{reference}")
        if host in HUB_NAMES:
            return cls(DOCKER_HUB, rest if "/" in rest else f"library/{rest}")
        return cls(host, rest)

    def url(self, tag: str) -> str:
        """Return the URL of a manifest: with encryption, except on this machine."""
        scheme = "http" if is_loopback(self.registry) else "https"
        return f"{scheme}://{self.registry}/v2/{urllib.parse.quote(self.name)}/manifests/{tag}"


def resolve_digest(reference: str, tag: str) -> str:
    """Return the current digest of an image's tag.

    Raises UsageError if the tag is invalid or does not exist, and ToolError if the registry gives no digest.
    """
    if not TAG.fullmatch(tag):
        raise UsageError(
            f"{tag!r} is not a valid tag", hint="use letters, digits, points, dashes and underscores"
        )
    repository = ImageRepository.of(reference)
    return _with_timeout(TIMEOUT_SECONDS, repository, lambda: _request_digest(repository, reference, tag))


def _with_timeout(seconds: float, repository: ImageRepository, work: Callable[[], str]) -> str:
    """Return the result of `work`, or fail after a time: socket timeouts do not limit a response sent byte by byte."""
    digest = Future[str]()

    def do() -> None:
        try:
            digest.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            digest.set_exception(error)

    # A daemon thread, so that a hanging request does not keep the program from exiting.
    threading.Thread(target=do, daemon=True).start()
    try:
        return digest.result(seconds)
    except TimeoutError as error:
        raise _unreachable(repository, error) from error


def _request_digest(repository: ImageRepository, reference: str, tag: str) -> str:
    url = repository.url(tag)
    session = _Session(repository)
    reported = session.request("HEAD", url).headers.get("Docker-Content-Digest", "")
    if DIGEST.fullmatch(reported):
        return reported
    response = session.request("GET", url)
    digest = f"sha256:{hashlib.sha256(response.body).hexdigest()}"
    reported = response.headers.get("Docker-Content-Digest", digest)
    if reported != digest:
        raise ToolError(
            f"{repository.registry} reports {reported[:EXCERPT_LENGTH]} for {reference}:{tag}, "
            f"but its manifest has the digest {digest}",
            hint="check the proxies between this machine and the registry: one may change the response",
        )
    return digest


@dataclass(frozen=True, slots=True)
class _Response:
    headers: Message
    body: bytes


class _Session:
    """Requests to one registry, with authentication if the registry demands it."""

    def __init__(self, repository: ImageRepository) -> None:
        self._repository = repository
        self._authorization: str | None = None
        handlers: list[urllib.request.BaseHandler] = [SafeRedirectHandler()]
        if is_loopback(repository.registry):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def request(self, method: str, url: str) -> _Response:
        """Return the response for a manifest, requested again with credentials if the first request is refused.

        The response to a HEAD request that is redirected is empty.
        """
        headers = {"Accept": ", ".join(MANIFESTS)}
        while True:
            try:
                return self._send(method, url, headers, LARGEST_MANIFEST)
            except urllib.error.HTTPError as error:
                if method == "HEAD" and error.code in REDIRECTS:
                    return _Response(Message(), b"")
                # A redirect's target gets no password by sending a challenge of its own.
                is_other_host = host_of(error.url) != host_of(url)
                if error.code != UNAUTHORIZED or self._authorization is not None or is_other_host:
                    raise self._refusal(error, url) from error
                challenge = error.headers.get("WWW-Authenticate", "")
            self._authorization = self._authenticate(challenge)

    def _send(self, method: str, url: str, headers: Mapping[str, str], limit: int) -> _Response:
        request = urllib.request.Request(url, headers=dict(headers), method=method)  # noqa: S310 - see SafeRedirectHandler
        if self._authorization is not None:
            # Not sent to the target of a redirect, which is often another company's storage.
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                body = response.read(limit + 1)
                if len(body) > limit:
                    raise ToolError(
                        f"{self._repository.registry} sends more than {limit} bytes for a manifest"
                    )
                return _Response(response.headers, body)
        except urllib.error.HTTPError as error:
            error.close()
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unreachable(self._repository, error) from error

    def _authenticate(self, challenge: str) -> str:
        """Return the Authorization header for a challenge: user and password, or a token obtained with them."""
        basic = _credentials(self._repository.registry)
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic" and basic is not None:
            return basic
        parameters = {name.lower(): value for name, value in CHALLENGE.findall(rest)}
        realm = parameters.get("realm", "")
        if kind.lower() != "bearer" or not self._may_send_credentials(realm):
            raise self._denied()
        scope = parameters.get("scope") or f"repository:{self._repository.name}:pull"
        service = {"service": parameters["service"]} if "service" in parameters else {}
        query = urllib.parse.urlencode({**service, "scope": scope})
        self._authorization = basic
        try:
            response = self._send("GET", f"{realm}{'&' if '?' in realm else '?'}{query}", {}, LARGEST_TOKEN)
            data = json.loads(response.body)
            token = data.get("token") or data.get("access_token")
        except urllib.error.HTTPError as error:
            raise self._denied() from error
        except (ValueError, AttributeError, RecursionError) as error:
            raise ToolError(
                f"{realm[:EXCERPT_LENGTH]} gives no token: its response is not a JSON object"
            ) from error
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise ToolError(f"{realm[:EXCERPT_LENGTH]} gives no token")
        return f"Bearer {token}"

    def _may_send_credentials(self, realm: str) -> bool:
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
            return UsageError(f"{registry} has no {name}:{tag}", hint="push the image, or correct its name")
        if error.code in {UNAUTHORIZED, FORBIDDEN}:
            return self._denied()
        return ToolError(f"{registry} responds with status {error.code} for {name}", hint="try again later")

    def _denied(self) -> ToolError:
        registry = self._repository.registry
        return ToolError(
            f"{registry} denies access to {self._repository.name}",
            hint=f"log in with `docker login {registry}`; passwords in a credential helper are not read",
        )


def _unreachable(repository: ImageRepository, error: Exception) -> ToolError:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        reason = f"no response within {TIMEOUT_SECONDS:.0f} s"
    return ToolError(
        f"{repository.registry} cannot be reached: {reason}",
        hint="check the host name and the network; without the registry no digest is known",
    )


def _credentials(registry: str) -> str | None:
    """Return the Authorization header from the file of `docker login`; None if it has no entry."""
    folder = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
    try:
        known = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))["auths"]
        names = (registry, f"https://{registry}", *((HUB_LOGIN,) if registry == DOCKER_HUB else ()))
        credentials = next(known[name]["auth"] for name in names if known.get(name, {}).get("auth"))
        base64.b64decode(credentials, validate=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    return f"Basic {credentials}"
