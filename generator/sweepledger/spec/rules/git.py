"""Git in the settings: the URL that code is cloned from."""

from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft


def code_secret(draft: Draft) -> Iterator[Problem]:
    """No secret is sent to the URL without TLS."""
    text = draft.get("code", "url", kind=str)
    if text is not None and text.startswith("http:") and "secret" in draft.names("code"):
        message = f"must be an https address where a secret is sent to it, got {safe_repr(text)}"
        yield draft.problem(("code", "url"), message, code="code-url")
