"""What goes wrong with the git server on demand: the values, and the two files that test and server share.

A test writes `faults.json`; the server reads it anew at each request, and keeps in `counts.json` how
often each trouble really happened. Nothing here speaks http.
"""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, assert_never

FAULTS = "faults.json"
COUNTS = "counts.json"

Step = Literal["reading", "asking", "sending"]
"""A push asks the server what it has, then sends; whatever is no push is reading."""
Scope = Literal["everything", "pushes", "sending"]


@dataclass(frozen=True, slots=True)
class Hanging:
    """The connection is accepted, nothing is said, and after some time it is closed."""

    seconds: float
    on: Scope = "everything"


@dataclass(frozen=True, slots=True)
class Failing:
    """The server answers that it has a fault of its own."""

    status: int = 500
    on: Scope = "everything"


@dataclass(frozen=True, slots=True)
class Refusing:
    """A pre-receive hook says no to a push."""

    says: str = "the policy of this server does not allow it"


@dataclass(frozen=True, slots=True)
class Racing:
    """Somebody else's commit gets onto the branch first, so that the push loses for real.

    Before `asking` git itself sees that it is behind; before `sending` the server finds the branch moved.
    """

    before: Literal["asking", "sending"] = "sending"


@dataclass(frozen=True, slots=True)
class Cutting:
    """The push succeeds, and the answer ends in its middle: whoever pushed does not learn it."""


Trouble = Hanging | Failing | Refusing | Racing | Cutting
KINDS: Mapping[str, Any] = {
    kind.__name__.lower(): kind for kind in (Hanging, Failing, Refusing, Racing, Cutting)
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A trouble, how often it comes, and to whom."""

    trouble: Trouble
    times: int | None = None
    """From now on; None: for as long as the fault stands."""
    by: str | None = None
    """The user whom it meets; None: everybody, also who has not said a name."""


def name(trouble: Trouble) -> str:
    return type(trouble).__name__.lower()


def keep(path: Path, value: object) -> None:
    """Write JSON so that whoever reads finds the old or the new, never a part."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    beside.write_text(json.dumps(value, indent=1, sort_keys=True))
    beside.replace(path)


def kept(path: Path) -> Any:
    """Read what was kept; an empty mapping where nothing was."""
    return json.loads(path.read_text()) if path.is_file() else {}


def put(folder: Path, faults: Sequence[Fault]) -> None:
    """Let these faults stand and no others; of several that meet a request, the first one is done."""
    names = [name(fault.trouble) for fault in faults]
    assert len(set(names)) == len(names), "one fault a kind: they share a count"
    done = kept(folder / COUNTS)
    documents = [
        {
            "kind": kind,
            "fields": asdict(fault.trouble),
            "by": fault.by,
            "until": None if fault.times is None else done.get(kind, 0) + fault.times,
        }
        for kind, fault in zip(names, faults, strict=True)
    ]
    keep(folder / FAULTS, {"standing": documents})


class Ledger:
    """The server's side: which trouble meets a request, and how often each has happened."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._counts: dict[str, int] = kept(folder / COUNTS)

    def take(self, step: Step, *, by: str, may: bool) -> Trouble | None:
        """Give the trouble that meets a request, counted; `may`: the request is allowed."""
        with self._lock:
            for document in self._standing():
                kind, until, whose = document["kind"], document["until"], document["by"]
                trouble: Trouble = KINDS[kind](**document["fields"])
                is_due = until is None or self._counts.get(kind, 0) < until
                if is_due and whose in (None, by) and _meets(trouble, step, may=may):
                    self._add(kind, 1)
                    return trouble
        return None

    def give_back(self, trouble: Trouble) -> None:
        with self._lock:
            self._add(name(trouble), -1)

    def stands(self, trouble: Trouble) -> bool:
        return any(document["kind"] == name(trouble) for document in self._standing())

    def _standing(self) -> list[dict[str, Any]]:
        documents: list[dict[str, Any]] = kept(self._folder / FAULTS).get("standing", [])
        return documents

    def _add(self, what: str, number: int) -> None:
        self._counts[what] = self._counts.get(what, 0) + number
        keep(self._folder / COUNTS, self._counts)


def _meets(trouble: Trouble, step: Step, *, may: bool) -> bool:
    match trouble:
        case Hanging(on=on) | Failing(on=on):
            return on in ("everything", step) or (on == "pushes" and step != "reading")
        case Racing(before=before):
            return may and step == before
        case Refusing() | Cutting():
            return may and step == "sending"
        case _:
            assert_never(trouble)
