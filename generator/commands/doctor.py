"""`sweep doctor`: what of the bootstrap is in place, seen from a person's machine.

It changes nothing, but for the throw-away Job of `--prove`.

Whatever cannot be looked at is said to be not checked, which is no pass.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from generator.commands import cluster_health
from generator.commands.workspace import Workspace
from generator.engine.cluster import kubectl as client
from generator.engine.cluster.health import Finding, State
from generator.engine.cluster.kubectl import Kubectl
from generator.errors import GeneratorError, ToolError
from generator.repo import kustomize
from generator.structs.settings import Controller
from generator.structs.versions import OLDEST

CLUSTERS = "clusters"


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was looked at, in the order in which a person mends it."""

    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        """Tell whether nothing is missing or wrong; what was not checked is told apart."""
        return not any(finding.is_fault for finding in self.findings)


def doctor(
    workspace: Workspace, kubectl: Kubectl, *, prove: bool = False, patience: float = 300.0
) -> Diagnosis:
    """Look at tools, repository and cluster; `prove` also lets a throw-away Job write as a trial would."""
    found = [*_tools(), *_repository(workspace)]
    server = _server(kubectl)
    found.append(server)
    if server.state is State.MISSING:
        found.append(Finding("cluster", "everything in it", State.NOT_CHECKED, "no cluster answers"))
    else:
        found += cluster_health.look(workspace, kubectl)
        found.append(_proof(workspace, kubectl, patience if prove else None))
    return Diagnosis(tuple(found))


def _tools() -> Iterator[Finding]:
    yield _tried("tools", "kustomize", lambda: f"{kustomize.version()} ({' '.join(kustomize.command())})")
    yield _tried("tools", "kubectl", lambda: f"{client.version()} ({' '.join(client.command())})")


def _tried(part: str, what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(part, what, State.OK, look())
    except GeneratorError as error:
        return Finding(part, what, State.MISSING, str(error), error.hint)


def _repository(workspace: Workspace) -> Iterator[Finding]:
    settings, repository = workspace.settings, workspace.repository
    yield _tried("tools", "git", lambda: repository.run("--version").strip().removeprefix("git version "))
    followed = f"{settings.remote}/{settings.branch}"
    remote = _tried(
        "repository", f"remote {settings.remote}", lambda: _without_credential(workspace.remote_url())
    )
    yield remote
    if remote.state is State.OK:
        yield _branch(workspace, followed)
    if settings.controller in {Controller.ARGOCD, Controller.FLUX}:
        held = repository.files(workspace.standing(None), f"{CLUSTERS}/platform")
        what = f"{CLUSTERS}/ on the branch"
        if held:
            yield Finding("repository", what, State.OK)
        else:
            hint = f"`sweep bootstrap {settings.controller}`, then merge what it writes"
            yield Finding("repository", what, State.MISSING, "the controller has nothing to follow", hint)


def _without_credential(url: str) -> str:
    parts = urlsplit(url)
    is_ssh = parts.scheme == "ssh" and parts.password is None  # its user is no secret
    return url if is_ssh else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _branch(workspace: Workspace, followed: str) -> Finding:
    settings = workspace.settings
    name = f"refs/heads/{settings.branch}"
    try:
        listed = workspace.repository.run("ls-remote", "--", settings.remote, name)
    except GeneratorError as error:
        return Finding("repository", f"branch {followed}", State.MISSING, str(error), error.hint)
    if not listed.strip():
        says = "the remote answers, and has no such branch"
        return Finding("repository", f"branch {followed}", State.MISSING, says, "push it")
    return Finding("repository", f"branch {followed}", State.OK, listed[:8])


def _server(kubectl: Kubectl) -> Finding:
    what = "server version"
    try:
        _, server = kubectl.versions()
    except ToolError as error:
        return Finding("cluster", what, State.MISSING, str(error), error.hint)
    major, _, rest = server.removeprefix("v").partition(".")
    minor = rest.partition(".")[0].rstrip("+")
    if not (major.isdigit() and minor.isdigit()):
        return Finding("cluster", what, State.NOT_CHECKED, f"{server!r} is no version")
    if (int(major), int(minor)) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        return Finding(
            "cluster", what, State.WRONG, f"{server} is older than {wanted}", "upgrade the cluster"
        )
    return Finding("cluster", what, State.OK, server)


def _proof(workspace: Workspace, kubectl: Kubectl, patience: float | None) -> Finding:
    what = "a trial may write results"
    if patience is None:
        says = "only a pod can tell how the volume's root is owned"
        return Finding(
            "storage", what, State.NOT_CHECKED, says, "`sweep doctor --prove` runs one for a moment"
        )
    return cluster_health.prove(workspace.settings, kubectl, patience=patience)
