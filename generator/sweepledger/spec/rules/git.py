"""Git in the settings: the branch, the URL that code is cloned from, signers of commits."""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft

GIT_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]{0,198}[A-Za-z0-9_-])?", re.ASCII)


def branch_name(draft: Draft) -> Iterator[Problem]:
    """The branch is a name, not an option, an address or a range."""
    name = draft.get("branch", kind=str)
    if name is None:
        return
    parts = name.split("/")
    fits = GIT_NAME.fullmatch(name) and ".." not in name
    if not fits or any(not part or part.startswith(".") or part.endswith(".lock") for part in parts):
        message = f"must be the name of a branch, got {safe_repr(name)}"
        yield draft.problem(("branch",), message, code="name-form")


URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9_.~%+-]+)+/?", re.ASCII)
KEY_TYPE = re.compile(r"(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+", re.ASCII)
LENGTH_BYTES = 4
"""Bytes of the length before each part of a public key."""


def code_url(draft: Draft) -> Iterator[Problem]:
    """The URL contains no password, and no secret is sent to it without TLS."""
    place = ("code", "url")
    text = draft.get(*place, kind=str)
    if text is None:
        return
    if not URL.fullmatch(text):
        message = f"must be an https address without credentials, got {safe_repr(text)}"
        hint = "for example https://git.example.org/team/sweeps.git; credentials belong in code.secret"
        yield draft.problem(place, message, code="code-url", hint=hint)
    elif "secret" in draft.names("code") and urlsplit(text).scheme != "https":
        message = f"must be an https address where a secret is sent to it, got {safe_repr(text)}"
        yield draft.problem(place, message, code="code-url")


def signers(draft: Draft) -> Iterator[Problem]:
    """Each signer is valid for ssh-keygen, which ignores lines that it cannot read."""
    for place, line in draft.items("signers"):
        if isinstance(line, str) and not _is_signer(line):
            message = f"must be principals, a key type and a public key, got {safe_repr(line)}"
            hint = "for example ops@example.org and, behind it, the contents of a file such as id_ed25519.pub"
            yield draft.problem(place, message, code="signer", hint=hint)


def _is_signer(line: str) -> bool:
    parts = line.split()
    if "\n" in line or line.startswith("#"):
        return False
    found = next((at for at, part in enumerate(parts) if at and KEY_TYPE.fullmatch(part)), None)
    if found is None or len(parts) <= found + 1:
        return False
    try:
        key = base64.b64decode(parts[found + 1], validate=True)
    except (binascii.Error, ValueError):
        return False
    # The key begins with its own type.
    size = int.from_bytes(key[:LENGTH_BYTES])
    return key[LENGTH_BYTES : LENGTH_BYTES + size] == parts[found].encode() and len(key) > LENGTH_BYTES + size
