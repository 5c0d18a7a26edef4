"""The server for the browser of this machine: what it answers, and whom."""

import http.client
import threading
from collections.abc import Iterator

import pytest

from sweepledger.errors import StorageError, UsageError
from sweepledger.verbs.site import HOST, LoopbackServer


def answer(path: str) -> bytes | None:
    if path == "/broken":
        raise StorageError("the disk is full", hint="free some space")
    return b"<p>here</p>" if path == "/a page" else None


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    made = LoopbackServer(answer, 0)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def request(
    server: LoopbackServer, path: str, method: str = "GET", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=60)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def test_a_page_is_served_and_may_not_be_framed_or_kept(server: LoopbackServer) -> None:
    got = request(server, "/a%20page?query")

    assert (got.status, got.read()) == (200, b"<p>here</p>")
    assert got.headers["Content-Type"] == "text/html; charset=utf-8"
    assert got.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert got.headers["Cache-Control"] == "no-store"
    assert request(server, "/a%20page", Host=f"localhost:{server.server_port}").status == 200


def test_whoever_else_asks_or_asks_for_something_else_is_refused(server: LoopbackServer) -> None:
    assert request(server, "/other").status == 404
    assert request(server, "/a%20page", Host="attacker.example").status == 421, "a name that points here"
    assert request(server, "/a%20page", "POST").status == 501
    failed = request(server, "/broken")
    assert (failed.status, failed.read()) == (500, b"the disk is full\nfree some space\n")
    with pytest.raises(
        UsageError, match=rf"port {server.server_port} of 127\.0\.0\.1: Address already in use"
    ):
        LoopbackServer(answer, server.server_port)
