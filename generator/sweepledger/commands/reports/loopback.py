"""A web server for the browser of the user at this machine: it listens on loopback only, and only answers GET."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from sweepledger.errors import GeneratorError, UsageError

HOST = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class ServedFile:
    """The content of a path, and its media type."""

    content: bytes
    media_type: str = "text/html; charset=utf-8"


class LoopbackServer:
    """Serves what a function returns for each path; None is a page that does not exist."""

    def __init__(self, answer: Callable[[str], ServedFile | None], port: int) -> None:
        """Listen on a port; 0 chooses a free one. Raises UsageError if another program listens there."""
        self._answer = answer
        self._one_at_a_time = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.respond(self)

            def log_message(self, *_arguments: object) -> None:
                """Log nothing."""

        try:
            self._server = ThreadingHTTPServer((HOST, port), Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} of {HOST}: {error.strerror}", hint="another --port, or 0 for a free one"
            ) from error
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address of its first page."""
        return f"http://{HOST}:{self.port}/"

    def serve(self) -> None:
        """Answer requests until `stop` is called or the process is interrupted."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End `serve`, from another thread."""
        self._server.shutdown()

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        # A page of the internet could reach this server by a name that it lets point to 127.0.0.1.
        if request.headers.get("Host") not in {f"{HOST}:{self.port}", f"localhost:{self.port}"}:
            return self._send(
                request, HTTPStatus.MISDIRECTED_REQUEST, _text("Open this server by its address.")
            )
        try:
            with self._one_at_a_time:
                found = self._answer(unquote(urlsplit(request.path).path))
        except GeneratorError as error:
            lines = f"{error}\n{error.hint or ''}\n"
            return self._send(request, HTTPStatus.INTERNAL_SERVER_ERROR, _text(lines))
        if found is None:
            return self._send(request, HTTPStatus.NOT_FOUND, _text("There is no such page.\n"))
        return self._send(request, HTTPStatus.OK, found)

    def _send(self, request: BaseHTTPRequestHandler, status: HTTPStatus, served: ServedFile) -> None:
        request.send_response(status)
        headers = {"Content-Type": served.media_type, "Content-Length": str(len(served.content)), **HEADERS}
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(served.content)


def _text(message: str) -> ServedFile:
    return ServedFile(message.encode("utf-8", "replace"), "text/plain; charset=utf-8")
