"""Links to logs, and messages, in the settings."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.structs.settings import LOG_LINK_NAMES

FIELD = re.compile(r"\{([^{}]*)\}")
MAX_LINK = 2000
MAX_CHANNEL = 100


def log_link(draft: Draft) -> Iterator[Problem]:
    """A link to logs is a web address without credentials, whose host is fixed, with known names in braces."""
    place = ("logs", "link")
    text = draft.get(*place, kind=str)
    if text is None:
        return
    hint = "for example https://grafana.example.org/explore?namespace={namespace}&pod={pod}"
    bare = FIELD.sub("", text)
    if len(text) > MAX_LINK or not text.isascii() or not text.isprintable() or set(' "<>\\^`{}') & set(bare):
        message = f"must be an address of at most {MAX_LINK} characters that are valid in one, got {safe_repr(text)}"
        yield draft.problem(place, message, code="log-link", hint=hint)
        return
    unknown = sorted({*FIELD.findall(text)} - {*LOG_LINK_NAMES})
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in LOG_LINK_NAMES)
        message = f"must use the names {known} only, got {safe_repr(f'{{{unknown[0]}}}')}"
        yield draft.problem(place, message, code="log-link", hint=hint)
        return
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in {"https", "http"} or "@" in parts.netloc or "{" in parts.netloc:
        message = (
            f"must begin with http:// or https:// and a fixed host without credentials, got {safe_repr(text)}"
        )
        yield draft.problem(place, message, code="log-link", hint=hint)


def channel(draft: Draft) -> Iterator[Problem]:
    """The channel of messages is one line of text."""
    place = ("monitoring", "notify", "channel")
    text = draft.get(*place, kind=str)
    if text is not None and (not text.isprintable() or not text.strip() or len(text) > MAX_CHANNEL):
        message = f"must be one line of at most {MAX_CHANNEL} characters, got {safe_repr(text)}"
        yield draft.problem(place, message, code="name-form", hint="for example sweeps")
