"""Break the source in seeded ways, one at a time in a copy, and count how many breaks a test of `make test` notices.

    make mutants                      200 mutants, seed 0
    make mutants MUTANTFLAGS="--count 20 --seed 7 8"

A mutant changes one comparison, operator, condition, constant or returned value. Prose (texts with a space),
docstrings and annotations are left alone. One run of the tests first records which of them evaluate what the mutants
change; only these are run on a mutant, cheapest first, until one fails. Exits 1 below the bar.
"""

import argparse
import ast
import atexit
import importlib
import importlib.util
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SUITES = {
    "generator/sweepledger/structs": ("tests/structs", "tests/formats", "tests/search", "tests/render"),
    "generator/sweepledger/formats": (
        *("tests/formats", "tests/exchange", "tests/results", "tests/render", "tests/golden"),
    ),
    "generator/sweepledger/spec": ("tests/spec", "tests/search", "tests/exchange"),
    "base/launcher/v1": ("tests/launcher",),
}
"""The tests of each folder, and of what stands on it, nearest first."""
BAR = 0.88
FIRST_FILES, FIRST_TESTS = 2, 40
"""Files, and tests of these, that are tried before the others: most mutants are noticed by one of them."""
BUDGET = 0.1
"""The share of the CPU time of all tests that is spent on one mutant; if it survives, it counts as unnoticed."""
TIMEOUT_SECONDS = 600
WORKERS = 2
LIBRARIES = (
    *("_pytest.assertion.rewrite", "git", "hypothesis", "hypothesis.strategies", "jinja2", "jsonschema"),
    *("jsonschema_rs", "numpy", "rich.console", "rich.table", "ruamel.yaml", "scipy.stats", "typer", "yaml"),
)
"""What most tests import, imported once."""

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
MARK = "__reached__({}) if '__reached__' in globals() else None"
"""The launcher copies a part of itself into a module of its own, which has no such function."""
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
    is_global: bool
    """Whether it lies in no function."""

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


@dataclass(frozen=True)
class TestRun:
    """What a test took and evaluated, by the numbers of points in the instrumented files."""

    test: str
    seconds: float
    points: frozenset[int]

    @property
    def file(self) -> str:
        return self.test.split("::")[0]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--only", default="", help="only files whose path holds this")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="only tests of these folders and files")
    parser.add_argument("--record", type=Path, help="file of an earlier run's recording; written if missing")
    parser.add_argument("--workers", type=int, default=WORKERS)
    arguments = parser.parse_args()
    everything = [
        mutant
        for folder, suite in SUITES.items()
        for mutant in mutants(folder, suite)
        if arguments.only in mutant.file
    ]
    chosen = {
        seed: random.Random(seed).sample(everything, min(arguments.count, len(everything)))  # noqa: S311
        for seed in arguments.seed
    }
    every_chosen = list(dict.fromkeys(mutant for sample in chosen.values() for mutant in sample))
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        with ProcessPoolExecutor(
            arguments.workers, get_context("fork"), initializer=make_copy, initargs=(folder,)
        ) as pool:
            if arguments.record and arguments.record.exists():
                lines = arguments.record.read_text().splitlines()
            else:
                parts = split(arguments.tests, arguments.workers)
                lines = [line for part in pool.map(partial(record, every_chosen), parts) for line in part]
            if arguments.record:
                arguments.record.write_text("".join(f"{line}\n" for line in lines))
            runs = [
                TestRun(test, seconds, frozenset(points)) for test, seconds, points in map(json.loads, lines)
            ]
            print(
                f"{len(runs)} tests recorded, {sum(run.seconds for run in runs):.0f} CPU seconds", flush=True
            )
            plans = [plan(mutant, number, every_chosen, runs) for number, mutant in enumerate(every_chosen)]
            noticed_by = dict(zip(every_chosen, pool.map(try_out, every_chosen, plans), strict=True))
            witnesses = sorted({test for test in noticed_by.values() if test})
            # A test that fails without a mutant, too, has noticed nothing.
            failing = set(pool.submit(failures, witnesses).result())
    print(f"\n{len(failing)} tests fail without a mutant: {sorted(failing)}" if failing else "")
    is_enough = True
    for seed, sample in chosen.items():
        noticed = sum(noticed_by[mutant] not in {None, *failing} for mutant in sample)
        print(f"seed {seed}: {noticed} of {len(sample)} mutants noticed ({noticed / len(sample):.1%})")
        is_enough &= noticed / len(sample) >= BAR
    return 0 if is_enough else 1


