"""Patterns of selected code mean what git means by them; sweeps' own files are never code."""

import subprocess
from pathlib import Path

import pytest

from sweepledger.structs.program import SWEEP_NAMES, CodeSelection, PathPattern

FILES = (
    *("train.py", "notes.md", "src/app/main.py", "src/app/tests/test_main.py", "src/tests/data.csv"),
    *("data/big.csv", "configs/base.yaml", "configs/exp/a1.yaml", "configs/exp/b2.yaml", "a/b/c/d.txt"),
)
PATTERNS = (
    *("*.py", "/*.py", "data", "data/", "train.py/", "tests/", "/tests/", "src/tests"),
    *("src/*/tests/", "src/**/tests/", "**/tests", "src/**", "a/**/d.txt"),
    *("configs/exp/[a-c]?.yaml", "configs/exp/[!a]*.yaml", "**/*.csv", "a/*", "c", "exp/a1.yaml"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_git_ignores_by_it(tmp_path: Path, pattern: str) -> None:
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listing = ["git", "ls-files", "--others", "--ignored", "--exclude-standard"]
    ignored = subprocess.run(listing, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()

    excluded = CodeSelection((".",), exclude=(pattern,)).selector()
    included = CodeSelection((".",), include=(pattern,)).selector()

    assert sorted(file for file in FILES if not excluded(file)) == sorted(ignored)
    assert sorted(filter(included, FILES)) == sorted(ignored)


@pytest.mark.parametrize(
    "pattern",
    [
        *("!keep", "#x", "a\\*", "", "/", "a//b", "../a", "./a"),
        *(" a", "a[", "[^a]", "[[:alpha:]]", "a**b", "x" * 201),
    ],
)
def test_patterns_that_git_reads_differently_from_their_looks_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="must have"):
        PathPattern.parse(pattern)


def test_many_stars_take_no_time_to_fail() -> None:
    pattern = PathPattern.parse("/".join(["**", "*a*a*a*a*a*a*b"] * 10))

    assert not pattern.matches("/".join(["a" * 200] * 40), is_folder=False)


def test_files_of_sweeps_are_never_selected() -> None:
    is_selected = CodeSelection((".",)).selector()

    assert not any(is_selected(name) or is_selected(f"{name}/file") for name in SWEEP_NAMES)
    assert is_selected("src/results/model.py")


def test_a_selection_of_paths_has_what_is_in_them_and_no_more() -> None:
    is_selected = CodeSelection(("src", "train.py"), exclude=("tests/",)).selector()

    assert [path for path in FILES if is_selected(path)] == ["train.py", "src/app/main.py"]
    assert not is_selected("src2/main.py")
