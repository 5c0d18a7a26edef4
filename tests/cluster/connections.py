"""A program that tries connections from inside a pod: it needs nothing but Python.

    python3 connections.py KIND:ADDRESS:PORT...      prints each with `open`, or why it is not

`tcp` connects. `udp` asks a server of DNS a question. `name` finds the address by the pod's own servers of DNS first.
"""

import json
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

OPEN = "open"
SECONDS = 150.0
"""A firewall that refuses does so at once: this ends only what hangs."""
AGAIN = 5.0
"""Seconds after which a question that may be lost is repeated."""
NAME = b"\x05store\x07example\x03org\x00"
QUESTION = b"\x53\x77\x01\x00\x00\x01" + bytes(6) + NAME + b"\x00\x01\x00\x01"


def tcp(address: str, port: int) -> None:
    socket.create_connection((address, port), timeout=SECONDS).close()


def name(host: str, port: int) -> None:
    (*_, place), *_ = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    tcp(str(place[0]), port)


def udp(address: str, port: int) -> None:
    """Ask a server of DNS until it answers."""
    deadline = time.monotonic() + SECONDS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((address, port))
        client.settimeout(AGAIN)
        while True:
            client.send(QUESTION)
            try:
                client.recv(4096)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise
            else:
                return


KINDS: dict[str, Callable[[str, int], None]] = {"name": name, "tcp": tcp, "udp": udp}


def attempt(place: str) -> str:
    kind, address, port = place.split(":")
    try:
        KINDS[kind](address, int(port))
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return OPEN


def main(places: list[str]) -> None:
    """Try all at once."""
    with ThreadPoolExecutor(max(len(places), 1)) as pool:
        print(json.dumps(dict(zip(places, pool.map(attempt, places), strict=True))))


if __name__ == "__main__":
    main(sys.argv[1:])
