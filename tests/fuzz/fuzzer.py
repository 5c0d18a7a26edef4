"""One target under atheris: python fuzzer.py reader|expression [flags of libFuzzer] CORPUS."""

import sys
from collections.abc import Callable

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore] # not on every Python

# Not ruamel.yaml: five times slower, and it is our own lines that have to be reached.
with atheris.instrument_imports(include=["sweepledger"]):
    from sweepledger.expressions.evaluation import ComputeError, compile_expression
    from sweepledger.expressions.kinds import check_types, type_of
    from sweepledger.expressions.parser import ExpressionError, parse_expression
    from sweepledger.problems import Problem
    from sweepledger.reader import read_document
    from sweepledger.structs.values import Value

VALUES: dict[str, Value] = {
    "a": 64,
    "b": 0,
    "lr": 0.01,
    "optimizer": "adam",
    "flag": True,
    "nothing": None,
    "layers": (1, 2.5, "x"),
}
KNOWN = {name: frozenset({type_of(value)}) for name, value in VALUES.items()}


def reader(content: bytes) -> None:
    """Any bytes are a document or have problems, and each problem can be said."""
    reading = read_document(content, "sweeps/x.yaml")

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
        tree = parse_expression(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)  # noqa: PT017 - no test, but what atheris calls
        return
    findings, kinds = check_types(tree, KNOWN)
    try:
        value = compile_expression(tree)(VALUES)
    except (KeyError, ComputeError):  # a name without a value
        return
    assert findings or type_of(value) in kinds


TARGETS: dict[str, Callable[[bytes], None]] = {"reader": reader, "expression": expression}

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
