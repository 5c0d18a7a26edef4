"""Keys at their bounds: values that are taken and arrive as written, and values that are refused by one code."""

from operator import attrgetter
from typing import Any

import pytest

from tests.written_specs import a_spec, bad, good, parsed

SWEEPS = ["a", "a" * 36, "lr-1", "l--r", "x9"]
NO_SWEEPS = [
    *("a" * 37, "Lr", "", "..", "\u0455weep", "\uff53weep", "lr\n", "1a", "-a", "a-", "a_b", "a.b", "a b"),
    *("../a", "con", "default", "main", "kube-system"),
]
METRICS = ["a", "A1", "val_acc", "val/acc@5", "x.y-z", "a" * 63]
NO_METRICS = ["", "=x", "a,b", "a b", "1a", "_a", "a" * 64, "a\n", "ä"]
PARAMETERS = ["a", "lr", "LR", "a.b.c", "a-b_c", "x" * 63, "lambda", "Trial", "a_.b", "a.b_", "a._b"]
NO_PARAMETERS = [
    *("", "_a", "1a", "--lr", "a b", "a=b", "x" * 64, "ä", "trial", "a.", "a..b", "a.__b"),
    *("__class__", "a\n"),
]
COMMANDS = [("train",), ("${interpreter}", "x"), ("x", ""), ("x",) * 256, ("${env}", "x\ny")]
NO_PROGRAMS = ["", "/t.py", "./t.py", "../t.py", "a//t.py", "a/", "t.py -x", "a\\t.py", "t\n"]
NO_LISTS = ["x.tsv", "../x.csv", "/x.csv", "a/x.csv", "", ".csv", "-x.csv", "x.CSV", "a\\x.csv", "x.csv\n"]
INTERPRETERS = ["python", "python3.11", "/opt/conda/bin/python", "./venv/bin/python", "c++", "a" * 255]
FOLDERS = ["trainer", "src/a-b_c.d", ".hidden", "a/b/c", "overlays2", "a/results"]
NO_FOLDERS = [
    *("", "/", "/abs", "..", "a/../b", "./a", "a//b", "a b", "-x", "a/-x", "a//", "ä"),
    *("overlays", "overlays/active", "results/", ".git/hooks"),
]
VARIABLES = ["A", "a_b", "_", "XDG_SESSION_ID", "HF_HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "a" * 128]
NO_VARIABLES = [
    *("", "1A", "A-B", "A.B", "Ä", "A B", "PATH", "HOME", "JOB_ID", "SWEEP_X", "a" * 129),
    *("TMPDIR", "TMP", "PWD", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
]
NAMES = tuple(f"p{number}" for number in range(100))
KEYS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("name", "sweep-name", SWEEPS, NO_SWEEPS),
    ("metric.name", "metric-name", METRICS, NO_METRICS),
    ("command", "out-of-range", COMMANDS, [[], ["x"] * 257]),
    ("description", "out-of-range", ["x" * 1000], ["x" * 1001]),
    ("program", "program-path", [], NO_PROGRAMS),
    ("assignments", "list-file", [], NO_LISTS),
    ("run.parallelism", "out-of-range", [1, 100_000], [0, 100_001]),
    ("run.retries", "out-of-range", [0, 10], [-1, 11]),
    ("run.retries", "wrong-type", [], [True, 0.5, None]),
    ("run.seed_base", "out-of-range", [0, 2**31 - 1], [-1, 2**31]),
    ("run.resources.gpu", "out-of-range", [0, 64], [-1, 65]),
    ("run.resources.gpu", "wrong-type", [], [0.5]),
    ("run.resources.cpu", "wrong-type", ["2"], [True, None, [1]]),
    ("run.interpreter", "interpreter", INTERPRETERS, ["", "python -u", "-x", "a;b", "a" * 256, "+a"]),
    ("run.code.path", "code-path", FOLDERS, NO_FOLDERS),
    ("run.environment", "environment-name", [{n: "x"} for n in VARIABLES], [{n: "x"} for n in NO_VARIABLES]),
    ("design.space.names", "parameter-name", [(n,) for n in PARAMETERS], [(n,) for n in NO_PARAMETERS]),
    ("design.space.names", "out-of-range", [NAMES], [(), (*NAMES, "x")]),
]


def changes(key: str, value: Any) -> dict[str, Any]:
    """Return the changes of a spec that give a key this value."""
    if key == "design.space.names":
        return {"parameters": {name: {"value": 1} for name in value}}
    first, *rest = key.split(".")
    for name in reversed(rest):
        value = {name: value}
    if first == "metric":
        value["goal"] = "minimize"
    others = {"method": "list", "parameters": ...} if first == "assignments" else {}
    return {first: value, **others}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, _, taken, _ in KEYS for value in taken])
def test_values_at_the_bounds_are_taken(key: str, value: object) -> None:
    read = attrgetter(key.replace("code.path", "code_path"))

    assert read(good(**changes(key, value))) == value


@pytest.mark.parametrize(
    ("key", "code", "value"), [(key, code, value) for key, code, _, refused in KEYS for value in refused]
)
def test_values_beyond_the_bounds_are_refused(key: str, code: str, value: object) -> None:
    assert code in {code for _, code in bad(**changes(key, value))}


def test_reserved_names_are_listed() -> None:
    sweep = parsed(a_spec(name="main"), path="sweeps/main.yaml")

    assert isinstance(sweep, tuple)
    assert [(problem.message, problem.hint) for problem in sweep] == [
        ("must not be a reserved name, got 'main'", "reserved: con, default, kube-system, main")
    ]
