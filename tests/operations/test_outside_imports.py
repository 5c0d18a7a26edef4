"""No trial imports from the work tree: what would is named before anything runs, or the locked copy comes first."""

import json
import subprocess
import sys
import venv
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, SpecError
from sweepledger.formats import yaml
from sweepledger.operations.cluster_local import Options, RefusedBatch, local
from sweepledger.operations.reports.reproduction import run_again
from sweepledger.repo import batches
from sweepledger.structs.program import EnvironmentLock
from sweepledger.structs.record import Environment
from sweepledger.structs.values import bytes_digest
from sweepledger.verbs.show import trial_details
from sweepledger.verbs.try_ import try_trial
from tests.builders import present
from tests.repository import TRAIN, Sandbox

PACKAGE = f"import sys\nfrom fitting import peak\nprint(peak.__file__)\n{TRAIN}"
BUILD = {
    "hatchling": '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n',
    "setuptools": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n',
}
PROJECT = '[project]\nname = "fitting"\nversion = "1"\n'
FLAT = '[tool.setuptools]\npackages = ["fitting"]\n'


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The Python of a virtual environment that has no packages yet."""
    venv.create(tmp_path / "venv", symlinks=True)
    return str(tmp_path / "venv/bin/python")


def link(python: str, folder: Path) -> None:
    """Install a folder as `pip install -e` does it for most packages: by a file of paths."""
    (packages,) = Path(python).parent.parent.glob("lib/python*/site-packages")
    (packages / "__editable__.fitting.pth").write_text(f"{folder}\n")


def package(sandbox: Sandbox, folder: str) -> None:
    """Commit a package of two modules, and a script that imports it."""
    prefix = "" if folder == "." else f"{folder}/"
    sandbox.write(f"{prefix}fitting/__init__.py", "")
    sandbox.write(f"{prefix}fitting/peak.py", "import fitting")
    sandbox.publish("A package", {f"{prefix}fitting/train.py": PACKAGE, "scripts/train.py": PACKAGE})


def write(sandbox: Sandbox, command: list[str], code: str) -> Path:
    text = f"{{code: {code}, resources: {{cpu: 1, memory: 256Mi}}, timeout: 1m}}"
    parameters = {"x": {"values": [2]}}
    return sandbox.write_spec(
        "fit", parameters=parameters, command=[*command, "${args}"], run=yaml.load(text)
    )


def ask(sandbox: Sandbox, command: list[str], code: str) -> None:
    write(sandbox, command, code)
    sandbox.publish_batches("Ask")


def run(sandbox: Sandbox) -> tuple[list[str], str]:
    """Run the branch beside the user's work tree; return the messages of refusals, and the output of the trials."""
    state = sandbox.root / ".sweepledger"
    state.mkdir(exist_ok=True)
    options = Options(str(sandbox.remote), "main", state, once=True, workspace=sandbox.workspace)
    refused: list[RefusedBatch] = []
    with suppress(SpecError):
        for event in local(options):
            refused += [event] if isinstance(event, RefusedBatch) else []
    outputs = sorted(path.read_text() for path in (state / "results").rglob("stdout*"))
    return [str(problem.message) for event in refused for problem in event.problems], "".join(outputs)


def recorded(sandbox: Sandbox) -> list[str]:
    (records,) = sandbox.root.glob("results/fit/records/*.jsonl")
    lines = map(json.loads, records.read_text().splitlines())
    return [line["status"] for line in lines if "status" in line]


def test_an_edited_outside_module_is_named_first(sandbox: Sandbox, python: str) -> None:
    sandbox.write("common/__init__.py", "")
    sandbox.commit("Beside", {"common/loss.py": "", "code/train.py": f"import common.loss\n{TRAIN}"})
    link(python, sandbox.root)
    ask(sandbox, [python, "code/train.py"], "{path: code}")
    sandbox.write("common/loss.py", "edited = True")

    refused, _ = run(sandbox)

    message = (
        "code/train.py:1 imports common, which the code lacks: it would come from common of the work tree, "
    )
    assert refused == [f"{message}which has uncommitted changes (common/loss.py)"]
    (warning,) = try_trial(sandbox.workspace, "fit", 0, quiet=True).warnings
    assert warning.code == "import-outside-code"


def test_of_an_editable_install_the_locked_copy_runs(sandbox: Sandbox, python: str) -> None:
    package(sandbox, "src")
    link(python, sandbox.root / "src")
    ask(sandbox, [python, "-m", "fitting.train"], "{path: [src, scripts]}")
    sandbox.write("src/fitting/peak.py", "raise SystemExit('the work tree ran')")

    refused, _ = run(sandbox)

    assert refused == []
    sandbox.pull()
    assert recorded(sandbox) == ["ok"]
    trial = sandbox.batches()[0].trials[0].id
    assert run_again(sandbox.workspace, trial).is_equal


