"""Requests to the git server of the tests: understood, allowed or not, and written down for tests."""

import base64
import binascii
import hmac
import json
import re
import threading
import time
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from tests.cluster import forge_git
from tests.cluster.forge_faults import Step, Trouble, kept, name
from tests.cluster.forge_git import Update

USERS = "users.json"
REQUESTS = "requests.jsonl"
ADDRESSED = re.compile(
    r"/(?P<repository>[\w-][\w.-]*?(?:/[\w-][\w.-]*?)*?)(?:\.git)?"
    r"/(?P<rest>info/refs|git-upload-pack|git-receive-pack|HEAD|objects/[\w./-]+)"
)


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request as it is understood."""

    method: str
    path: str
    query: str
    repository: str
    """Empty where the path is none of git's."""
    rest: str
    """The path within the repository."""
    step: Step
    user: str
    """Who it says it is; what that is worth stands in `denied`."""
    denied: int
    """The status that refuses it; 0 where it is allowed."""
    refs: tuple[str, ...]
    """That a push wants to move."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was answered, or troubled."""

    at: float
    """Seconds since 1970."""
    user: str
    """Who it said it is; empty where it said nothing, as git does the first time."""
    method: str
    path: str
    repository: str
    step: Step
    status: int
    """0 where there was no answer."""
    trouble: str
    updates: tuple[Update, ...]
    """The refs that it moved."""


def understood(
    method: str, target: str, authorization: str, *, body: IO[bytes], users: Path
) -> ParsedRequest:
    """Read what a request wants, and see who may."""
    path, _, query = target.partition("?")
    result = ADDRESSED.fullmatch(unquote(path))
    repository, rest = (result["repository"], result["rest"]) if result else ("", "")
    step: Step = "reading"
    refs = forge_git.wanted(body) if rest == "git-receive-pack" else ()
    if refs:
        step = "sending"
    elif rest == "info/refs" and query == "service=git-receive-pack":
        step = "asking"
    writes = rest == "git-receive-pack" or step == "asking"
    user, denied = _user(authorization, users, writes=writes)
    return ParsedRequest(method, unquote(path), query, repository, rest, step, user, denied, refs)


def _user(authorization: str, users: Path, *, writes: bool) -> tuple[str, int]:
    """Give the name that is said, and the status that refuses it."""
    kind, _, code = authorization.partition(" ")
    try:
        message = base64.b64decode(code, validate=True).decode() if kind.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        message = ""
    who, _, password = message.partition(":")
    known = kept(users).get(who)
    if known is None or not hmac.compare_digest(known["password"].encode(), password.encode()):
        return who, HTTPStatus.UNAUTHORIZED
    if writes and not known["may_write"]:
        return who, HTTPStatus.FORBIDDEN if who else HTTPStatus.UNAUTHORIZED  # git says its name when asked
    return who, 0


class Log:
    """The server's side of the requests' file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / REQUESTS
        self._lock = threading.Lock()

    def note(
        self, planned: ParsedRequest, status: int, trouble: Trouble | None, updates: list[Update]
    ) -> None:
        """Write a request down, before its answer: whoever has the answer finds it written."""
        request = Request(
            time.time(),
            *(planned.user, planned.method, planned.path, planned.repository, planned.step),
            status=int(status),
            trouble=name(trouble) if trouble else "",
            updates=tuple(updates),
        )
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(asdict(request)) + "\n")


def read(folder: Path) -> tuple[Request, ...]:
    """Give all requests so far, the oldest first."""
    path = folder / REQUESTS
    lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    return tuple(
        Request(**{**item, "updates": tuple(Update(**update) for update in item["updates"])})
        for item in whole
    )
