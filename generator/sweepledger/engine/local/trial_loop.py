"""The socket at which trials reach a loop of this user, who evaluates them in a program of his own.

`asked_trial.py` is the other side. A folder of each user is below `/tmp`, because trials have another TMPDIR.
"""

import fcntl
import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from sweepledger.errors import UsageError

PROGRAM = Path(__file__).with_name("asked_trial.py")
"""What a trial runs, after the name of the sweep is written into it."""
WAIT_SECONDS = 0.05
"""After which a loop looks whether its sweep still runs."""


@contextmanager
def listen(sweep: str, state: Path) -> Iterator[socket.socket]:
    """Open the socket of a sweep that runs in a state folder.

    Raises UsageError if another loop has it, or another user its folder.
    """
    folder = Path(f"/tmp/sweepledger-{os.getuid()}")  # noqa: S108 - checked below
    address = folder / f"{sweep}-{hashlib.sha256(bytes(state.resolve())).hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise UsageError(f"{folder} belongs to another user", hint="remove it")
    with address.with_suffix(".lock").open("ab") as lock, socket.socket(socket.AF_UNIX) as requests:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another loop asks for trials of {sweep}", hint="end it first") from error
        address.unlink(missing_ok=True)
        requests.bind(str(address))
        requests.listen()
        requests.settimeout(WAIT_SECONDS)
        try:
            yield requests
        finally:
            address.unlink(missing_ok=True)


@contextmanager
def accept(requests: socket.socket) -> Iterator[TextIO | None]:
    """Open the stream of the next trial: it sends its values, and waits for its metrics. None if there is none yet."""
    try:
        connection, _ = requests.accept()
    except TimeoutError:
        yield None
        return
    with connection, connection.makefile("rw", encoding="utf-8") as stream:
        connection.settimeout(None)
        yield stream
