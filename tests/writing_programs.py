"""A training program that writes files wherever programs do, and a plain loop that runs one trial at a time."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SCRIPT = "code/writes.py"
FILES = {"code/total.txt": "", "code/replaced.txt": "", "code/package/data.txt": "as committed\n"}
"""Committed files besides the program, which rewrites the first two."""
LINKS = {"code/link.txt": "linked.txt", "code/linked": "package"}
"""Committed links to files and folders of the code, through which the program writes."""
PROGRAM = '''"""Adds --x three times to a total that it keeps in files, and goes on from the files that it meets."""
import argparse, csv, mmap, os, pathlib, pickle, re, struct, tempfile, time, zlib
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=int)
parser.add_argument("--report", default="lines")
args = parser.parse_args()
HERE = pathlib.Path(__file__).resolve().parent
MARK = f"trial-{args.x}-"

def rewrite(path, total):
    path.write_text(f"{total} {MARK}")

def replace(path, total):
    rewrite(path.with_name(path.name + ".part"), total)
    os.replace(path.with_name(path.name + ".part"), path)

def append(path, total):
    with path.open("a") as file:
        file.write(f"{total} {MARK}\\n")

def pickled(path, total):
    path.write_bytes(pickle.dumps((total, MARK)))

def mapped(path, total):
    if not path.exists():
        path.write_bytes(b" " * 64)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        text = f"{total} {MARK}".encode()
        memory[:len(text)] = text

def read(path):
    content = path.read_bytes() if path.exists() else b""
    if content.startswith(b"\\x80"):
        return pickle.loads(content)[0]
    return int(content.splitlines()[-1].split()[0]) if content.strip() else 0

home = pathlib.Path.home()
cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", home / ".cache"))
PLACES = {
    "weights": (pathlib.Path("best.pt"), pickled),
    "resumed": (pathlib.Path("out/deep/state.txt"), rewrite),
    "hidden": (pathlib.Path(".state/last"), replace),
    "log": (pathlib.Path("log.txt"), append),
    "memory": (pathlib.Path("memory.bin"), mapped),
    "tracked": (HERE / "total.txt", append),
    "replaced": (HERE / "replaced.txt", replace),
    "beside": (HERE / "beside.txt", rewrite),
    "below": (HERE / "package/best.txt", rewrite),
    "link": (HERE / "link.txt", append),
    "linked": (pathlib.Path("code/linked/through.txt"), rewrite),
    "above": (pathlib.Path("../above.txt"), append),
    "home": (home / "best.txt", rewrite),
    "temporary": (pathlib.Path(tempfile.gettempdir(), "best.txt"), append),
    "cache": (cache / "point/best.txt", rewrite),
    "config": (pathlib.Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"), "best.txt"), replace),
    "data": (pathlib.Path(os.environ.get("XDG_DATA_HOME", home / ".local/share"), "best.txt"), append),
    "state": (pathlib.Path(os.environ.get("XDG_STATE_HOME", home / ".local/state"), "best.txt"), pickled),
}

def meet():
    """Wait for a neighbour, so that both have written before either reads; without one, not for ever."""
    time.sleep(float(os.environ.get("LINGER", 0)))
    if "MEETING" not in os.environ:
        return
    meeting = pathlib.Path(os.environ["MEETING"])
    (meeting / f"{os.getpid()}-{time.time_ns()}").touch()
    number = len(list(meeting.iterdir()))
    until = time.monotonic() + 20
    while len(list(meeting.iterdir())) < number + number % 2 and time.monotonic() < until:
        time.sleep(0.02)

def strangers():
    """Count the files of other trials that can be seen from here."""
    roots = {pathlib.Path("..").resolve(), home.resolve(), pathlib.Path(tempfile.gettempdir()).resolve(), cache}
    files = {path for root in roots for path in root.rglob("*") if path.is_file()}
    marks = [set(re.findall(rb"trial-\\d+-", path.read_bytes())) for path in files]
    return sum(bool(found - {MARK.encode()}) for found in marks)

def frame(content):
    """Write a record of an event file; no checksum of zlib's is the one that the format wants."""
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    def masked(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)

