"""A base is edited in the same change that uses it: what runs stands beside what a reviewer looks at."""

from pathlib import Path

import pytest

from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.repo.files import base_folder
from sweepledger.verbs.check import check_change
from tests.repository import Sandbox

MANY = ", ".join(map(str, range(30)))


def problems(sandbox: Sandbox) -> set[tuple[str, str]]:
    return {(one.file, one.code) for one in check_change(sandbox.workspace, base="origin/main").problems}


def edited(sandbox: Sandbox, path: str, old: str, new: str) -> None:
    file = sandbox.root / path
    if not file.exists():  # before the first batch of a shape, its base is written as the generator has it
        file.parent.mkdir(parents=True, exist_ok=True)
        for source in (base_folder() / Path(path).parent.relative_to("base")).glob("*.*"):
            (file.parent / source.name).write_bytes(source.read_bytes())
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("path", "old", "new", "values"),
    [
        ("base/launcher/v1/launch.py", "import ", "import os as _evil\nimport ", "1, 2"),
        ("base/launcher/v1/launch.py", "import ", "import os as _evil\nimport ", MANY),
        ("base/trial/v1/job.yaml", "runAsNonRoot: true", "runAsNonRoot: true # still", MANY),
        ("base/trial/v1/job.yaml", "privileged: false", "privileged: true", MANY),
        ("base/trial/v1/job.yaml", "drop: [ALL]", "drop: []", MANY),
        ("base/trial/v1/job.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", MANY),
        ("base/trial/v1/job.yaml", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", MANY),
        ("base/trial/v1/kustomization.yaml", "kind:", "# a remark\nkind:", MANY),
        ("base/trial/v1/kustomization.yaml", "kind:", "namePrefix: evil-\nkind:", MANY),
        ("base/jobs/v1/job.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "1, 2"),
        ("base/jobs/v1/job.yaml", "drop: [ALL]", "drop: []", "1, 2"),
    ],
)
def test_a_base_is_not_edited_and_used(sandbox: Sandbox, path: str, old: str, new: str, values: str) -> None:
    edited(sandbox, path, old, new)
    sandbox.spec(xs=values)
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert (path, "base-with-batch") in problems(sandbox)


def test_the_commit_in_between_frees_nothing(sandbox: Sandbox) -> None:
    edited(sandbox, "base/launcher/v1/launch.py", "import ", "import os as _evil\nimport ")
    sandbox.commit("Tidy up")
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == {("base/launcher/v1/launch.py", "base-with-batch")}


LAUNCHER = "base/launcher/v1/launch.py"
BESIDE: dict[str, tuple[str, bytes]] = {
    "other line ends": (LAUNCHER, b"\r\n"),
    "a byte order mark": (LAUNCHER, b"\xef\xbb\xbf"),
    "a module that Python finds first": ("base/launcher/v1/json.py", b"import os\n"),
    "an empty file": ("base/launcher/v1/__init__.py", b""),
    "a second kustomization": ("base/trial/v1/kustomization.yml", b"kind: Kustomization\n"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", BESIDE)
def test_nothing_is_put_beside_a_base_that_comes_with_its_first_batch(what: str, sandbox: Sandbox) -> None:
    path, content = BESIDE[what]
    sandbox.spec(xs=MANY)
    generate(sandbox.workspace)
    file = sandbox.root / path
    if path == LAUNCHER:
        text = file.read_bytes()
        content = text.replace(b"\n", content) if content.isspace() else content + text
    file.write_bytes(content)
    sandbox.commit("Ask for a sweep")

    assert (path, "base-with-batch") in problems(sandbox)


@pytest.mark.parametrize("history", ["a revert of a revert", "an octopus"])
def test_no_history_hides_the_edit_of_a_base(history: str, sandbox: Sandbox) -> None:
    sandbox.name_person()
    start = sandbox.head()
    edited(sandbox, LAUNCHER, "import ", "import os as _evil\nimport ")
    evil = sandbox.commit("Tidy up")
    if history == "an octopus":
        sides = []
        for name in ("one", "two"):
            sandbox.git("reset", "-q", "--hard", start)
            sandbox.write(f"docs/{name}.md", "x\n")
            sides.append(sandbox.commit(name))
        sandbox.git("merge", "-q", "--no-edit", evil, sides[0])
    else:
        sandbox.git("revert", "--no-edit", "HEAD")
        sandbox.git("revert", "--no-edit", "HEAD")
    sandbox.spec(xs=MANY)
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == {(LAUNCHER, "base-with-batch")}


def test_a_base_that_was_merged_before_is_used(sandbox: Sandbox) -> None:
    edited(sandbox, "base/launcher/v1/launch.py", "import ", "import os as _reviewed\nimport ")
    sandbox.publish("A change of the launcher")
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == set()


def test_the_generators_own_bases_come_with_the_first_batch(sandbox: Sandbox) -> None:
    sandbox.spec(xs=MANY)
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert "base/trial/v1/job.yaml" in sandbox.git("diff", "--name-only", "origin/main", "HEAD")
    assert problems(sandbox) == set()


def test_a_base_that_the_batch_does_not_use_may_come_with_it(sandbox: Sandbox) -> None:
    sandbox.write("base/trial/v9/job.yaml", "apiVersion: batch/v1\nkind: Job\n")
    sandbox.spec(xs=MANY)
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert "base-with-batch" not in {code for _, code in problems(sandbox)}


KUSTOMIZATIONS = {
    "as it is": "- ../../../base/components/late/v1",
    "in quotes": '- "../../../base/components/late/v1"',
    "in a list of one line": "- ../../../base/trial/v1\ncomponents: [../../../base/components/late/v1]",
    "with an escaped letter": r'- "../../../base/components/\x6cate/v1"',
    "with a long escaped letter": r'- "../../../base/components/\U0000006cate/v1"',
    "with an escaped slash": r'- "../../../base/components\/late/v1"',
    "over two lines": '- "../../../base/components/la\\\n  te/v1"',
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", KUSTOMIZATIONS.values(), ids=KUSTOMIZATIONS)
def test_a_merged_overlay_that_waits_for_a_base_is_built_once_it_comes(text: str, sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    file = sandbox.root / "overlays/active" / batch / "kustomization.yaml"
    file.write_text(f"resources:\n{text}\n")
    sandbox.publish("Merged despite the check")
    sandbox.write("base/components/late/v1/kustomization.yaml", "kind: Component\n")
    sandbox.commit("Add a base")

    builds = check_change(sandbox.workspace, base="origin/main")

    assert batch not in builds.unchanged
    assert builds.problems


def test_a_base_that_no_overlay_waits_for_builds_none(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    sandbox.write("base/components/late/v1/kustomization.yaml", "kind: Component\n")
    sandbox.commit("Add a base")

    assert check_change(sandbox.workspace, base="origin/main").unchanged == (batch,)
