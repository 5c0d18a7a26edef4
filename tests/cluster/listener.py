"""A program that listens, in pods and outside of the cluster: it needs nothing but Python.

    python3 listener.py [dns|tcp]:ADDRESS:PORT...

`tcp` accepts connections. `dns` answers questions for one name, by UDP and TCP.
"""

import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence

NAME, ADDRESS = "store.example.org", "203.0.113.7"
"""The only name that servers of DNS know, and its address."""
TYPE_A, NO_SUCH_NAME = 1, 3
"""A type of record, and the code of an answer, both as DNS numbers them."""


def answer(question: bytes) -> bytes:
    labels, end = [], 12
    while length := question[end]:
        labels.append(question[end + 1 : end + 1 + length].decode(errors="replace"))
        end += length + 1
    (kind,) = struct.unpack_from("!H", question, end + 1)
    is_known = ".".join(labels).lower() == NAME
    records = struct.pack("!HHHLH", 0xC00C, TYPE_A, 1, 60, 4) + socket.inet_aton(ADDRESS)
    has_record = is_known and kind == TYPE_A
    flags = 0x8580 | (0 if is_known else NO_SUCH_NAME)
    head = question[:2] + struct.pack("!HHHHH", flags, 1, int(has_record), 0, 0)
    return head + question[12 : end + 5] + (records if has_record else b"")


def _serve_udp(place: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(place)
        while True:
            question, client = server.recvfrom(4096)
            server.sendto(answer(question), client)


def _serve_tcp(place: tuple[str, int], talk: Callable[[socket.socket], None]) -> None:
    with socket.create_server(place) as server:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_talk, args=(connection, talk), daemon=True).start()


def _talk(connection: socket.socket, talk: Callable[[socket.socket], None]) -> None:
    with connection:
        try:
            talk(connection)
        except (OSError, IndexError, struct.error) as error:  # a client that says nothing, or nonsense
            print(error, flush=True)


def _greet(connection: socket.socket) -> None:
    connection.sendall(b"hello\n")


def _answer_stream(connection: socket.socket) -> None:
    with connection.makefile("rb") as stream:
        (length,) = struct.unpack("!H", stream.read(2))
        text = answer(stream.read(length))
    connection.sendall(struct.pack("!H", len(text)) + text)


def main(places: Sequence[str]) -> None:
    threads = []
    for place in places:
        kind, address, port = place.split(":")
        target = (address, int(port))
        if kind == "dns":
            threads.append(threading.Thread(target=_serve_udp, args=(target,)))
        talk = _answer_stream if kind == "dns" else _greet
        threads.append(threading.Thread(target=_serve_tcp, args=(target, talk)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
