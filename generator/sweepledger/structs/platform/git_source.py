"""Where a cluster reads the repository: the form of URL that git and the controllers take alike."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from sweepledger.model.text_forms import BRANCH
from sweepledger.structs.kubernetes import CONFIG_MAP, JOB, Kind
from sweepledger.structs.platform.git_hosts import HOSTS, GitHost
from sweepledger.structs.run_config import Shape

PORTS = {"https": 443, "http": 80, "ssh": 22}
"""Schemes over a network, and where they answer if the URL names no port."""

SCP_FORM = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:(?!/)[^\s:]+", re.ASCII)
SPECIAL = re.compile(r"[^A-Za-z0-9._~:/@%+\[\]-]", re.ASCII)
"""No URL of a repository needs more, and `$` or `{` would be expanded by a controller."""


@dataclass(frozen=True, slots=True)
class GitSource:
    """The repository that a cluster follows, and the shapes that it may run."""

    url: str
    branch: str
    shapes: tuple[Shape, ...] = ()
    """Distributed shapes that the cluster has a controller for; plain Jobs need none."""
    is_public: bool = False
    """Anyone may read the repository, so that controllers need no credential for it."""

    def __post_init__(self) -> None:
        if wrong := url_fault(self.url):
            raise ValueError(wrong)
        if re.fullmatch(BRANCH.pattern, self.branch) is None:
            raise ValueError(f"the branch must be a plain name such as main, got {self.branch!r}")

    @property
    def scheme(self) -> str:
        """The URL's scheme."""
        return urlsplit(self.url).scheme

    @property
    def host(self) -> str | None:
        """The server's host name; None for a folder."""
        return urlsplit(self.url).hostname

    @property
    def git_host(self) -> GitHost:
        """What the server's name says that it is: gitlab.example.org is taken for GitLab."""
        return next(host for host in HOSTS if host.name in (self.host or ""))

    @property
    def port(self) -> int | None:
        """The server's port; None for a folder."""
        return urlsplit(self.url).port or PORTS.get(self.scheme)

    @property
    def origin(self) -> str:
        """The part of the URL that a credential applies to."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/"

    @property
    def credential_keys(self) -> tuple[str, ...]:
        """The keys of a Secret with a credential for it."""
        return ("identity", "known_hosts") if self.scheme == "ssh" else ("username", "password")

    @property
    def revision(self) -> str:
        """The full name of the branch, because a controller may look up a short name in several places."""
        return f"refs/heads/{self.branch}"

    @property
    def batch_kinds(self) -> tuple[Kind, ...]:
        """The kinds that overlays may contain."""
        return (JOB, CONFIG_MAP, *self.custom_kinds)

    @property
    def custom_kinds(self) -> tuple[Kind, ...]:
        """The custom kinds that the cluster has controllers for."""
        return tuple(
            kind
            for shape in sorted(self.shapes)
            for kind in (shape.kind, shape.kind.shared)
            if kind is not None
        )


def url_fault(url: str) -> str | None:
    """Return what is wrong with the URL of a repository, without repeating a possible password."""
    if SCP_FORM.fullmatch(url):
        user, _, path = url.partition(":")
        return f"the URL must name its scheme; write ssh://{user}/{path}"
    if SPECIAL.search(url):
        return "the URL must hold no space, quote or other special character"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "the URL must name a server and a port from 0 to 65535"
    got = parts.scheme if "@" in url else url  # a password may stand before it
    rules = {
        f"the URL must begin with https://, ssh://, http:// or file://, got {got!r}": (
            parts.scheme in {*PORTS, "file"}
        ),
        "the URL must hold no user name or password: they belong in a Secret": (
            parts.password is None and (parts.username is None or parts.scheme == "ssh")
        ),
        "the URL must name a server": parts.scheme == "file" or bool(parts.hostname),
        "the URL must name a repository on the server": bool(parts.path.strip("/")),
    }
    return next((rule for rule, holds in rules.items() if not holds), None)
