"""The runbooks of docs/how-to/recover.md: their commands bring the sweeps back, as far as git is enough."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.command_line import run_sweep
from tests.operations.test_collect import leave, stored
from tests.repo.test_signatures import key, line
from tests.repository import Sandbox, followed_by

pytestmark = pytest.mark.full_suite("runbooks")

PAGE = (Path(__file__).parents[2] / "docs/how-to/recover.md").read_text()


@pytest.fixture
def run(sandbox: Sandbox) -> Callable[..., str]:
    """Run the commands that a section shows for a shell, in the sandbox's clone or another; return the output."""

    def execute(section: str, *blocks: int, root: Path | None = None, **words: str) -> str:
        shown = list(_blocks(section))
        printed = []
        for number in blocks or range(len(shown)):
            for command in shown[number]:
                arguments = [words.get(word, word) for word in shlex.split(command)]
                if arguments[0] == "sweep":
                    done = run_sweep(*arguments[1:], cwd=root or sandbox.root)
                    assert done.returncode == 0, (command, done.stdout, done.stderr)
                    printed.append(done.stdout)
                else:
                    assert arguments[0] == "git"
                    printed.append(sandbox.git("-C", str(root or sandbox.root), *arguments[1:]))
        return "".join(printed)

    return execute


def _blocks(section: str) -> Iterator[list[str]]:
    (text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield block.splitlines()


def record(sandbox: Sandbox, results: Path) -> None:
    batch = stored(sandbox)
    for index in range(batch.lock.trials):
        leave(results, batch, index)
    assert sandbox.collect(results, {batch.name})


def test_a_fresh_clone(sandbox: Sandbox, results: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    sandbox.merged()
    record(sandbox, results)
    sandbox.pull()
    sandbox.spec("other")
    sandbox.publish_batches("Ask for another")
    shutil.rmtree(results)
    sandbox.git("clone", "-q", str(sandbox.remote), str(tmp_path / "fresh"))

    message = run("The cluster is lost", root=tmp_path / "fresh")

    assert re.search(r"^other +3\b", message, re.MULTILINE)
    assert "peak" in message


def test_lost_records_are_requested_again(sandbox: Sandbox, results: Path, run: Callable[..., str]) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    shutil.rmtree(results)
    results.mkdir()

    run("The results volume is lost", 0, NAME="peak", BATCH=batch)
    recorded = sandbox.collect(results, alive=())
    run("The results volume is lost", 1, NAME="peak")

    counts = {str(status): count for status, count in recorded[0].summary.counts.items() if count}
    assert counts == {"cancelled": 3}
    (again,) = sandbox.active()
    assert again.startswith("peak-b2-")


def test_lost_commits(sandbox: Sandbox, results: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    sandbox.merged()
    backup = tmp_path / "backup.git"
    shutil.copytree(sandbox.remote, backup)
    record(sandbox, results)
    sandbox.pull()
    newest = sandbox.git("rev-parse", "HEAD:results").strip()
    lost = sandbox.head()

    shutil.rmtree(sandbox.remote)
    shutil.copytree(backup, sandbox.remote)
    message = run("The git server was restored from a backup")
    from_clone = sandbox.git("ls-remote", "origin", "main").split()[0]
    shutil.rmtree(sandbox.remote)
    shutil.copytree(backup, sandbox.remote)
    sandbox.git("fetch", "-q", "origin")
    sandbox.git("reset", "-q", "--hard", "origin/main")
    record(sandbox, tmp_path / "volume")
    sandbox.pull()

    assert "results(peak)" in message
    assert from_clone == lost
    assert sandbox.git("rev-parse", "HEAD:results").strip() == newest
    run("The git server was restored from a backup", 1)


def test_commits_of_both_keys_are_believed(sandbox: Sandbox, tmp_path: Path, run: Callable[..., str]) -> None:
    old, new = key(tmp_path, "old"), key(tmp_path, "new")
    settings = followed_by("flux")
    sandbox.write("sweepledger.yaml", f"{settings}signers:\n- '{line(old)}'\n")
    request = BootstrapRequest(Controller.FLUX, url="https://git.example.org/team/sweeps.git")
    bootstrap(sandbox.workspace, request)
    signed = ("-c", "gpg.format=ssh", "-c", "commit.gpgSign=true")
    sandbox.git("add", "--all")
    sandbox.git(*signed, "-c", f"user.signingKey={old}", "commit", "-q", "-m", "By the old key")
    sandbox.git("push", "-q", "origin", "main")

    settings = (sandbox.root / "sweepledger.yaml").read_text()
    sandbox.write(
        "sweepledger.yaml", settings.replace(f"- '{line(old)}'\n", f"- '{line(old)}'\n- '{line(new)}'\n")
    )
    for name, value in (("gpg.format", "ssh"), ("commit.gpgSign", "true"), ("user.signingKey", str(new))):
        sandbox.git("config", name, value)
    run("The signing key is rotated", CONTROLLER="flux")
    sandbox.git("verify-commit", "HEAD")

    listed = (sandbox.root / "clusters/allowed_signers").read_text()
    assert line(old) in listed
    assert line(new) in listed