def scalar(tag, value, step):
    one = b"\\x0a" + bytes([len(tag)]) + tag.encode() + b"\\x15" + struct.pack("<f", value)
    summary = b"\\x0a" + bytes([len(one)]) + one
    head = b"\\x09" + struct.pack("<d", 1.7e9) + b"\\x10" + bytes([step]) + b"\\x2a"
    return frame(head + bytes([len(summary)]) + summary)

def report(step, values):
    if args.report == "lines":
        print(*(f"{name}={value}" for name, value in values.items()), sep="\\n", flush=True)
    elif args.report == "table":
        folder = pathlib.Path("logs/version_0")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "metrics.csv").open("a") as file:
            csv.writer(file).writerows([] if step else [["step", *values]])
            csv.writer(file).writerow([step, *values.values()])
    else:
        folder = pathlib.Path("runs", f"point__{int(time.time()) // 3600}")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "events.out.tfevents.1.host").open("ab") as file:
            file.write(b"".join(scalar(name, value, step) for name, value in values.items()))

early = strangers()
for step in range(3):
    for path, write in PLACES.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, read(path) + args.x)
    report(step, {"score": 0, **{name: 0 for name in PLACES}, "early": 0, "strangers": 0})
meet()
totals = {name: read(path) for name, (path, _) in PLACES.items()}
report(3, {"score": sum(totals.values()), **totals, "early": early, "strangers": strangers()})
'''
PLACES = re.findall(r'^    "(\w+)": \(', PROGRAM, re.MULTILINE)
REPORTS = {
    "lines": "metric: {name: score, goal: maximize, source: stdout}",
    "table": 'metric: {name: score, goal: maximize, format: csv, path: "logs/**/metrics.csv"}',
    "events": 'metric: {name: score, goal: maximize, format: tensorboard, path: "runs/**"}',
}
"""How a sweep reads what the program reports, by `--report`."""
SPEC = """name: {name}
{metric}
method: grid
parameters: {{x: {{values: [{xs}]}}}}
command: [{python}, {script}, "${{args}}", --report, {report}]
run:
  code: {{path: code}}
{run}"""


def write_program(root: Path) -> None:
    """Write the program and the other files of its code into a work tree."""
    for path, text in {SCRIPT: PROGRAM, **FILES, "code/linked.txt": ""}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path, target in LINKS.items():
        (root / path).symlink_to(target)


def spec(name: str, report: str, xs: str, run: str = "", *, python: str = sys.executable) -> str:
    """Return the spec of a sweep of the program; `run` is what it says there besides its code."""
    return SPEC.format(
        name=name, metric=REPORTS[report], xs=xs, python=python, script=SCRIPT, report=report, run=run
    )


def expected(x: int) -> dict[str, float]:
    """Return what a trial without neighbours reports."""
    totals: dict[str, float] = dict.fromkeys(PLACES, 3 * x)
    return {"score": sum(totals.values()), **totals, "early": 0, "strangers": 0}


def recorded(rows: Iterable[Mapping[str, str]]) -> dict[int, dict[str, float]]:
    """Return the metrics of each trial of a summary by its value; all of them must be ok."""
    rows = list(rows)
    assert {row["status"] for row in rows} == {"ok"}, rows
    return {
        int(row["params.x"]): {
            name.removeprefix("metrics."): float(cell)
            for name, cell in row.items()
            if name.startswith("metrics.")
        }
        for row in rows
    }


def plain_loop(root: Path, folder: Path, argv: Mapping[str, list[str]]) -> dict[str, str]:
    """Return what commands print, each in a fresh clone and with fresh folders; nothing runs beside it."""
    printed = {}
    for name, command in argv.items():
        place = folder / name
        fresh = {variable: str(place / variable) for variable in ("HOME", "TMPDIR")}
        for path in fresh.values():
            Path(path).mkdir(parents=True)
        subprocess.run(
            ["git", "clone", "-q", "--no-hardlinks", str(root), str(place / "at/clone")], check=True
        )
        search = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            command, cwd=place / "at/clone", env=search | fresh, check=True, stdout=subprocess.PIPE, text=True
        )
        printed[name] = done.stdout
    return printed


def frame_of_events() -> str:
    """Return the functions of the program that write records of event files."""
    return PROGRAM[PROGRAM.index("def frame(") : PROGRAM.index("def report(")]
