"""`sweep promote` on a real Gitea: a pull request that another person approves and merges, and a signed tag."""

import json
import secrets
import shutil
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.cluster import building
from tests.cluster.children import Children, until
from tests.cluster.processes import free_ports
from tests.commands.test_fetch import recorded
from tests.commands.test_promote import CONFIG
from tests.repo.test_signatures import key, line
from tests.repository import Sandbox

pytestmark = [
    pytest.mark.full_suite("a Gitea server"),
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="skipped: ssh-keygen not found"),
]

Done = subprocess.CompletedProcess[str]
NAME = "gitea"
PASSWORD = secrets.token_hex(16)
AUTHOR, REVIEWER = "author", "reviewer"
REPOSITORY = f"{AUTHOR}/lab"
READY_SECONDS = 60
CONFIGURATION = """
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
RUN_MODE = prod
WORK_PATH = {folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {address}/
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = {program}
[database]
DB_TYPE = sqlite3
[security]
INSTALL_LOCK = true
SECRET_KEY = of-the-tests
[oauth2]
ENABLED = false
[cron]
ENABLED = false
[session]
PROVIDER = memory
"""


@dataclass(frozen=True)
class Gitea:
    """A Gitea on loopback with two people and a repository, whose main branch takes nothing but pull requests."""

    address: str

    def ask(self, method: str, path: str, user: str = AUTHOR, **body: object) -> Any:
        """Return the answer of the API. Raises urllib.error.HTTPError."""
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.address}/api/v1/{path}", json.dumps(body).encode() if body else None, method=method
        )
        request.add_header("Authorization", f"Basic {b64encode(f'{user}:{PASSWORD}'.encode()).decode()}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read() or "null")

    def is_ready(self, children: Children) -> bool:
        """Return whether it answers. Raises AssertionError with its log if it has ended."""
        assert children.is_alive(NAME), children.tail(NAME)
        with suppress(OSError), urllib.request.urlopen(f"{self.address}/api/healthz", timeout=5):  # noqa: S310
            return True
        return False

    def has_branch(self, name: str) -> bool:
        """Return whether the server has noticed a push to a branch, which it does after the push has ended."""
        with suppress(urllib.error.HTTPError):
            return bool(self.ask("GET", f"repos/{REPOSITORY}/branches/{quote(name, safe='')}"))
        return False

    def remote(self, user: str) -> str:
        """Return the address of the repository with the credentials of a person."""
        return f"{self.address.replace('://', f'://{user}:{PASSWORD}@')}/{REPOSITORY}.git"


@pytest.fixture
def gitea(tmp_path: Path) -> Iterator[Gitea]:
    """Start a server of its own."""
    program = building.built(building.GITEA)
    if program is None:
        pytest.skip("skipped: gitea is not built: python -m tests.cluster.building gitea")
    folder, (port,) = tmp_path / "gitea", free_ports(1)
    folder.mkdir()
    configuration = folder / "app.ini"
    server = Gitea(f"http://127.0.0.1:{port}")
    configuration.write_text(
        CONFIGURATION.format(folder=folder, port=port, address=server.address, program=program)
    )
    command = [str(program / "gitea"), "--config", str(configuration)]
    children = Children(folder)
    children.start(NAME, [*command, "web"])
    try:
        until("Gitea answers", lambda: server.is_ready(children), seconds=READY_SECONDS)
        for user in (AUTHOR, REVIEWER):
            names = ("--username", user, "--email", f"{user}@example.org", "--password", PASSWORD)
            subprocess.run(
                [*command, "admin", "user", "create", *names, "--must-change-password=false"],
                check=True,
                capture_output=True,
            )
        yield server
    finally:
        children.end(NAME)


def publish(gitea: Gitea, sandbox: Sandbox) -> None:
    """Bring a repository to the server, and let its main branch change by approved pull requests alone."""
    gitea.ask("POST", "user/repos", name="lab", default_branch="main")
    sandbox.git("remote", "set-url", "origin", gitea.remote(AUTHOR))
    sandbox.push()
    gitea.ask("PUT", f"repos/{REPOSITORY}/collaborators/{REVIEWER}", permission="write")
    gitea.ask(
        *("POST", f"repos/{REPOSITORY}/branch_protections"),
        rule_name="main",
        enable_push=False,
        required_approvals=1,
    )


def test_a_winner_reaches_production_by_an_approved_pull_request(
    gitea: Gitea, sandbox: Sandbox, tmp_path: Path, run_sweep: Callable[..., Done]
) -> None:
    recorded(sandbox, tmp_path / "state", [])
    sandbox.write("configs/model.yaml", CONFIG)
    sandbox.commit("Add the configuration of production")
    publish(gitea, sandbox)
    signer = key(tmp_path, "person")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", f"{signer}.pub"),
        ("commit.gpgsign", "true"),
    ):
        sandbox.git("config", name, value)

    done = run_sweep(
        *("promote", "peak", "--to", "configs/model.yaml", "--tag", "models/peak-1", "--format", "json"),
        cwd=sandbox.root,
    )

    assert done.returncode == 0, done.stderr
    promotion = json.loads(done.stdout)["data"]
    assert (promotion["pushed"], promotion["signed"]) == (True, True)
    branch, commit = promotion["branch"], promotion["promotion"]
    refused = subprocess.run(
        ["git", "push", "origin", f"{commit}:main"],
        cwd=sandbox.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Not allowed to push to protected branch main" in refused.stderr
    for name in ("main", branch):
        until("the push is noticed", partial(gitea.has_branch, name), seconds=READY_SECONDS)
    pulls = f"repos/{REPOSITORY}/pulls"
    pull = gitea.ask("POST", pulls, title="Promote peak", head=branch, base="main")["number"]
    assert {file["filename"] for file in gitea.ask("GET", f"{pulls}/{pull}/files")} == {
        "configs/model.yaml",
        "configs/model.yaml.intoto.json",
    }
    until("it can be merged", lambda: gitea.ask("GET", f"{pulls}/{pull}")["mergeable"], seconds=READY_SECONDS)
    with pytest.raises(urllib.error.HTTPError, match="405"):
        gitea.ask("POST", f"{pulls}/{pull}/merge", Do="merge")
    gitea.ask("POST", f"{pulls}/{pull}/reviews", user=REVIEWER, event="APPROVED", body="As measured")
    gitea.ask("POST", f"{pulls}/{pull}/merge", user=REVIEWER, Do="merge")
    assert gitea.ask("GET", f"{pulls}/{pull}")["merged"]
    # Somebody else checks it from a fresh clone.
    clone = Sandbox(sandbox.remote, tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", gitea.remote(REVIEWER), str(clone.root)], check=True)
    assert (clone.root / "configs/model.yaml").read_text() == CONFIG.replace("x: 7", "x: 3")
    signers = clone.write("../signers", f"{line(signer)}\n")
    clone.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-tag", "models/peak-1")
    assert clone.git("rev-parse", "models/peak-1^{commit}").strip() == commit
    clone.git("merge-base", "--is-ancestor", commit, "origin/main")
    checked = run_sweep("promote", "--check", "--format", "json", cwd=clone.root)
    assert checked.returncode == 0, checked.stderr
    (file,) = json.loads(checked.stdout)["data"]["promoted"]
    assert (file["file"], file["trial"], file["differences"]) == (
        "configs/model.yaml",
        promotion["trial"],
        [],
    )
