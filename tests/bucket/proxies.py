"""A proxy on loopback before a server of object storage, which makes it a bucket that keeps all that it has."""

import http.client
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
SECONDS = 60


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Proxy"

    def _forward(self) -> None:
        proxy, body = self.server, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if proxy.refuses(self.command, self.path):
            self._answer(HTTPStatus.FORBIDDEN, {}, b"<Error><Code>AccessDenied</Code></Error>")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        connection = http.client.HTTPConnection("127.0.0.1", proxy.behind, timeout=SECONDS)
        try:
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            content = response.read()
        except OSError:  # the server is away: the client sees what it would see without a proxy
            self.close_connection = True
            return
        finally:
            connection.close()
        kept = {name: value for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP}
        if self.command == "HEAD" and (length := response.getheader("Content-Length")):
            kept["Content-Length"] = length
        self._answer(response.status, kept, content)

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = _forward  # noqa: N815 - as the base class calls them

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class calls it
        """Print nothing."""


class Proxy(ThreadingHTTPServer):
    """Forwards each request to the port of a server; subclasses say what it refuses."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, behind: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.behind = behind
        Thread(target=self.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.shutdown()
        self.server_close()

    def refuses(self, command: str, path: str) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether a request gets 403 and never reaches the server."""
        return False


class KeepingProxy(Proxy):
    """Refuses what would delete or replace an object of S3, as a retention policy does."""

    def __init__(self, port: int, behind: int) -> None:
        self.refused: list[str] = []
        """Commands that the server never saw."""
        self._written: set[str] = set()
        super().__init__(port, behind)

    def refuses(self, command: str, path: str) -> bool:
        """Refuse deletions, also those of many objects at once, and the second upload of an object."""
        parts = urlsplit(path)
        deletes = command == "DELETE" or "delete" in parse_qs(parts.query, keep_blank_values=True)
        if deletes or (command == "PUT" and parts.path in self._written):
            self.refused.append("DELETE" if deletes else f"PUT {parts.path}")
            return True
        if command == "PUT":
            self._written.add(parts.path)
        return False
