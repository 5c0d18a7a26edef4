"""Random later edits of a recorded sweep, and whether `sweep verify` names each by file, row and column."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweepledger.operations.verification.file_diff import FileDifference

CELLS = ("0.123456", "ok", "", '"x"', "7")


@dataclass(frozen=True)
class Mutation:
    """One edit, and where it must be told of."""

    kind: str
    path: str
    row: str
    """What names the row: a trial's id, or nothing where any will do."""
    column: str

    def is_told(self, differences: Sequence[FileDifference]) -> bool:
        return any(
            difference.path == self.path
            and (not self.row or difference.row == self.row)
            and (not self.column or difference.column == self.column)
            for difference in differences
        )

    def is_told_somewhere(self, differences: Sequence[FileDifference]) -> bool:
        """Tell whether file, row and column are named: of two files that disagree either may be wrong."""
        return any(difference.path == self.path for difference in differences) and any(
            (not self.row or difference.row == self.row)
            and (
                not self.column
                or difference.column == self.column
                or difference.column.endswith(f".{self.column}")
            )
            for difference in differences
        )


def mutate(root: Path, sweep: str, rng: random.Random) -> Mutation:
    """Edit one cell, row or file of a sweep's results or archived overlays, never to what it was."""
    below = (root / "results" / sweep, *(root / "overlays/archive").glob(f"{sweep}-b*"))
    files = sorted(path for folder in below for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    name = path.relative_to(root).as_posix()
    ways: dict[str, Callable[[], Mutation]] = {
        "byte": lambda: _byte(path, name, rng),
        "gone": lambda: _gone(path, name),
        "added": lambda: _added(path, root),
    }
    if path.suffix == ".csv":
        ways |= dict.fromkeys(("cell", "cell again", "cell once more"), lambda: _cell(path, name, rng))
        ways |= {"row": lambda: _row(path, name, rng), "row twice": lambda: _twice(path, name, rng)}
    if path.suffix == ".jsonl":
        ways |= dict.fromkeys(("member", "member again", "member too"), lambda: _member(path, name, rng))
        ways |= {"row": lambda: _row(path, name, rng), "row twice": lambda: _twice(path, name, rng)}
    return ways[rng.choice(sorted(ways))]()


def _byte(path: Path, name: str, rng: random.Random) -> Mutation:
    content = bytearray(path.read_bytes())
    place = rng.randrange(len(content))
    content[place] = rng.choice([number for number in b"abc019,. \n" if number != content[place]])
    path.write_bytes(content)
    return Mutation("byte", name, "", "")


def _gone(path: Path, name: str) -> Mutation:
    path.unlink()
    return Mutation("gone", name, "", "")


def _added(path: Path, root: Path) -> Mutation:
    made = path.with_name(f"extra-{path.name}")
    made.write_bytes(path.read_bytes())
    return Mutation("added", made.relative_to(root).as_posix(), "", "")


def _cell(path: Path, name: str, rng: random.Random) -> Mutation:
    head, *rows = path.read_text().splitlines()
    place = rng.randrange(len(rows))
    cells, names = rows[place].split(","), head.split(",")
    column = rng.randrange(1, len(names))
    old = cells[column]
    cells[column] = rng.choice([item for item in CELLS if item != old])
    row = cells[0]
    rows[place] = ",".join(cells)
    path.write_text("\n".join([head, *rows]) + "\n")
    return Mutation("cell", name, row if row.startswith("t") else "", names[column])


def _lines(path: Path) -> tuple[list[str], int]:
    lines = path.read_text().splitlines()
    return lines, int(path.suffix == ".csv" or '"format"' in lines[0])


def _trial(line: str) -> str:
    trial = json.loads(line)["trial"] if line.startswith("{") else line.split(",", maxsplit=1)[0]
    return str(trial) if str(trial).startswith("t") else ""


def _row(path: Path, name: str, rng: random.Random) -> Mutation:
    lines, first = _lines(path)
    gone = lines.pop(rng.randrange(first, len(lines)))
    path.write_text("".join(f"{line}\n" for line in lines))
    return Mutation("row", name, _trial(gone), "")


def _twice(path: Path, name: str, rng: random.Random) -> Mutation:
    lines, first = _lines(path)
    place = rng.randrange(first, len(lines))
    lines.insert(place, lines[place])
    path.write_text("".join(f"{line}\n" for line in lines))
    return Mutation("row twice", name, _trial(lines[place]), "")


def _member(path: Path, name: str, rng: random.Random) -> Mutation:
    lines, first = _lines(path)
    place = rng.randrange(first, len(lines))
    data = json.loads(lines[place])
    trial = data["trial"]
    member = rng.choice(["metrics", "seconds", "uid", "finished", "seed", "attempt", "status"])
    column = member
    if member == "metrics":
        objective = next(iter(data["metrics"]))
        data["metrics"][objective] = (data["metrics"][objective] or 0.0) + 2.0**-20
        column = f"metrics.{objective}"
    else:
        edits = {
            "uid": "uid-other",
            "finished": "2026-01-01T00:00:03Z",
            "seed": 99,
            "attempt": 9,
            "seconds": 77,
        }
        data[member] = edits.get(member, "failed" if data[member] == "ok" else "ok")
    lines[place] = json.dumps(data, sort_keys=True, separators=(",", ":"))
    path.write_text("".join(f"{line}\n" for line in lines))
    return Mutation("member", name, trial, column)
