"""Git hosts: a row each, and for those that run our workflows the files in `workflows/` and a section of the README."""

from msgspec import Struct


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


HOSTS = (
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
WITH_WORKFLOWS = {host.name: host for host in HOSTS if host.workflows}
DEFAULT = WITH_WORKFLOWS["github"]
