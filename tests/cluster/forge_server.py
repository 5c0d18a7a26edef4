"""The git server of the tests as a process: passwords, faults and webhooks in front of `git http-backend`.

    python -m tests.cluster.forge_server --folder FOLDER --address ADDRESS --port PORT

What it is told it reads from files of the folder, anew at each request; tests write them by `forge.py`.
"""

import argparse
import io
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import uuid
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import IO

from tests.cluster import forge_git
from tests.cluster.forge_faults import Cutting, Failing, Hanging, Ledger, Racing, Refusing, Trouble
from tests.cluster.forge_git import Update
from tests.cluster.forge_requests import USERS, Log, ParsedRequest, understood
from tests.cluster.forge_webhooks import Courier, Push

UPDATES = "updates"
REFUSING = "refusing"
SILENCE_SECONDS = 120.0
"""Seconds that a client may take for its next word."""


class Server(ThreadingHTTPServer):
    """What the requests share."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, folder: Path, address: str, port: int) -> None:
        self.folder = folder
        self.ledger = Ledger(folder)
        self.courier = Courier(folder, home=f"http://{address}:{port}")
        self.note = Log(folder).note
        super().__init__((address, port), Handler)

    def server_bind(self) -> None:
        """Take the port without asking who the address is called: there may be nobody who knows."""
        TCPServer.server_bind(self)

    def bare(self, repository: str) -> Path:
        return self.folder / forge_git.REPOSITORIES / f"{repository}.git"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in a line that a client is gone; everything else is a fault of ours."""
        error = sys.exception()
        if isinstance(error, OSError):
            sys.stderr.write(f"{client_address} is gone: {error}\n")
        else:
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """One request: understood, troubled where a fault says so, else handed on to git."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECONDS
    server: Server

    def do_GET(self) -> None:
        """Answer a request; a connection carries one."""
        self.close_connection = True
        with tempfile.TemporaryFile() as body:
            self._receive(body)
            message = self.headers.get("Authorization", "")
            users = self.server.folder / USERS
            planned = understood(self.command, self.path, message, body=body, users=users)
            trouble = self.server.ledger.take(planned.step, by=planned.user, may=not planned.denied)
            match trouble:
                case Hanging(seconds=seconds):
                    self.server.note(planned, 0, trouble, [])
                    self._wait(trouble, seconds)
                    self._reset()
                case Failing(status=status):
                    self._say(planned, status, trouble)
                case _ if planned.denied:
                    self._say(planned, planned.denied)
                case _ if not planned.repository:
                    self._say(planned, HTTPStatus.NOT_FOUND)
                case _:
                    self._serve(planned, body, trouble)

    do_POST = do_GET  # noqa: N815 - the library's name

    def _receive(self, body: IO[bytes]) -> None:
        """Read all that the client sends: one that is still sending does not listen."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().partition(b";")[0].strip() or b"-1", 16):
                self._read(size, body)
                self.rfile.readline()
            self.rfile.readline()
        else:
            self._read(int(self.headers.get("Content-Length", 0)), body)

    def _read(self, size: int, body: IO[bytes]) -> None:
        if size < 0 or body.write(self.rfile.read(size)) < size:
            raise ConnectionResetError("it stopped in the middle of what it sent")

    def _serve(self, planned: ParsedRequest, body: IO[bytes], trouble: Trouble | None) -> None:
        """Let git answer, in the environment that a trouble asks for."""
        folder = self.server.folder
        environment = self._environment(planned)
        happened = True
        if isinstance(trouble, Racing):
            happened = self._overtake(planned)
        elif isinstance(trouble, Refusing):
            environment |= forge_git.refusal(folder / REFUSING, trouble.says)
        with tempfile.TemporaryFile() as output:
            updates = forge_git.backend(body, output, environment, folder / UPDATES / str(uuid.uuid4()))
            if isinstance(trouble, Cutting):
                happened = bool(updates)
            if trouble and not happened:  # a new branch has no rival, and what is refused no success to hide
                self.server.ledger.give_back(trouble)
                trouble = None
            self._announce(planned, updates, planned.user)
            self._hand_on(planned, output, trouble, updates)

    def _overtake(self, planned: ParsedRequest) -> bool:
        bare = self.server.bare(planned.repository)
        refs = planned.refs or (forge_git.default_branch(bare),)
        moved = [forge_git.overtake(bare, ref) for ref in refs if forge_git.is_branch(bare, ref)]
        self._announce(planned, moved, forge_git.RIVAL)
        return bool(moved)

    def _announce(self, planned: ParsedRequest, updates: list[Update], pusher: str) -> None:
        bare = self.server.bare(planned.repository)
        for update in updates:
            self.server.courier.announce(bare, Push(planned.repository, update, pusher))

    def _environment(self, planned: ParsedRequest) -> dict[str, str]:
        return {
            "GIT_PROJECT_ROOT": str(self.server.folder / forge_git.REPOSITORIES),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": f"/{planned.repository}.git/{planned.rest}",
            "QUERY_STRING": planned.query,
            "REQUEST_METHOD": planned.method,
            "REMOTE_USER": planned.user,
            "REMOTE_ADDR": str(self.client_address[0]),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }

    def _hand_on(
        self, planned: ParsedRequest, output: IO[bytes], trouble: Trouble | None, updates: list[Update]
    ) -> None:
        """Answer with git's headers and words, or with half of the words."""
        length = output.seek(0, io.SEEK_END)
        output.seek(0)
        headers: dict[str, str] = {}
        while line := output.readline().decode().strip():
            key, _, value = line.partition(":")
            headers[key] = value.strip()
        status = int(headers.pop("Status", "200" if headers else "500").partition(" ")[0])
        length -= output.tell()
        self.server.note(planned, status, trouble, updates)
        self._begin(status, {**headers, "Content-Length": str(length)})
        if isinstance(trouble, Cutting):
            self.wfile.write(output.read(length // 2))
        else:
            shutil.copyfileobj(output, self.wfile)

    def _say(self, planned: ParsedRequest, status: int, trouble: Trouble | None = None) -> None:
        """Answer without git."""
        self.server.note(planned, status, trouble, [])
        words = f"{status}\n".encode()
        headers = {"Content-Type": "text/plain", "Content-Length": str(len(words))}
        if status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Basic realm="forge"'
        self._begin(status, headers)
        self.wfile.write(words)

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Connection": "close"}.items():
            self.send_header(key, value)
        self.end_headers()

    def _wait(self, trouble: Trouble, seconds: float) -> None:
        """Say nothing for a while, or until the trouble is lifted."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.server.ledger.stands(trouble):
            time.sleep(0.1)

    def _reset(self) -> None:
        """Close the connection as a machine does that has lost it."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.forge_server")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    requested = parser.parse_args(arguments)
    (requested.folder / UPDATES).mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server(requested.folder.absolute(), requested.address, requested.port) as server:
        server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main(sys.argv[1:])
