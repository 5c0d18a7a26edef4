"""A merged change leaves traps for `sweep cluster upgrade`: it ends with a sentence, and touches nothing but its own
files."""

import shutil
from pathlib import Path

import pytest

from sweepledger.errors import GeneratorError
from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.platform import DEFAULT_HOST
from sweepledger.structs.settings import Controller
from sweepledger.structs.values import bytes_digest
from sweepledger.verbs.cluster.upgrade import propose_upgrade, upgrade_files
from tests.attacks.changing import SETTINGS
from tests.attacks.edits import Edit, put, replaced
from tests.operations.test_bootstrap import URL
from tests.repository import Sandbox

PRECIOUS = b"precious\n"
OWN_FILE = "clusters/extra/own.yaml"
MONITORING = "monitoring: {}\n"


def linked(path: str, target: str) -> Edit:
    """Put a link to a place outside of the repository where a file or folder is."""

    def change(root: Path) -> None:
        place = root / path
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        place.symlink_to(root.parent / target)

    return change


def listed(path: str) -> Edit:
    """Let the record of the platform claim a file with this content as its own."""

    def change(root: Path) -> None:
        with (root / BOOTSTRAP_FILE).open("a") as file:
            file.write(f'  {path}: "{bytes_digest(PRECIOUS)}"\n')

    return change


REFUSED: dict[str, Edit] = {
    "a pinned version that is no text": put(DEFAULT_HOST.pin_file, b"\xff\xfe==\n"),
    "a pinned version behind a link": linked(DEFAULT_HOST.pin_file, "outside/file"),
    "the folder of workflows is a link": linked(".github", "outside"),
    "the platform is a link": linked("clusters", "outside"),
    "a folder of the platform is a link": linked("clusters/platform", "outside"),
    "the files of batches are a link": linked("clusters/flux/active", "outside"),
    "monitoring is a link": linked("clusters/monitoring", "outside"),
    "the hook is a link": linked("clusters/pre-receive.sh", "outside/file"),
    "a base is a link": linked("base/platform/team/v1", "outside"),
    "the record is a link": linked(BOOTSTRAP_FILE, "outside/file"),
    "the settings are a link": linked("sweepledger.yaml", "outside/file"),
    "a record of a command": replaced(BOOTSTRAP_FILE, URL, "ext::sh -c id"),
    "a record of an option": replaced(BOOTSTRAP_FILE, URL, "--upload-pack=id"),
    "a record with two lines for one": replaced(BOOTSTRAP_FILE, URL, r"https://git.example/x\nevil.git"),
    "a record with a password": replaced(BOOTSTRAP_FILE, "https://", "https://user:password@"),
    "a record whose branch is an option": replaced(BOOTSTRAP_FILE, 'branch: "main"', 'branch: "--exec=id"'),
    "a record whose branch is a command": replaced(BOOTSTRAP_FILE, 'branch: "main"', 'branch: "$(id)"'),
    "a record whose shapes are a mapping": replaced(BOOTSTRAP_FILE, "shapes: []", "shapes: {train-job: 1}"),
    "a record of many levels": put(BOOTSTRAP_FILE, b"[" * 5000),
    "a record of an object": put(BOOTSTRAP_FILE, b"!!python/object/apply:os.getcwd []\n"),
    "a base that is no mapping": put("base/platform/team/v1/collector.yaml", b"[]\n"),
    "a base of many levels": put("base/platform/team/v1/namespace.yaml", b"[" * 5000),
}
TAKEN: dict[str, Edit] = {
    "the record claims a team's own file": listed(OWN_FILE),
    "the record claims a file outside": listed("../outside/file"),
    "the record claims a file outside of its folder": listed("clusters/../../outside/file"),
    "the record claims a spec": listed("sweeps/precious.yaml"),
    "the record claims git's own files": listed(".git/precious"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Return a repository with a platform, made by an earlier version, and files that no upgrade may touch."""
    folder = tmp_path_factory.mktemp("upgraded")
    sandbox = Sandbox.create(folder)
    sandbox.write("sweepledger.yaml", SETTINGS + MONITORING)
    bootstrap(sandbox.workspace, BootstrapRequest(Controller.FLUX, URL, "main"))
    sandbox.write(DEFAULT_HOST.pin_file, "sweepledger==0.0.1\n")
    for path in (OWN_FILE, "sweeps/precious.yaml", "../outside/file"):
        put(path, PRECIOUS)(sandbox.root)
    sandbox.publish("Bootstrap")
    return sandbox


@pytest.fixture
def trapped(built: Sandbox) -> Sandbox:
    built.git("reset", "-q", "--hard", "origin/main")
    built.git("clean", "-q", "-ffdx")
    put(".git/precious", PRECIOUS)(built.root)
    return built


def is_untouched(sandbox: Sandbox) -> bool:
    places = (OWN_FILE, "sweeps/precious.yaml", ".git/precious", "../outside/file")
    outside = [path.name for path in (sandbox.root.parent / "outside").iterdir()]
    return outside == ["file"] and all((sandbox.root / path).read_bytes() == PRECIOUS for path in places)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trap", REFUSED)
def test_a_trap_ends_an_upgrade_with_a_sentence(trap: str, trapped: Sandbox) -> None:
    REFUSED[trap](trapped.root)
    before = trapped.git("status", "--porcelain", "--untracked-files=all")

    for check in (True, False):
        with pytest.raises(GeneratorError):
            upgrade_files(trapped.workspace, check=check)

    assert trapped.git("status", "--porcelain", "--untracked-files=all") == before
    if not (trapped.root / "clusters").is_symlink():
        assert is_untouched(trapped)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("trap", TAKEN)
def test_an_upgrade_removes_only_what_it_wrote(trap: str, trapped: Sandbox) -> None:
    TAKEN[trap](trapped.root)

    upgraded = upgrade_files(trapped.workspace)

    assert set(upgraded.written) == {DEFAULT_HOST.pin_file, BOOTSTRAP_FILE}
    assert is_untouched(trapped)


def test_a_trap_that_is_merged_gets_no_branch(trapped: Sandbox) -> None:
    start = trapped.git("rev-parse", "HEAD").strip()
    linked("clusters/platform", "outside")(trapped.root)
    trapped.commit("Lay a trap")
    trapped.git("push", "-q", "origin", "HEAD:main")

    with pytest.raises(GeneratorError):
        propose_upgrade(trapped.workspace)
    trapped.git("push", "-q", "--force", "origin", f"{start}:main")

    assert is_untouched(trapped)
    assert "upgrade" not in trapped.git("ls-remote", "origin")
