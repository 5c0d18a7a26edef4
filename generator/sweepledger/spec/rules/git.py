"""What trials may have or reach from outside, where code comes from, and whose word counts."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.rules.environment import VARIABLE, is_reserved

SECRET_KEY = re.compile(r"[A-Za-z0-9_.-]{1,253}", re.ASCII)
URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9_.~%+-]+)+/?", re.ASCII)
KEY_TYPE = re.compile(r"(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+", re.ASCII)
LENGTH = 4
"""Bytes of the number before each part of a public key."""


def secrets(draft: Draft) -> Iterator[Problem]:
    """A secret reaches the command under a name that nothing else uses."""
    for name in draft.names("secrets"):
        variable, key = (draft.get("secrets", name, one, kind=str) for one in ("variable", "key"))
        if variable is not None and (not VARIABLE.fullmatch(variable) or is_reserved(variable)):
            message = f"must be the name of an environment variable that is free, got {shown(variable)}"
            hint = "for example HF_TOKEN; PATH, HOME and names with SWEEP_ are taken"
            yield draft.problem(("secrets", name, "variable"), message, code="environment-name", hint=hint)
        if key is not None and (not SECRET_KEY.fullmatch(key) or key in {".", ".."}):
            message = f"must be a key of a Kubernetes Secret: letters, digits and - _ ., got {shown(key)}"
            yield draft.problem(
                ("secrets", name, "key"), message, code="secret-key", hint="for example token"
            )


def networks(draft: Draft) -> Iterator[Problem]:
    """A network policy knows networks, not names."""
    for name in draft.names("egress"):
        for place, text in draft.items("egress", name, "cidrs"):
            if not isinstance(text, str):
                continue
            try:
                network = ipaddress.ip_network(text)
            except ValueError:
                message = f"must be a network such as 203.0.113.0/24, got {shown(text)}"
                yield draft.problem(place, message, code="cidr", hint=_network(text))
                continue
            if network.prefixlen == 0:
                message = f"is every address there is, those inside the cluster too, got {shown(text)}"
                hint = "name the networks that trials need"
                yield draft.warning(place, message, code="egress-everywhere", hint=hint)


def code_url(draft: Draft) -> Iterator[Problem]:
    """The address is fit for a manifest: no password in it, and none sent in the clear."""
    place = ("code", "url")
    text = draft.get(*place, kind=str)
    if text is None:
        return
    if not URL.fullmatch(text):
        message = f"must be an https address without credentials, got {shown(text)}"
        hint = "for example https://git.example.org/team/sweeps.git; credentials belong into code.secret"
        yield draft.problem(place, message, code="code-url", hint=hint)
    elif "secret" in draft.names("code") and urlsplit(text).scheme != "https":
        message = f"must be an https address where a secret is sent to it, got {shown(text)}"
        yield draft.problem(place, message, code="code-url")


def signers(draft: Draft) -> Iterator[Problem]:
    """Lines are as git hands them to ssh-keygen, which passes over those it cannot read."""
    for place, line in draft.items("signers"):
        if isinstance(line, str) and not _is_signer(line):
            message = f"must be principals, a key type and a public key, got {shown(line)}"
            hint = "for example ops@example.org and, behind it, the contents of a file such as id_ed25519.pub"
            yield draft.problem(place, message, code="signer", hint=hint)


def _network(text: str) -> str | None:
    try:
        return f"did you mean {str(ipaddress.ip_network(text, strict=False))!r}?"
    except ValueError:
        return "a name has no place in a network policy: give the addresses behind it"


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
    # The key says itself of what type it is.
    size = int.from_bytes(key[:LENGTH])
    return key[LENGTH : LENGTH + size] == parts[found].encode() and len(key) > LENGTH + size
