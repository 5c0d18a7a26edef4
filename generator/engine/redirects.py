"""Where a registry may lead those who ask it: by the same scheme, and unencrypted to itself only."""

import ipaddress
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

QUOTED = 200
"""Characters of what a stranger wrote."""


class Careful(urllib.request.HTTPRedirectHandler):
    """Follows a registry elsewhere for bytes, which can be verified; never for a digest alone."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        """Follow, or close what will not be followed: the standard library leaves it open."""
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (OSError, ValueError):
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Give the request that follows, or None for a HEAD. Raises URLError for a place that is refused."""
        if req.get_method() == "HEAD":
            return None  # it becomes an error with the code, and the bytes are asked for
        if not may_lead(req.full_url, newurl):
            raise urllib.error.URLError(
                f"it leads to {newurl[:QUOTED]}, without encryption or by another scheme"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def may_lead(here: str, there: str) -> bool:
    """Tell whether one address may lead to another: by the same scheme, and unencrypted to itself only."""
    try:
        scheme = urllib.parse.urlsplit(there).scheme
        is_same = scheme == urllib.parse.urlsplit(here).scheme
        return is_same and (scheme == "https" or host(here) == host(there))
    except ValueError:
        return False


def host(url: str | None) -> str:
    """Give host and port of an address."""
    return urllib.parse.urlsplit(url or "").netloc.rpartition("@")[2].lower()


def is_loopback(place: str) -> bool:
    """Tell whether a host, with its port or without, is this machine."""
    name = urllib.parse.urlsplit(f"//{place}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
