import pytest

from sweepledger.problems import Problem
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.run_config import Resources, RunConfig


def test_a_tree_is_sorted_and_digests_every_byte_and_path() -> None:
    tree = FileTree({"b": b"2", "a": b"1"})

    assert [path for path, _ in tree] == ["a", "b"]
    assert tree["b"] == b"2"
    assert tree.digest == FileTree({"a": b"1", "b": b"2"}).digest
    assert tree.digest != FileTree({"a": b"1", "c": b"2"}).digest
    assert tree.digest != FileTree({"a": b"1", "b": b"3"}).digest
    assert set(tree.digests) == {"a", "b"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", "a//b", "", "a/"])
def test_no_path_leaves_its_tree(path: str) -> None:
    with pytest.raises(ValueError, match="must stay inside its tree"):
        FileTree({path: b""})


@pytest.mark.parametrize(
    ("cpu", "threads"),
    [("1", 1), ("2", 2), ("1.5", 2), ("500m", 1), ("2500m", 3), ("0.1", 1), ("1k", 1000), ("1e1", 10)],
)
def test_a_trial_has_a_thread_for_each_cpu(cpu: str, threads: int) -> None:
    assert Resources(cpu=cpu).threads == threads


@pytest.mark.parametrize(
    ("cpu", "processes", "threads"), [("24", 1, 24), ("24", 4, 6), ("2", 4, 1), ("10", 3, 3)]
)
def test_the_processes_of_a_pod_share_its_cpus(cpu: str, processes: int, threads: int) -> None:
    assert RunConfig(resources=Resources(cpu=cpu), processes=processes).threads == threads


def test_a_problem_is_one_line_and_its_hint_another_whatever_they_quote() -> None:
    problem = Problem("a\n::error::b.yaml", 1, 1, "p\r##[error]", "got\u2028x", "code", "do\n::this")

    message = str(problem)

    assert message == (
        "a\\x0a::error::b.yaml:1:1: p\\x0d\\x23#[error]: got\\u2028x [code]\n  hint: do\\x0a::this"
    )
