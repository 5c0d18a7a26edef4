"""A push of the collector has a folder that git itself would not write: two files of one name, or no order."""

import subprocess
from collections.abc import Callable

import pytest

from tests.operations.test_bootstrap import bootstrapped, guarded, push
from tests.operations.test_pushed_rounds import pristine, searching
from tests.repository import Sandbox

__all__ = ["bootstrapped", "guarded", "pristine", "searching"]  # fixtures

Entry = tuple[str, str, str]
"""Mode, name and id."""
Edit = Callable[[list[Entry]], list[Entry]]


def stored(sandbox: Sandbox, kind: str, content: bytes) -> str:
    """Write an object as it is, however malformed; return its id."""
    command = ["git", "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    done = subprocess.run(command, cwd=sandbox.root, input=content, check=True, capture_output=True)
    return done.stdout.decode().strip()


def tree(sandbox: Sandbox, entries: list[Entry]) -> str:
    content = (
        f"{mode} {name}".encode() + b"\0" + bytes.fromhex(identity) for mode, name, identity in entries
    )
    return stored(sandbox, "tree", b"".join(content))


def entries(sandbox: Sandbox, identity: str) -> list[Entry]:
    lines = (line.split("\t") for line in sandbox.git("ls-tree", identity).splitlines())
    return [(meta.split()[0].lstrip("0"), name, meta.split()[2]) for meta, name in lines]


def edited(sandbox: Sandbox, identity: str, folder: str, edit: Edit) -> str:
    """Return a tree with another list of entries in one folder."""
    listed = entries(sandbox, identity)
    if not folder:
        return tree(sandbox, edit(listed))
    first, _, rest = folder.partition("/")
    return tree(
        sandbox,
        [
            (mode, name, edited(sandbox, one, rest, edit) if name == first else one)
            for mode, name, one in listed
        ],
    )


def pushed(sandbox: Sandbox, folder: str, edit: Edit) -> str:
    """Push the last commit with a folder that is made otherwise; return what the server says."""
    made = edited(sandbox, sandbox.git("rev-parse", "HEAD^{tree}").strip(), folder, edit)
    parent = sandbox.git("rev-parse", "origin/main").strip()
    commit = sandbox.git("commit-tree", made, "-p", parent, "-m", "Results").strip()
    return push(sandbox, f"{commit}:refs/heads/main")


def beside(name: str, other: str, *, first: bool) -> Edit:
    """Put another file of the same name before or after one."""

    def edit(listed: list[Entry]) -> list[Entry]:
        at = [entry[1] for entry in listed].index(name)
        twin = (listed[at][0], name, other)
        return [*listed[:at], *((twin, listed[at]) if first else (listed[at], twin)), *listed[at + 1 :]]

    return edit


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("file", ["launch.json", "job.yaml", "kustomization.yaml", "hyperparams.csv"])
def test_a_round_has_no_second_file_of_one_name(file: str, first: bool, searching: Sandbox) -> None:  # noqa: FBT001
    (batch,) = searching.active()
    folder = f"overlays/active/{batch}"
    honest = searching.git("show", f"HEAD:{folder}/{file}")
    other = stored(searching, "blob", honest.replace("code/train.py", "/sweep/results/evil.py").encode())

    refusal = pushed(searching, folder, beside(file, other, first=first))

    assert f"{folder} is a folder that git would not write" in refusal


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["results", "overlays", "code"])
def test_there_is_no_second_folder_of_one_name(name: str, guarded: Sandbox) -> None:
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})
    evil = tree(guarded, [("100644", "evil.py", stored(guarded, "blob", b"evil\n"))])

    refusal = pushed(guarded, "", beside(name, evil, first=False))

    assert "is a folder that git would not write" in refusal


DISORDERED: dict[str, Edit] = {
    "backwards": lambda listed: listed[::-1],
    "a file and a folder of one name": lambda listed: [
        *listed,
        ("40000", listed[-1][1], "4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
    ],
    "modes with zeros": lambda listed: [(f"0{mode}", name, one) for mode, name, one in listed],
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("disorder", DISORDERED)
def test_names_are_in_order(disorder: str, guarded: Sandbox) -> None:
    guarded.commit("Results", {"results/peak/README.md": "# peak\n", "results/peak/summary.csv": "trial\n"})
    tree(guarded, [])  # the empty folder

    assert "git would not write" in pushed(guarded, "results/peak", DISORDERED[disorder])
    assert pushed(guarded, "results/peak", list) == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("merge", ["octopus", "one parent twice", "of a branch without code"])
def test_no_merge_brings_what_no_commit_may(merge: str, guarded: Sandbox) -> None:
    parent = guarded.git("rev-parse", "origin/main").strip()
    plain = guarded.git("rev-parse", "HEAD^{tree}").strip()
    guarded.write("code/train.py", "evil\n")
    guarded.git("add", "--all")
    evil = guarded.git("write-tree").strip()
    other = guarded.git("commit-tree", evil, "-p", parent, "-m", "x").strip()
    side = guarded.git("commit-tree", plain, "-p", parent, "-m", "y").strip()
    made, parents = {
        "octopus": (plain, [parent, other, side]),
        "one parent twice": (evil, [parent, parent]),
        "of a branch without code": (evil, [parent, side]),
    }[merge]
    lines = [f"tree {made}", *(f"parent {one}" for one in parents)]
    lines += [f"{role} a <a@example.org> 4102444800 +0000" for role in ("author", "committer")]
    commit = stored(guarded, "commit", "\n".join([*lines, "encoding UTF-7", "", "x"]).encode())

    assert "may push nothing but results" in push(guarded, f"{commit}:refs/heads/main")