def mutants(folder: str, suite: tuple[str, ...]) -> Iterator[Mutant]:
    """List every mutant of the Python files below a folder."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_bytes()
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        tree = ast.parse(source)
        skipped = set(unmutable(tree))
        local = {
            (inner.lineno, inner.col_offset)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.Lambda)
            for part in (function.body if isinstance(function.body, list) else [function.body])
            for inner in ast.walk(part)
            if isinstance(inner, ast.expr)
        }
        for node in ast.walk(tree):
            for place, text in changes(node):
                key = (place.lineno, place.col_offset)
                if key in skipped or place.end_lineno is None or place.end_col_offset is None:
                    continue
                start = starts[place.lineno - 1] + place.col_offset
                end = starts[place.end_lineno - 1] + place.end_col_offset
                name = path.relative_to(ROOT).as_posix()
                yield Mutant(name, place.lineno, start, end, text, suite, is_global=key not in local)


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


def instrumented(source: bytes, points: Iterable[tuple[Mutant, int]], module: int, hits: Path) -> bytes:
    """Return a module that marks in a file which of its points were evaluated, and whether any function was called."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    inserted: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            line = min(part.lineno for part in (first, *getattr(first, "decorator_list", ())))
            if line > node.lineno:
                indent = " " * first.col_offset
                inserted.append((starts[line - 1], 0, f"{indent}{MARK.format(module)}\n"))
    for mutant, number in points:
        marked = [(mutant.start, 1, f"(({MARK.format(number)}) or ("), (mutant.end, -1, "))")]
        with suppress(SyntaxError):  # in a pattern, for example
            compile(_with(source, marked), mutant.file, "exec")
            inserted += marked
    body = [node for node in tree.body if not _comes_first(node)]
    line = min(part.lineno for part in (body[0], *getattr(body[0], "decorator_list", ())))
    prelude = (
        "import os as __os__, mmap as __mmap__\n"
        f"__hits__ = __mmap__.mmap(__os__.open({str(hits)!r}, __os__.O_RDWR), 0)\n"
        "def __reached__(number): __hits__[number] = 1\n"
    )
    return _with(source, [*inserted, (starts[line - 1], -2, prelude)])


