"""What tries connections tells those that are answered from those that are refused."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import connections, listener, outside
from tests.cluster.children import Children, until
from tests.cluster.processes import free_ports


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[tuple[int, int, int]]:
    """Where somebody accepts connections, where somebody answers questions of DNS, and where nobody listens."""
    greets, answers, nobody = free_ports(3)
    children = Children(tmp_path)
    places = (f"tcp:127.0.0.1:{greets}", f"dns:127.0.0.1:{answers}")
    children.start("listener", [sys.executable, str(outside.LISTENER), *places])
    tcp = [f"tcp:127.0.0.1:{port}" for port in (greets, answers)]

    def listens() -> bool:
        return {connections.attempt(place) for place in tcp} == {connections.OPEN}

    until("it listens", listens, seconds=120, pause=0.1)
    yield greets, answers, nobody
    children.end_all()


def test_connections_and_questions_are_answered_or_refused(ports: tuple[int, int, int]) -> None:
    greets, answers, nobody = ports

    assert connections.attempt(f"tcp:127.0.0.1:{greets}") == connections.OPEN
    assert connections.attempt(f"udp:127.0.0.1:{answers}") == connections.OPEN
    assert "refused" in connections.attempt(f"tcp:127.0.0.1:{nobody}")
    assert "refused" in connections.attempt(f"udp:127.0.0.1:{nobody}")


def test_a_server_of_dns_knows_one_name() -> None:
    question = connections.QUESTION
    other = question.replace(b"\x05store", b"\x05stare")

    answer, refusal = listener.answer(question), listener.answer(other)

    assert answer.endswith(socket.inet_aton(listener.ADDRESS))
    assert (answer[3] & 15, answer[7]) == (0, 1)
    assert (refusal[3] & 15, refusal[7]) == (listener.NO_SUCH_NAME, 0)
    assert refusal[:2] == question[:2]
