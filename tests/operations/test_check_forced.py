"""What somebody merged past `sweep check`: it stops no other change, and its way out passes."""

import pytest

from sweepledger.problems import Severity
from tests.repository import Sandbox, followed_by, replace_in

pytestmark = pytest.mark.usefixtures("needs_kustomize")

STRAY = [
    "overlays/active/Not_A_Name/kustomization.yaml",
    "overlays/active/stray.yaml",
    "overlays/archive/Not_A_Name/file",
]


def check_problems(sandbox: Sandbox) -> set[tuple[str, str, Severity]]:
    problems = sandbox.check(base="origin/main").problems
    return {(problem.file, problem.code, problem.severity) for problem in problems}


def errors(sandbox: Sandbox) -> set[str]:
    return {code for _, code, severity in check_problems(sandbox) if severity is Severity.ERROR}


def place(path: str) -> str:
    return "/".join(path.split("/")[:3])


def by_force(sandbox: Sandbox, message: str = "Merge by force") -> None:
    sandbox.publish(message)


def test_strays_that_stand_already_are_warnings_to_changes_of_something_else(sandbox: Sandbox) -> None:
    sandbox.merged()
    for path in STRAY:
        sandbox.write(path, "x")
    by_force(sandbox)

    sandbox.commit("Note", {"notes.md": "x"})
    assert check_problems(sandbox) == {(place(path), "overlay-layout", Severity.WARNING) for path in STRAY}

    sandbox.spec("other")
    sandbox.commit("Ask, and generate nothing")
    assert errors(sandbox) == {"drift"}


@pytest.mark.parametrize("more", [STRAY[0], "overlays/active/Not_A_Name/another.yaml"], ids=["edit", "add"])
def test_a_change_of_what_is_no_batch_is_refused(sandbox: Sandbox, more: str) -> None:
    sandbox.merged()
    sandbox.write(STRAY[0], "x")
    by_force(sandbox)

    sandbox.write(more, "more")
    assert errors(sandbox) == {"overlay-layout"}

    sandbox.commit("More of it")
    assert errors(sandbox) == {"overlay-layout"}


def broken(sandbox: Sandbox) -> str:
    """Merge a sweep, then by force a lock that nobody can read; give its path."""
    path = f"overlays/active/{sandbox.merged()}/batch.json"
    lock = sandbox.root / path
    lock.write_text(f"<<<<<<< HEAD\n{lock.read_text()}")
    by_force(sandbox)
    return path


def test_a_broken_batch_stops_no_other_change(sandbox: Sandbox) -> None:
    path = broken(sandbox)
    sandbox.spec("other", "4, 5")
    sandbox.generate("other")
    sandbox.commit("Ask for another sweep")

    assert errors(sandbox) == set()
    assert {(file, code) for file, code, _ in check_problems(sandbox)} == {(path, "batch-unreadable")}


def test_a_broken_batch_may_be_made_again_what_git_once_had_and_nothing_else(sandbox: Sandbox) -> None:
    path = broken(sandbox)
    sandbox.git("checkout", "-q", "HEAD~1", "--", path)
    sandbox.commit("Restore it")
    assert check_problems(sandbox) == set()

    replace_in((sandbox.root / path).with_name("job.yaml"), "parallelism: 2", "parallelism: 3")
    sandbox.commit("Ask for more")

    assert "batch-edited" in errors(sandbox)


def test_a_broken_batch_may_be_removed_and_a_sound_one_may_not(sandbox: Sandbox) -> None:
    sound = sandbox.merged("other")
    path = broken(sandbox)
    sandbox.git("rm", "-r", "-q", place(path), "sweeps/peak.yaml")
    sandbox.commit("Remove what is broken")
    assert errors(sandbox) == set()

    sandbox.git("rm", "-r", "-q", f"overlays/active/{sound}")
    sandbox.commit("Remove what is not")

    assert "batch-vanished" in errors(sandbox)


def test_a_stray_file_of_flux_is_refused_only_in_the_change_with_it(sandbox: Sandbox) -> None:
    sandbox.publish("Flux", {"sweepledger.yaml": followed_by("flux")})
    sandbox.merged()
    path = "clusters/flux/active/rogue.yaml"
    sandbox.commit("Bring it", {path: "kind: Kustomization\n"})
    assert check_problems(sandbox) == {(path, "drift", Severity.ERROR)}
    sandbox.push()

    sandbox.spec("other")
    sandbox.commit_batches("Ask for another")

    assert check_problems(sandbox) == {(path, "drift", Severity.WARNING)}
    sandbox.git("rm", "-q", path)
    sandbox.commit("Take it away")
    assert check_problems(sandbox) == set()
