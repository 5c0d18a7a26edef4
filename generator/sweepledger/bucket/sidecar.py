"""The sidecar of a pod: `python -m sweepledger.bucket.sidecar`; docs/launcher.md has the contract."""

import os
import signal
import sys
from contextlib import suppress

from sweepledger.bucket.trial_sidecar import Sidecar, SidecarOptions, Stop
from sweepledger.errors import StorageError


def _say(message: str) -> None:
    line = "".join(letter if letter.isprintable() else " " for letter in message)
    with suppress(OSError):
        os.write(2, f"sidecar: {line[:2000]}\n".encode())


def main() -> int:
    """Run the sidecar of this pod until SIGTERM."""
    try:
        options = SidecarOptions.from_environment(os.environ)
        stop = Stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.request(options.grace))
        if options.rows is None:
            Sidecar(options, stop, _say).run()
        else:
            from sweepledger.bucket.pack_sidecar import PackSidecar  # noqa: PLC0415 - few pods have several trials

            PackSidecar(options, stop, _say).run()
    except (ValueError, StorageError) as error:
        _say(str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