@pytest.mark.full_suite("real editable installs")
def test_a_package_in_an_environment_inside_the_work_tree_is_installed(sandbox: Sandbox) -> None:
    venv.create(sandbox.root / ".venv", symlinks=True)
    sandbox.write(".gitignore", ".sweepledger/\n.venv/\n")
    (packages,) = sandbox.root.glob(".venv/lib/python*/site-packages")
    (packages / "lib1.py").write_text("")
    sandbox.commit("Import", {"code/train.py": f"import lib1\n{TRAIN}"})
    ask(sandbox, [str(sandbox.root / ".venv/bin/python"), "code/train.py"], "{path: code}")

    assert run(sandbox)[0] == []


def install(python: str, name: str, version: str) -> None:
    """Install the metadata of a package, in place of another version."""
    (packages,) = Path(python).parent.parent.glob("lib/python*/site-packages")
    for former in packages.glob(f"{name}-*.dist-info/METADATA"):
        former.unlink()
        former.parent.rmdir()
    folder = packages / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_an_upgraded_package_is_named_first(sandbox: Sandbox, python: str) -> None:
    lock = "solver==1.0 --hash=sha256:00\n"
    sandbox.commit("Lock the environment", {"requirements.txt": lock})
    install(python, "solver", "2.0")
    code = "{path: [code, requirements.txt]}, environment_lock: requirements.txt"
    ask(sandbox, [python, "code/train.py"], code)

    refused, _ = run(sandbox)

    assert refused == [
        f"{python} does not have the packages of requirements.txt: solver is 2.0, and 1.0 is locked"
    ]
    install(python, "solver", "1.0")
    assert run(sandbox)[0] == []
    sandbox.pull()
    assert recorded(sandbox) == ["ok"]
    trial = sandbox.batches()[0].trials[0].id
    details = trial_details(sandbox.workspace, trial)
    assert present(details.last).environment == Environment("lock", bytes_digest(lock.encode()))
    assert details.listed.batch.lock.program.environment == EnvironmentLock(
        "requirements.txt", bytes_digest(lock.encode())
    )
    assert not run_again(sandbox.workspace, trial).has_other_environment
    install(python, "solver", "1.5")
    assert run_again(sandbox.workspace, trial).environment_differences == (
        "solver is 1.5, and 1.0 is locked",
    )


def test_another_lock_file_makes_other_trials_and_none_keeps_them(sandbox: Sandbox) -> None:
    sandbox.commit("Lock the environment", {"code/requirements.txt": "solver==1.0 --hash=sha256:00\n"})
    ask(sandbox, ["python", "code/train.py"], "{path: code}")
    (without,) = sandbox.batches()
    ask(sandbox, ["python", "code/train.py"], "{path: code}, environment_lock: code/requirements.txt")
    former, locked = batches.of_sweep(sandbox.batches(), "fit")

    assert former.lock.program == without.lock.program
    assert without.lock.program.environment is None
    assert {trial.id for trial in former.trials}.isdisjoint(trial.id for trial in locked.trials)


def test_a_lock_file_that_does_not_pin_is_refused_when_it_is_locked(sandbox: Sandbox) -> None:
    sandbox.commit("No lock", {"code/requirements.txt": "solver>=1.0\n"})

    with pytest.raises(RepositoryError, match="must pin every package by == and --hash"):
        ask(sandbox, ["python", "code/train.py"], "{path: code}, environment_lock: code/requirements.txt")


@pytest.mark.full_suite("real editable installs")
@pytest.mark.parametrize(
    ("backend", "folder", "settings"),
    [("hatchling", "src", ""), ("setuptools", ".", FLAT)],
    ids=["a file of paths", "a finder"],
)
def test_locked_copy_runs(sandbox: Sandbox, python: str, backend: str, folder: str, settings: str) -> None:
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    package(sandbox, folder)
    sandbox.write("pyproject.toml", BUILD[backend] + PROJECT + settings)
    sandbox.commit("A project", {".gitignore": "*.egg-info/\nbuild/\n.sweepledger/\n"})
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    prefix = str(Path(python).parent.parent)
    subprocess.run([*pip, "--prefix", prefix, "-e", str(sandbox.root)], check=True, capture_output=True)
    ask(sandbox, [python, "scripts/train.py"], "{path: .}")
    sandbox.write(f"{folder}/fitting/peak.py", "raise SystemExit('the work tree ran')")

    refused, _ = run(sandbox)

    assert refused == []
    sandbox.pull()
    assert recorded(sandbox) == ["ok"]
