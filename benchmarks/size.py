"""Count what people write by hand, and list the files that are derived from it.

    python benchmarks/size.py                 # this repository
    python benchmarks/size.py FOLDER          # another clone or work tree of it
    python benchmarks/size.py --format json

It needs only git and the standard library. It counts the files that git tracks or would track, as they are in the work
tree; no file is counted twice, and a derived file (`DERIVED`) never as written by hand.

- lines: of the whole file, with comments, docstrings and empty lines, as `wc -l`
- tokens: of Python, those of `tokenize` without comments, docstrings and layout; of other files, words and single marks
- functions: each `def` of Python, methods and nested functions included
- words: of pages, as `wc -w`
- keys: each path of properties in the JSON Schema, once: `run.pack.trials` is one, and so are `pools`, a map with free
  names, and `pools.*.price`
- problem codes and commands: the headings of docs/problems.md and docs/commands.md, which tests compare with the code

"As find counts" are the figures that changes are compared with. At commit 6035ee75 they were: 90,914 lines in 512 files
of the generator, 7,034 lines of scripts in base/, 113,048 of tests, and 107,000 words of documents.
"""

import argparse
import ast
import fnmatch
import io
import json
import re
import subprocess
import token
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
GENERATOR = "generator/sweepledger"
GOLDEN = "python -m pytest --update-golden"
TWINS = "tests/cluster/test_invalid_twins.py"


class Derived(NamedTuple):
    """Files that a command writes."""

    paths: str
    """A pattern, in which * matches slashes, too."""
    command: str
    test: str | None = None
    """Below tests/: fails if they do not fit what they are derived from. None: only the command itself can tell."""


DERIVED = (
    Derived("docs/commands.md", "python -m tools.command_reference", "contract/test_command_reference.py"),
    Derived(f"{GENERATOR}/schemas/*.schema.json", "python -m tools.json_schemas", "spec/test_schema_keys.py"),
    Derived(
        f"{GENERATOR}/reader/launcher_parts.py",
        "python -m tools.launcher_parts",
        "contract/test_metric_lines.py",
    ),
    Derived("tests/golden/cases/*/expected/*", f"{GOLDEN} tests/golden", "golden/test_golden.py"),
    Derived("tests/specs/*/*.txt", f"{GOLDEN} tests/spec/test_examples.py", "spec/test_examples.py"),
    Derived("tests/cluster/judged.json", f"{GOLDEN} {TWINS}", "cluster/test_invalid_twins.py"),
    Derived(f"{GENERATOR}/contract/schemas/*.json", "make schemas", "policy/test_schemas.py"),
    Derived("locks/*.lock", "make locks", "contract/test_size.py"),
    Derived("overlays/*/*/*", "sweep generate", "contract/test_own_sweeps.py"),
    Derived("results/*", "sweep cluster collect", "contract/test_own_sweeps.py"),
    Derived("docs/images/site-*.png", "python -m tools.site_pictures"),
    Derived("docs/images/summary-*.png", "python tools/summary_picture.py"),
    Derived("benchmarks/data/*.json", "python benchmarks/grids.py record"),
    Derived("tests/cluster/tools/*/go.sum", "go mod tidy"),
    Derived("tests/bucket/azurite/package-lock.json", "npm install --package-lock-only"),
)

PRODUCT = {
    "generator, Python": r"generator/.*\.py",
    "generator, other text": r"generator/.*",
    "launcher": r"(launcher|base/launcher|base/components)/.*\.py",
    "base, other scripts": r"base/.*\.(py|sh)",
    "base, YAML and JSON": r"base/.*",
    "trainer": r"trainer/.*",
    "workflows": r"\.github/.*",
    "tools": r"tools/.*",
}
"""The files of each part; one that several patterns match belongs to the first part."""

BESIDE = {"tests, Python": r"tests/.*\.py", "tests, other text": r"tests/.*", "benchmarks": r"benchmarks/.*"}
PAGES = {"decision records": r"docs/decisions/.*\.md", "docs": r"docs/.*\.md", "README": r"README\.md"}
PARTS = {**PRODUCT, **BESIDE, **PAGES}

FIND = {
    "generator/sweepledger/**/*.py, files": (rf"{GENERATOR}/.*\.py", "files"),
    "generator/sweepledger/**/*.py, lines": (rf"{GENERATOR}/.*\.py", "lines"),
    "base/**/*.py and *.sh, lines": (r"base/.*\.(py|sh)", "lines"),
    "tests/**/*.py, lines": (r"tests/.*\.py", "lines"),
    "docs/**/*.md without docs/decisions/, words": (r"docs/(?!decisions/).*\.md", "words"),
}
"""What a person counts with `find` and `wc`, derived files included."""


@dataclass(frozen=True)
class Size:
    """The size of a file or of several."""

    files: int = 0
    lines: int = 0
    tokens: int = 0
    functions: int = 0
    words: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Size)))


def size_of(path: Path) -> Size:
    text = path.read_text(encoding="utf-8", errors="replace")
    lines, words = text.count("\n"), len(text.split())
    if path.suffix != ".py":
        return Size(1, lines, len(re.findall(r"\w+|[^\w\s]", text)), 0, words)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = sum(isinstance(node, kinds) for node in ast.walk(ast.parse(text)))
    return Size(1, lines, python_tokens(text), functions, words)


