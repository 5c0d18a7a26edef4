"""`sweep site`: what a folder contains after it, and what is computed again."""

import json
from pathlib import Path

import pytest

from sweepledger.errors import StorageError, UsageError
from sweepledger.repo import files
from sweepledger.structs.file_tree import FileTree
from sweepledger.verbs.site import build_site
from tests.operations.test_compare import recorded as recorded_scores
from tests.operations.test_explain import record_again
from tests.operations.test_ranking import record
from tests.repository import TRAIN, Sandbox, replace_in
from tests.searches import leave


def recorded(sandbox: Sandbox, tmp_path: Path, name: str = "peak", xs: str = "1, 2, 3") -> None:
    merged = sandbox.merged(name, xs)
    results = tmp_path / "results"
    leave(results, sandbox.batch(merged))
    sandbox.collect(results, {merged}, push=False)


def built(sandbox: Sandbox, out: Path) -> FileTree:
    build_site(sandbox.workspace, out)
    return files.read_folder(out)


def test_only_the_pages_of_a_sweep_that_changed_are_computed_again(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path)
    recorded(sandbox, tmp_path, "other", "4, 5")
    made = build_site(sandbox.workspace, tmp_path / "out")
    before = files.read_folder(tmp_path / "out")
    pages = ("data.json", "index.html", "trials.html")
    assert files.list_folder(tmp_path / "out") == (
        *("compare.html", "index.html", "site.json"),
        *(f"sweeps/{sweep}/{page}" for sweep in ("other", "peak") for page in pages),
    )
    assert (made.rebuilt, made.unreadable, made.files["written"]) == (("other", "peak"), (), 9)
    assert build_site(sandbox.workspace, tmp_path / "out").rebuilt == ()

    sandbox.spec("other", "4, 5, 6")
    sandbox.commit("Ask for more")
    again = build_site(sandbox.workspace, tmp_path / "out")

    after = files.read_folder(tmp_path / "out")
    assert again.rebuilt == ("other",)
    assert after["sweeps/peak/index.html"] == before["sweeps/peak/index.html"]
    assert b"Ask for more" in after["index.html"]
    assert after == built(sandbox, tmp_path / "fresh")  # as if it had never been built before


@pytest.mark.parametrize("paths", [("sweeps/peak/index.html",), ("site.json", "sweeps/peak/index.html")])
def test_a_page_that_this_clone_did_not_write_is_computed_again(
    sandbox: Sandbox, tmp_path: Path, paths: tuple[str, ...]
) -> None:
    recorded(sandbox, tmp_path)
    before = built(sandbox, tmp_path / "out")
    for path in paths:
        replace_in(tmp_path / "out" / path, "peak", "pear")

    assert built(sandbox, tmp_path / "out") == before


def test_an_earlier_commit_is_shown_as_it_was(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path)
    then = sandbox.head()
    before = built(sandbox, tmp_path / "out")
    recorded(sandbox, tmp_path, "other", "4, 5")
    build_site(sandbox.workspace, tmp_path / "out")

    made = build_site(sandbox.workspace, tmp_path / "out", then)

    assert made.files["removed"] == 3  # the pages of a sweep that did not exist then
    assert files.read_folder(tmp_path / "out") == before


def test_a_site_is_built_of_a_commit_in_a_folder_of_its_own(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").write_text("years")

    with pytest.raises(StorageError, match=r"has files, but no site\.json"):
        build_site(sandbox.workspace, tmp_path / "out")
    with pytest.raises(StorageError, match="git's own folder"):
        build_site(sandbox.workspace, sandbox.root / ".git/site")
    with pytest.raises(UsageError, match="'nowhere' is not a commit"):
        build_site(sandbox.workspace, tmp_path / "new", "nowhere")

    assert files.list_folder(tmp_path / "out") == ("thesis.tex",)


def test_unreadable_results_are_named(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path)
    recorded(sandbox, tmp_path, "other", "4, 5")
    (records,) = (sandbox.root / "results/other/records").iterdir()
    records.write_text("no record\n")
    sandbox.commit("Break a file")

    made = build_site(sandbox.workspace, tmp_path / "out")

    assert [line.partition(":")[0] for line in made.unreadable] == ["other"]
    tree = files.read_folder(tmp_path / "out")
    assert b"cannot be read" in tree["sweeps/other/index.html"]
    assert b"trial by trial" in tree["sweeps/peak/index.html"]


def test_the_page_of_a_sweep_shows_what_its_code_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded_scores(sandbox, tmp_path / "v", "peak", {x: x / 10 for x in range(1, 7)})
    sandbox.commit("Better code", {"code/train.py": "# better\n"})
    record_again(sandbox, tmp_path / "v", "peak", 0.05)

    tree = built(sandbox, tmp_path / "out")

    data = json.loads(tree["sweeps/peak/data.json"])
    assert data["versions"][1]["files"][0][0] == "code/train.py"
    assert [len(batches) for _, _, batches in data["results"]] == [1, 1]
    assert data["moves"][0]["verdict"] == "code"
    assert b"+# better" in tree["sweeps/peak/trials.html"]


@pytest.fixture
def changed(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """Two programs with results; HEAD has the code of the second."""
    sandbox.merged()
    record(sandbox, tmp_path / "results", 5.0, 2.0, None)
    sandbox.git("reset", "-q", "--hard")
    sandbox.commit("Change the code", {"code/train.py": TRAIN + "# another program\n"})
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask for all of them again")
    record(sandbox, tmp_path / "results", 9.0, 7.0, 8.0)
    sandbox.git("reset", "-q", "--hard")
    return sandbox


def best_and_page(sandbox: Sandbox, out: Path) -> tuple[str, str]:
    tree = built(sandbox, out)
    best = json.loads(tree["site.json"])["sweeps"]["peak"]["card"]["best"]
    return best, tree["sweeps/peak/index.html"].decode()


def test_the_program_of_the_commit_is_ranked_and_named(changed: Sandbox, tmp_path: Path) -> None:
    best, page = best_and_page(changed, tmp_path / "out")

    assert best == "9"
    assert "Ranked are the trials of this commit&#39;s: code code@" in page
    assert 'id="failures"' not in page  # that of the other program is no news
    columns = json.loads((tmp_path / "out/sweeps/peak/data.json").read_text())["columns"]
    (column,) = [one for one in columns if one["key"] == "program"]
    assert column["values"] == [0, 0, 0, 1, 1, 1]

    changed.commit("Take it back", {"code/train.py": TRAIN})
    best, page = best_and_page(changed, tmp_path / "out")

    assert best == "5"
    assert 'id="failures"' in page
    assert build_site(changed.workspace, tmp_path / "out").rebuilt == ()

    changed.commit("Change it once more", {"code/train.py": TRAIN + "# a third program\n"})
    best, page = best_and_page(changed, tmp_path / "out")

    assert best == "9"
    assert "Ranked are the trials of the newest recorded: code code@" in page


def test_doubts_are_on_the_page(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    record(sandbox, tmp_path / "results", 0.25, 0.25, 0.25)
    sandbox.git("reset", "-q", "--hard")

    assert "report the same score, whatever their values" in best_and_page(sandbox, tmp_path / "out")[1]


def test_a_repository_without_sweeps_has_a_site(sandbox: Sandbox, tmp_path: Path) -> None:
    assert b"No sweep has been committed yet" in built(sandbox, tmp_path / "out")["index.html"]
