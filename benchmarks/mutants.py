"""Break the source in seeded ways, one at a time in a copy, and count how many breaks a test notices.

    make mutants                      200 mutants, seed 0
    make mutants MUTANTFLAGS="--count 20 --seed 7"

A mutant changes one comparison, operator, condition, constant or returned value. Prose (texts with a space),
docstrings and annotations are left alone. Exits 1 below the bar.
"""

import argparse
import ast
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue

ROOT = Path(__file__).parent.parent

SUITES = {
    "generator/sweepledger/structs": ("tests/structs", "tests/formats", "tests/search", "tests/render"),
    "generator/sweepledger/formats": (
        *("tests/formats", "tests/exchange", "tests/results", "tests/render", "tests/golden"),
    ),
    "generator/sweepledger/spec": ("tests/spec", "tests/search", "tests/exchange"),
    "base/launcher": ("tests/launcher",),
}
"""The tests of each folder, and of what stands on it, nearest first: a mutant is noticed by the first that fails."""
BAR = 0.88
TIMEOUT_SECONDS = 600
WORKERS = 2

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
OPERATORS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    line: int
    start: int
    end: int
    text: str
    suite: tuple[str, ...]

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only files whose path holds this")
    arguments = parser.parse_args()
    everything = [
        mutant
        for folder, suite in SUITES.items()
        for mutant in mutants(folder, suite)
        if arguments.only in mutant.file
    ]
    chosen = random.Random(arguments.seed).sample(everything, min(arguments.count, len(everything)))  # noqa: S311
    print(f"{len(everything)} possible mutants, {len(chosen)} chosen with seed {arguments.seed}", flush=True)
    if not suites_pass(chosen):
        return 1
    survivors = run(chosen)
    noticed = len(chosen) - len(survivors)
    print(f"\n{noticed} of {len(chosen)} mutants noticed ({noticed / len(chosen):.1%})")
    return 0 if noticed / len(chosen) >= BAR else 1


def mutants(folder: str, suite: tuple[str, ...]) -> Iterator[Mutant]:
    """List every mutant of the Python files below a folder."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_bytes()
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        skipped = set(unmutable(ast.parse(source)))
        for node in ast.walk(ast.parse(source)):
            for place, text in changes(node):
                key = (place.lineno, place.col_offset)
                if key in skipped or place.end_lineno is None or place.end_col_offset is None:
                    continue
                start = starts[place.lineno - 1] + place.col_offset
                end = starts[place.end_lineno - 1] + place.end_col_offset
                yield Mutant(path.relative_to(ROOT).as_posix(), place.lineno, start, end, text, suite)


def unmutable(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Name the places of docstrings, annotations and f-strings."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.append(node.value)
        if isinstance(node, ast.JoinedStr):
            parts += node.values
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts.append(node.annotation)
        if isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        for part in filter(None, parts):
            for inner in ast.walk(part):
                if isinstance(inner, ast.expr):
                    yield inner.lineno, inner.col_offset


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Give what a node can be changed into: the place and the new text."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in COMPARISONS:
            yield node, f"({ast.unparse(left)}) {COMPARISONS[type(operator)]} ({ast.unparse(right)})"
        case ast.BoolOp(op=operator, values=values):
            word = " or " if isinstance(operator, ast.And) else " and "
            yield node, "(" + word.join(f"({ast.unparse(value)})" for value in values) + ")"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            yield node, f"(({ast.unparse(left)}) {OPERATORS[type(operator)]} ({ast.unparse(right)}))"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Return(value=ast.expr() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield value, "None"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, repr(value + 1)
        case ast.Constant(value=str(value)) if value and " " not in value:
            yield node, repr(value + "X")


def suites_pass(chosen: list[Mutant]) -> bool:
    """Make sure that a failing test means a noticed mutant: without one, every suite passes."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copied(Path(folder))
        for suite in sorted({mutant.suite for mutant in chosen}):
            noticed = failure(Mutant("README.md", 0, 0, 0, "", suite), copy)
            if noticed is not None:
                print(noticed[-2000:], file=sys.stderr)
                print(f"{' '.join(suite)} fails without a mutant; nothing can be measured", file=sys.stderr)
                return False
    return True


def copied(folder: Path) -> Path:
    """Copy what the tests need."""
    copy = folder / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "dist"))
    return copy


def run(chosen: list[Mutant]) -> list[Mutant]:
    """Try every mutant in copies of the repository, two at a time; give those that no test noticed."""
    waiting: Queue[Mutant] = Queue()
    for mutant in chosen:
        waiting.put(mutant)
    survivors: list[Mutant] = []

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            copy = copied(Path(folder))
            while True:
                try:
                    mutant = waiting.get_nowait()
                except Empty:
                    return
                if failure(mutant, copy) is None:
                    survivors.append(mutant)
                    before = (ROOT / mutant.file).read_bytes()[mutant.start : mutant.end].decode()
                    print(
                        f"\nsurvived {mutant.file}:{mutant.line}: {before!r} -> {mutant.text!r}", flush=True
                    )
                else:
                    print(".", end="", flush=True)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return survivors


def failure(mutant: Mutant, copy: Path) -> str | None:
    """Return the output of the suite if it fails, or hangs, on a mutant; None if it passes."""
    target = copy / mutant.file
    # A mutant can have the size and the time of the original, which is all that Python compares.
    compiled = Path(importlib.util.cache_from_source(str(target)))
    original = target.read_bytes()
    target.write_bytes(mutant.apply(original))
    compiled.unlink(missing_ok=True)
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *mutant.suite,
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # it would compile everything again for each mutant
    try:
        done = subprocess.run(
            argv, cwd=copy, env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        target.write_bytes(original)
        compiled.unlink(missing_ok=True)
    return done.stdout.decode(errors="replace") if done.returncode else None


if __name__ == "__main__":
    sys.exit(main())
