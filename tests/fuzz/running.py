"""Starting the fuzzer: what it begins with, and what it says at its end."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FUZZER = Path(__file__).parent / "fuzzer.py"

EXPRESSIONS = [
    "a * b <= 4096 and lr < 0.1",
    "optimizer in ['sgd', 'adam'] or not flag",
    "layers[0]",
    "1 if nothing == null else -a ** 2 // 3 % 5",
    "0 < lr <= 1e-3 != true",
    "max(a, b, 1.5) - min(layers) / len(optimizer)",
    "round(log(sqrt(lr), 2), 3) + exp(b) not in layers",
    '`max-lr` == "x" or optimizer.lr > .5',
]
SIGNS = {
    "expression": """
        and or not in if else true false null True && || a b lr optimizer flag nothing layers
        ** // <= >= == != abs( ceil( exp( floor( len( log( log10( log2( max( min( round( sqrt(
        -1 0 9007199254740992 1e308 5e-324 1e999 0x10 1_0 ` 'a' []""",
    "reader": """
        ! &a *a { } [ ] ' " # ~ null true yes
        010 0o17 0x1f 1e400 1e-400 .inf 12:30:45 2001-01-01 1_000""",
}
WITH_BLANKS = {
    "expression": ("not in",),
    "reader": (
        *("? ", ": ", "- ", "!!str ", "<<: ", "---\n", "...\n", "%YAML 1.1\n", "|\n  ", ">-\n  "),
        *("&a ", "\\u200b", "\\x00", "\\UFFFFFFFF", "\t", "\ufeff", "\r\n"),
    ),
}
WORDS = {target: [*WITH_BLANKS[target], *signs.split()] for target, signs in SIGNS.items()}
LONGEST = {"expression": 1_100, "reader": 256}
"""Bytes of an input: beyond the cap of expressions; of YAML, few, for more of them are tried in a second."""


def fuzz(
    target: str, folder: Path, *flags: str, root: Path, begin: Sequence[bytes] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a target on the package below `root`; its corpus and findings lie in `folder` afterwards."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(begin or seeds(target)):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    words = folder / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS[target]))
    argv = [sys.executable, str(FUZZER), target, f"-dict={words}", f"-max_len={LONGEST[target]}"]
    argv += [f"-artifact_prefix={folder}/", "-print_final_stats=1", "-timeout=20", *flags, str(corpus)]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'generator'}:{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=False
    )


def executions(done: subprocess.CompletedProcess[str]) -> int:
    result = re.search(r"stat::number_of_executed_units:\s*([0-9]+)", done.stderr)
    assert result is not None, done.stderr[-4000:]
    return int(result[1])


def seeds(target: str) -> list[bytes]:
    if target == "expression":
        return [text.encode() for text in EXPRESSIONS]
    files = [path.read_bytes() for path in sorted((ROOT / "tests/specs").glob("*/*.yaml"))]
    return [content for content in files if len(content) <= LONGEST[target]]


def _escaped(word: str) -> str:
    return "".join(
        chr(byte) if 32 < byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word.encode()
    )