def python_tokens(text: str) -> int:
    """Count the tokens that Python runs: a statement that is only a string is a docstring."""
    layout = {tokenize.COMMENT, tokenize.NL, token.INDENT, token.DEDENT, tokenize.ENCODING, token.ENDMARKER}
    count, statement = 0, list[int]()
    for entry in tokenize.generate_tokens(io.StringIO(text).readline):
        if entry.type == token.NEWLINE:
            count += len(statement) if set(statement) != {token.STRING} else 0
            statement = []
        elif entry.type not in layout:
            statement.append(entry.type)
    return count


def tracked_files(root: Path) -> tuple[str, ...]:
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(sorted({name for name in names if name and (root / name).is_file()}))


def derived_files(entry: Derived, files: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in files if fnmatch.fnmatchcase(path, entry.paths))


def part_of(path: str) -> str | None:
    """Return the part that a file belongs to; None for files that are not counted, such as specs and pictures."""
    return next((name for name, pattern in PARTS.items() if re.fullmatch(pattern, path)), None)


def schema_keys(schema: dict[str, Any]) -> set[str]:
    """Return the path of each property that a JSON Schema has."""

    def walk(node: dict[str, Any], prefix: str, above: tuple[str, ...]) -> Iterator[str]:
        reference = node.get("$ref")
        if reference is not None and reference not in above:
            target = reduce(lambda at, part: at[part], reference[2:].split("/"), schema)
            yield from walk(target, prefix, (*above, reference))
        for name, entry in node.get("properties", {}).items():
            yield prefix + name
            yield from walk(entry, f"{prefix}{name}.", above)
        for entry in [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]:
            if isinstance(entry, dict):
                yield from walk(entry, f"{prefix}*.", above)
        if isinstance(node.get("items"), dict):
            yield from walk(node["items"], f"{prefix}[].", above)
        choices = [node[key] for key in ("if", "then", "else") if key in node]
        for key in ("anyOf", "oneOf", "allOf"):
            choices += node.get(key, ())
        for entry in choices:
            yield from walk(entry, prefix, above)

    return set(walk(schema, "", ()))


def concepts(root: Path) -> dict[str, int]:
    def read(path: str) -> str:
        return (root / path).read_text(encoding="utf-8")

    commands = re.findall(r"^### `sweep ([a-z -]*[a-z])", read("docs/commands.md"), re.MULTILINE)
    rows = re.findall(r"^\| (?!term )[^|]+ \|.*\|$", read("docs/glossary.md"), re.MULTILINE)

    def keys(file: str) -> int:
        return len(schema_keys(json.loads(read(f"{GENERATOR}/schemas/{file}.schema.json"))))

    return {
        "keys of a spec": keys("sweep"),
        "keys of the settings": keys("settings"),
        "problem codes": len(re.findall(r"^### `", read("docs/problems.md"), re.MULTILINE)),
        "commands": len({command.split()[0] for command in commands}),
        "commands with their subcommands": len(commands),
        "rows of the glossary": len(rows),
    }


def report(root: Path) -> dict[str, Any]:
    files = tracked_files(root)
    lists = {entry: derived_files(entry, files) for entry in DERIVED}
    derived = {path for paths in lists.values() for path in paths}
    sizes = {path: size_of(root / path) for path in files if part_of(path)}
    parts, packages = defaultdict[str, Size](Size), defaultdict[str, Size](Size)
    for path in sizes.keys() - derived:
        parts[part_of(path) or ""] += sizes[path]
        if path.startswith(f"{GENERATOR}/"):
            package, _, rest = path.removeprefix(f"{GENERATOR}/").partition("/")
            packages[package if rest else "modules of the top"] += sizes[path]
    total = sum((parts[name] for name in PRODUCT), Size())
    return {
        "version": 1,
        "product": {**{name: asdict(parts[name]) for name in PRODUCT}, "total": asdict(total)},
        "packages": {name: asdict(size) for name, size in sorted(packages.items())},
        "beside": {name: asdict(parts[name]) for name in BESIDE},
        "pages": {name: asdict(parts[name]) for name in PAGES},
        "concepts": concepts(root),
        "as_find_counts": {
            name: sum(getattr(size, column) for path, size in sizes.items() if re.fullmatch(pattern, path))
            for name, (pattern, column) in FIND.items()
        },
        "derived": [{**entry._asdict(), "files": len(paths)} for entry, paths in lists.items()],
    }


def text_of(report: dict[str, Any]) -> str:
    code, pages = ("files", "lines", "tokens", "functions"), ("files", "lines", "words")
    lines = list[str]()
    for title, columns in (("product", code), ("packages", code), ("beside", code), ("pages", pages)):
        lines += [f"{title + ', by hand':40}" + "".join(f"{column:>11}" for column in columns)]
        for name, size in report[title].items():
            lines += [f"{name:40}" + "".join(f"{size[column]:11,}" for column in columns)]
        lines += [""]
    for title in ("concepts", "as_find_counts"):
        lines += [title.replace("_", " ")]
        lines += [*(f"{name:52}{count:10,}" for name, count in report[title].items()), ""]
    lines += [f"{'derived files':48}{'files':>6}  command"]
    lines += [f"{entry['paths']:48}{entry['files']:6,}  {entry['command']}" for entry in report["derived"]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    given = parser.parse_args()
    counted = report(given.folder)
    print(json.dumps(counted, indent=2) if given.format == "json" else text_of(counted))


if __name__ == "__main__":
    main()
