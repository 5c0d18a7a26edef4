"""One target under atheris: python fuzzer.py reader|expression [flags of libFuzzer] CORPUS."""

import sys
from collections.abc import Callable

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore] # not on every Python

# Not ruamel.yaml: five times slower, and it is our own lines that have to be reached.
with atheris.instrument_imports(include=["generator"]):
    from generator.problems import Problem
    from generator.reader import read
    from generator.reader.expression import ExpressionError, parse
    from generator.search.expressions.computing import Absent, ComputeError, compile_expression
    from generator.spec.kinds import check, kind_of
    from generator.structs.values import Value

VALUES: dict[str, Value] = {
    "a": 64,
    "b": 0,
    "lr": 0.01,
    "optimizer": "adam",
    "flag": True,
    "nothing": None,
    "layers": (1, 2.5, "x"),
}
KNOWN = {name: frozenset({kind_of(value)}) for name, value in VALUES.items()}


def reader(content: bytes) -> None:
    """Any bytes are a document or have problems, and each problem can be said."""
    reading = read(content, "sweeps/x.yaml")

    assert reading.document is not None or reading.problems
    for problem in reading.problems:
        assert isinstance(problem, Problem)
        assert str(problem).encode()
    counted = [problem for problem in reading.problems if problem.code != "too-many-problems"]
    assert counted == sorted(counted)


def expression(content: bytes) -> None:
    """Any text is an expression or says where it is none; what it computes is of a kind foretold."""
    text = content.decode("utf-8", errors="surrogateescape")
    try:
        tree = parse(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)  # noqa: PT017 - no test, but what atheris calls
        return
    findings, kinds = check(tree, KNOWN)
    try:
        value = compile_expression(tree)(VALUES)
    except (Absent, ComputeError):
        return
    assert findings or kind_of(value) in kinds


TARGETS: dict[str, Callable[[bytes], None]] = {"reader": reader, "expression": expression}

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