def _comes_first(node: ast.stmt) -> bool:
    """Return whether a statement must stay before all others: a docstring, or an import from the future."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _with(source: bytes, inserted: list[tuple[int, int, str]]) -> bytes:
    """Return a source with texts inserted at offsets."""
    for offset, _, text in sorted(inserted, key=lambda one: one[:2], reverse=True):
        source = source[:offset] + text.encode() + source[offset:]
    return source


def modules(chosen: Iterable[Mutant]) -> list[str]:
    """List the files of mutants."""
    return sorted({mutant.file for mutant in chosen})


def split(paths: Iterable[str], parts: int) -> list[list[str]]:
    """Divide the files of tests."""
    files = [
        file.relative_to(ROOT).as_posix()
        for path in paths
        for file in (sorted((ROOT / path).rglob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path])
        if not file.is_relative_to(ROOT / "tests/e2e")
    ]
    return [files[part::parts] for part in range(parts)]


class Worker:
    """The copy of the repository that this process changes."""

    folder: Path
    copy: Path


def make_copy(folder: Path) -> None:
    """Copy what the tests need for this process."""
    Worker.folder = folder / str(os.getpid())
    Worker.copy = Worker.folder / "copy"
    (Worker.folder / "tmp").mkdir(parents=True)
    made = (".docs", ".git", ".sweepledger", ".tools", ".venv", "__pycache__", "dist")
    ignored = shutil.ignore_patterns(*made, ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, Worker.copy, ignore=ignored)


class Recorder:
    """Plug-in of pytest that writes a line for each test that passes."""

    def __init__(self, hits: Path, lines: Path) -> None:
        with hits.open("r+b") as file:
            self.hits = mmap.mmap(file.fileno(), 0)
        self.lines = lines
        self.passed = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.hits[:] = bytes(len(self.hits))
        self.passed = False
        before = os.times()
        result = yield
        after = os.times()
        if self.passed:
            seconds = sum(after[:4]) - sum(before[:4])
            points = [number for number, is_hit in enumerate(self.hits[:]) if is_hit]
            with self.lines.open("a") as file:
                file.write(json.dumps([item.nodeid, round(seconds, 3), points]) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = report.passed and (self.passed or report.when == "setup")


class Chooser:
    """Plug-in of pytest that keeps some tests, in their order, and writes down which of them fails."""

    def __init__(self, tests: list[str], failed: Path) -> None:
        self.order = {test: number for number, test in enumerate(tests)}
        self.failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.failed.open("a") as file:
                file.write(f"{report.nodeid}\n")


def record(chosen: list[Mutant], files: list[str]) -> list[str]:
    """Run tests on instrumented modules; return a line of JSON for each that passes: its name, CPU seconds, points."""
    names = modules(chosen)
    hits, lines = Worker.folder / "hits", Worker.folder / "lines"
    hits.write_bytes(bytes(len(chosen) + len(names)))
    lines.write_text("")
    of_launcher = [file for file in files if file.startswith("tests/launcher/")]
    # Other tests would notice that the launcher is not the one that its digest names.
    for top, tests in (("base/", of_launcher), ("generator/", sorted({*files} - {*of_launcher}))):
        instrument([name for name in names if name.startswith(top)], chosen, hits)
        code = run_pytest(tests, Recorder(hits, lines), 24 * 3600) if tests else 0
        for name in names:
            shutil.copyfile(ROOT / name, Worker.copy / name)
            forget_compiled(Worker.copy / name)
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            raise RuntimeError(f"exit code {code}: {(Worker.folder / 'output').read_text()[-2000:]}")
    return lines.read_text().splitlines()


def instrument(names: list[str], chosen: list[Mutant], hits: Path) -> None:
    """Let modules of the copy mark in a file what is evaluated."""
    for name in names:
        points = [(mutant, point) for point, mutant in enumerate(chosen) if mutant.file == name]
        module = len(chosen) + modules(chosen).index(name)
        target = Worker.copy / name
        target.write_bytes(instrumented(target.read_bytes(), points, module, hits))
        forget_compiled(target)


def plan(mutant: Mutant, number: int, chosen: list[Mutant], runs: list[TestRun]) -> list[list[str]]:
    """List the tests to try on a mutant: of the files that are most about it, then others, then users of its module."""
    module = len(chosen) + modules(chosen).index(mutant.file)
    nearby = [run for run in runs if run.test.startswith(tuple(f"{suite}/" for suite in mutant.suite))]
    called = [run for run in runs if module in run.points] or nearby
    if mutant.is_global:  # a test that only looks at the module calls nothing of it
        known, nearest_suite = {run.test for run in called}, f"{mutant.suite[0]}/"
        called += [run for run in nearby if run.test.startswith(nearest_suite) and run.test not in known]
    reaching = [run for run in called if number in run.points]
    # What an import evaluates counts for all that call the module; some points cannot be marked, or lie in a copy.
    if mutant.is_global or not reaching:
        reaching = called
    in_file = Counter(run.file for run in runs)
    shares = {file: count / in_file[file] for file, count in Counter(run.file for run in reaching).items()}

    def distance(file: str) -> tuple[float, int, str]:
        suite = [number for number, folder in enumerate(mutant.suite) if file.startswith(f"{folder}/")]
        return -round(shares[file], 1), suite[0] if suite else len(mutant.suite), file

    nearest = sorted(shares, key=distance)[:FIRST_FILES]
    names = {run.test for run in reaching}

    def key(run: TestRun) -> tuple[bool, bool, float]:
        return run.file not in nearest, run.test not in names, run.seconds

    left = BUDGET * sum(run.seconds for run in runs)
    first: list[str] = []
    others: list[str] = []
    for run in sorted(called, key=key):
        left -= run.seconds
        if left > 0:
            (first if run.file in nearest and run.test in names else others).append(run.test)
    return [first[:FIRST_TESTS], [*first[FIRST_TESTS:], *others]]


def try_out(mutant: Mutant, parts: list[list[str]]) -> str | None:
    """Return the first test that fails, or hangs, on a mutant; None if all pass."""
    target = Worker.copy / mutant.file
    original = target.read_bytes()
    target.write_bytes(mutant.apply(original))
    forget_compiled(target)
    try:
        noticed_by = next((failed[0] for part in parts if (failed := failures(part, "-x"))), None)
    finally:
        target.write_bytes(original)
        forget_compiled(target)
    before = original[mutant.start : mutant.end].decode()
    survived = f"\nsurvived {mutant.file}:{mutant.line}: {before!r} -> {mutant.text!r}\n"
    print("." if noticed_by else survived, end="", flush=True)
    return noticed_by


def failures(tests: list[str], *options: str) -> list[str]:
    """Run tests and return those that fail; the last one, too, if they did not end."""
    if not tests:
        return []
    failed = Worker.folder / "failed"
    failed.write_text("")
    files = sorted({test.split("::")[0] for test in tests})
    code = run_pytest([*options, *files], Chooser(tests, failed), TIMEOUT_SECONDS)
    return failed.read_text().splitlines() or (tests[-1:] if code else [])


def forget_compiled(source: Path) -> None:
    """Delete the compiled file of a source, as a mutant may have the size and the time of the original."""
    Path(importlib.util.cache_from_source(str(source))).unlink(missing_ok=True)


def run_pytest(arguments: list[str], plugin: object, seconds: int) -> int:
    """Run pytest in a fork, which has its libraries, within the copy; return its exit code, not 0 if it hangs."""
    process = os.fork()
    if process == 0:
        code = 70
        try:
            atexit._clear()  # noqa: SLF001 - what the parent registered is not this process's
            os.setsid()
            # Whatever it starts ends with this much CPU time, even what outlives it.
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            with (Worker.folder / "output").open("wb") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            os.chdir(Worker.copy)
            os.environ |= {
                "PYTHONPATH": f"{Worker.copy}:{Worker.copy}/generator",
                "TMPDIR": str(Worker.folder / "tmp"),
            }
            os.environ.pop(
                "PYTHONDONTWRITEBYTECODE", None
            )  # it would compile everything again for each mutant
            tempfile.tempdir = None
            sys.path[0] = str(Worker.copy)
            options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is imported already
            code = int(pytest.main([*options, *arguments], plugins=[plugin]))
            atexit._run_exitfuncs()  # noqa: SLF001
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return 1


if __name__ == "__main__":
    sys.exit(main())
