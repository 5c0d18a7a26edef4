"""One trial of a sweep whose results a loop tells. sweepledger.sweep() wrote this file, and writes it again."""

import hashlib
import json
import os
import socket
import sys
from pathlib import Path

SWEEP = "name"

if __name__ == "__main__":
    values = json.loads(Path(os.environ["SWEEP_TRIAL"]).read_bytes())
    state = Path(os.environ["SWEEP_RESULTS"]).resolve().parents[2]
    address = f"/tmp/sweepledger-{os.getuid()}/{SWEEP}-{hashlib.sha256(bytes(state)).hexdigest()[:16]}"  # noqa: S108
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
        except OSError:
            sys.exit(f"no loop asks for trials of {SWEEP}: run the program that defines the sweep")
        with connection.makefile("rw", encoding="utf-8") as loop:
            loop.write(json.dumps(values) + "\n")
            loop.flush()
            told = loop.readline()
    if not told:
        sys.exit("the loop told no result")
    Path(os.environ["SWEEP_RESULT"]).write_text(told, encoding="utf-8")
