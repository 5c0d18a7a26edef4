"""What a platform follows: the repository, names of folders and objects, and the Secrets that a person makes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from msgspec import Struct

from sweepledger.model.text_forms import BRANCH
from sweepledger.structs.kubernetes import CONFIG_MAP, JOB, Kind
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import FleetSettings, TrialSettings


class GitHost(Struct, frozen=True):
    """A git host: what its servers, its files, its hooks and its runners are called."""

    name: str
    """A word that the names of its servers contain."""
    status: str
    """What Flux calls its API for commit statuses."""
    receiver: str = "github"
    """What Flux calls the way in which it signs webhooks."""
    pusher: str | None = None
    """The variable in which its hooks name the user who pushes."""
    workflows: tuple[str, ...] = ()
    """Folders and files of the workflows that a repository has for it; by the last, it is recognized."""
    runner: tuple[str, str] = ("", "")
    """A text of these files where the label of a runner belongs, and the text with another, `{}`."""
    checks_app: tuple[str, str] = ("", "")
    """The same for the id of the app whose word counts as the check."""

    @property
    def pin_file(self) -> str:
        """The file that pins the version that checks."""
        return f".{self.name}/sweep.in"

    def adapt(self, content: bytes, runner: str | None, checks_app: int | None) -> bytes:
        """Return a file of the workflows for a server with other runners, or with another app."""
        for (old, new), value in ((self.runner, runner), (self.checks_app, checks_app)):
            if old and value is not None:
                content = content.replace(old.encode(), new.format(value).encode())
        return content


GIT_HOSTS = (
    # Flux's `bitbucket` sends its credential to bitbucket.org, whatever server the address names.
    GitHost("bitbucket.org", "bitbucket", "bitbucket"),
    GitHost("dev.azure.com", "azuredevops"),
    GitHost("bitbucket", "bitbucketserver", "bitbucket"),
    GitHost(
        *("gitlab", "gitlab", "gitlab", "GL_USERNAME", (".gitlab/", ".gitlab-ci.yml")),
        runner=("  timeout: 20 minutes\n", "  timeout: 20 minutes\n  tags: [{}]\n"),
    ),
    GitHost(
        *("github", "github", "github", "GITHUB_USER_LOGIN", (".github/",)),
        runner=("runs-on: ubuntu-24.04\n", "runs-on: {}\n"),
        checks_app=('"integration_id": 15368', '"integration_id": {}'),
    ),
    # Any other is taken for Gitea or Forgejo, which send the headers of GitHub; none sends that of `generic-hmac`.
    GitHost("", "gitea", pusher="GITEA_PUSHER_NAME"),
)
"""The first whose name is in that of a server counts."""
WITH_WORKFLOWS = {host.name: host for host in GIT_HOSTS if host.workflows}
DEFAULT_HOST = WITH_WORKFLOWS["github"]

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
        return next(host for host in GIT_HOSTS if host.name in (self.host or ""))

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


CLUSTERS = "clusters"
"""Folder of the platform's files, and of one folder for each cluster if the settings name several."""
REMOTE = "remote"
"""Folder of what a person applies in the cluster of the trials, if the controller runs in another."""


def platform_folder(cluster: str | None) -> str:
    """Return the folder of the platform of a cluster; None: the only one."""
    return CLUSTERS if cluster is None else f"{CLUSTERS}/{cluster}"


def patches_folder(cluster: str | None) -> str:
    """Return the folder of the Kustomize component by which a team changes the platform of a cluster."""
    return f"{CLUSTERS}/extra/platform" if cluster is None else f"{CLUSTERS}/extra/{cluster}/platform"


@dataclass(frozen=True, slots=True)
class Names:
    """The names that follow from the settings: two repositories of one cluster differ in their namespace."""

    trials: str
    """Namespace of the trials; the name of everything that lies in no namespace begins with it."""
    cluster: str | None = None
    """One of several clusters of the repository."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the team, which never replace ours."""

    @classmethod
    def of(cls, trials: TrialSettings, fleet: FleetSettings) -> "Names":
        """Return the names in one cluster."""
        return cls(trials.namespace, fleet.cluster, trials.labels)

    @property
    def project(self) -> str:
        """Name of what a controller has for batches: it may serve several clusters."""
        return self.trials if self.cluster is None else f"{self.trials}-{self.cluster}"

    @property
    def collector(self) -> str:
        """Namespace of the collector, which holds the credential for git."""
        return f"{self.trials}-collector"


@dataclass(frozen=True, slots=True)
class RequiredSecret:
    """A Secret that a person makes; its content is never in git, nor on a command line."""

    purpose: str
    namespace: str
    name: str
    keys: tuple[str, ...]
    """Each is read from a file of its own."""
    type: str | None = None
    literals: tuple[str, ...] = ()
    label: str | None = None
    is_elsewhere: bool = False
    """It lies in the cluster of the controller, which is not that of the trials."""

    @property
    def title(self) -> str:
        """Return kind and name, with the namespace."""
        return f"Secret {self.namespace}/{self.name}"

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands that create it from files named like its keys."""
        words = ["kubectl", "--namespace", self.namespace, "create", "secret", "generic", self.name]
        words += [f"--type={self.type}"] if self.type else []
        words += [f"--from-literal={literal}" for literal in self.literals]
        words += [f"--from-file={key}=./{key.lstrip('.')}" for key in self.keys]
        make = " ".join(words)
        if self.label is None:
            return (make,)
        return (make, f"kubectl --namespace {self.namespace} label secret {self.name} {self.label}")
