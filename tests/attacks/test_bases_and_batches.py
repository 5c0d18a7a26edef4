"""A base is edited in the same change that uses it: what runs stands beside what a reviewer looks at."""

from pathlib import Path

import pytest

from sweepledger.repo.files import base_folder
from tests.repository import Sandbox

MANY = ", ".join(map(str, range(30)))
LAUNCHER, JOB = "base/launcher/v1/launch.py", "base/trial/v1/job.yaml"
EVIL = ("import ", "import os as _evil\nimport ")
KUSTOMIZATION = "base/trial/v1/kustomization.yaml"


def problems(sandbox: Sandbox) -> set[tuple[str, str]]:
    return set(sandbox.problems(base="origin/main"))


def edit(sandbox: Sandbox, path: str, old: str, new: str) -> None:
    file = sandbox.root / path
    if not file.exists():  # before the first batch of a shape, its base is written as the generator has it
        file.parent.mkdir(parents=True, exist_ok=True)
        for source in (base_folder() / Path(path).parent.relative_to("base")).glob("*.*"):
            (file.parent / source.name).write_bytes(source.read_bytes())
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def ask(sandbox: Sandbox, values: str = MANY) -> None:
    sandbox.spec(xs=values)
    sandbox.commit_batches("Ask for a sweep")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("path", "old", "new", "values"),
    [
        (LAUNCHER, *EVIL, "1, 2"),
        (LAUNCHER, *EVIL, MANY),
        (JOB, "runAsNonRoot: true", "runAsNonRoot: true # still", MANY),
        (JOB, "privileged: false", "privileged: true", MANY),
        (JOB, "drop: [ALL]", "drop: []", MANY),
        (JOB, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", MANY),
        (JOB, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", MANY),
        (KUSTOMIZATION, "kind:", "# a remark\nkind:", MANY),
        (KUSTOMIZATION, "kind:", "namePrefix: evil-\nkind:", MANY),
        ("base/jobs/v1/job.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "1, 2"),
        ("base/jobs/v1/job.yaml", "drop: [ALL]", "drop: []", "1, 2"),
    ],
)
def test_a_base_is_not_edited_and_used(sandbox: Sandbox, path: str, old: str, new: str, values: str) -> None:
    edit(sandbox, path, old, new)
    ask(sandbox, values)

    assert (path, "base-with-batch") in problems(sandbox)


BESIDE: dict[str, tuple[str, bytes]] = {
    "other line ends": (LAUNCHER, b"\r\n"),
    "a byte order mark": (LAUNCHER, b"\xef\xbb\xbf"),
    "a module that Python finds first": ("base/launcher/v1/json.py", b"import os\n"),
    "an empty file": ("base/launcher/v1/__init__.py", b""),
    "a second kustomization": ("base/trial/v1/kustomization.yml", b"kind: Kustomization\n"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", BESIDE)
def test_nothing_is_put_beside_a_base_that_comes_with_its_first_batch(name: str, sandbox: Sandbox) -> None:
    path, content = BESIDE[name]
    sandbox.propose(xs=MANY)
    file = sandbox.root / path
    if path == LAUNCHER:
        text = file.read_bytes()
        content = text.replace(b"\n", content) if content.isspace() else content + text
    file.write_bytes(content)
    sandbox.commit("Ask for a sweep")

    assert (path, "base-with-batch") in problems(sandbox)


@pytest.mark.parametrize("history", ["a commit in between", "a revert of a revert", "an octopus"])
def test_no_history_hides_the_edit_of_a_base(history: str, sandbox: Sandbox) -> None:
    sandbox.name_person()
    start = sandbox.head()
    edit(sandbox, LAUNCHER, *EVIL)
    evil = sandbox.commit("Tidy up")
    if history == "an octopus":
        sides = []
        for name in ("one", "two"):
            sandbox.git("reset", "-q", "--hard", start)
            sides.append(sandbox.commit(name, {f"docs/{name}.md": "x\n"}))
        sandbox.git("merge", "-q", "--no-edit", evil, sides[0])
    elif history == "a revert of a revert":
        sandbox.git("revert", "--no-edit", "HEAD")
        sandbox.git("revert", "--no-edit", "HEAD")
    ask(sandbox)

    assert problems(sandbox) == {(LAUNCHER, "base-with-batch")}


def test_bases_that_were_merged_or_are_the_generators_own_are_used(sandbox: Sandbox) -> None:
    edit(sandbox, LAUNCHER, *EVIL)
    sandbox.publish("A change of the launcher, which was reviewed")
    ask(sandbox)

    assert JOB in sandbox.git("diff", "--name-only", "origin/main", "HEAD")
    assert problems(sandbox) == set()


def test_a_base_that_the_batch_does_not_use_may_come_with_it(sandbox: Sandbox) -> None:
    sandbox.write("base/trial/v9/job.yaml", "apiVersion: batch/v1\nkind: Job\n")
    ask(sandbox)

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
def test_a_merged_overlay_is_built_once_the_base_comes_that_it_waits_for(text: str, sandbox: Sandbox) -> None:
    other, batch = sandbox.merged("other"), sandbox.merged()
    file = sandbox.root / "overlays/active" / batch / "kustomization.yaml"
    file.write_text(f"resources:\n{text}\n")
    sandbox.publish("Merged despite the check")
    sandbox.commit("Add a base", {"base/components/late/v1/kustomization.yaml": "kind: Component\n"})

    builds = sandbox.check(base="origin/main")

    assert builds.unchanged == (other,)
    assert builds.problems
