"""Whole overlays, byte for byte. They change only by `--update-golden`, and the diff is read."""

import shutil
from pathlib import Path

import pytest

from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.repo import batches, files, kustomize
from sweepledger.structs.file_tree import Drift, FileTree
from tests.repository import Sandbox

CASES = sorted(path for path in (Path(__file__).parent / "cases").iterdir() if path.is_dir())

SETTINGS = """version: 1
namespace: research
results: {claim: shared-results}
datasets:
  digits: {claim: digits, digest: 'sha256:b00e3dc725c4d1171d43ad345fc2252d1377997a70e21392eef9a7c486c6caf4'}
"""


def generated(sandbox: Sandbox, case: Path) -> FileTree:
    own = case / "sweepledger.yaml"
    sandbox.write("sweepledger.yaml", own.read_text() if own.exists() else SETTINGS)
    sandbox.write("code/train.py", "print('the same code for ever')\n")
    sandbox.write("base/launcher/v1/launch.py", "# stands for the launcher, which has tests of its own\n")
    shutil.copytree(case / "sweeps", sandbox.root / "sweeps")
    sandbox.commit("Set the scene")
    generate(sandbox.workspace)
    (stored,) = batches.in_work_tree(sandbox.root)
    return FileTree({f"{stored.name}/{path}": content for path, content in stored.tree})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_overlay_is_what_it_was(case: Path, sandbox: Sandbox, request: pytest.FixtureRequest) -> None:
    tree = generated(sandbox, case)
    expected = case / "expected"
    if request.config.getoption("--update-golden"):
        shutil.rmtree(expected, ignore_errors=True)
        files.write_folder(expected, tree)

    assert files.difference(files.read_folder(expected), tree) == Drift()


def test_there_is_no_case_without_a_reason() -> None:
    assert CASES
    for case in CASES:
        assert (case / "README.md").read_text().strip()
        assert len(list((case / "expected").rglob("*"))) <= 10


def test_an_overlay_runs_the_launcher_of_the_base_byte_for_byte(sandbox: Sandbox) -> None:
    sandbox.spec()
    generate(sandbox.workspace)

    (stored,) = batches.in_work_tree(sandbox.root)
    manifests = kustomize.build(sandbox.root / stored.folder)
    (launcher,) = (item for item in manifests if item["metadata"]["name"] == f"{stored.name}-launcher")

    assert "launch.py" not in stored.contents.paths
    assert launcher["data"] == {
        **{path.name: path.read_text() for path in (sandbox.root / "base/launcher/v1").glob("*.py")},
        "launch.json": stored.contents.read("launch.json").decode(),
    }
