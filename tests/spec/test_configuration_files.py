"""The CSV file of configurations next to a spec."""

from typing import Any

import pytest

from sweepledger.problems import Problem
from sweepledger.structs.search_block import ConfigurationList
from sweepledger.structs.sweep import Sweep
from tests.written_specs import SETTINGS, a_spec, parse_sweep, spec_bytes

SPEC = {"method": "list", "parameters": {"epochs": {"value": 2}}, "assignments": "points.csv"}


def listed(content: bytes | None, **changes: Any) -> Sweep | tuple[Problem, ...]:
    files = {} if content is None else {"points.csv": content}
    return parse_sweep(
        spec_bytes(a_spec(**{**SPEC, **changes})), "sweeps/lr.yaml", SETTINGS, beside=files.get
    )


def assignments(content: bytes) -> list[dict[str, Any]]:
    sweep = listed(content)
    assert isinstance(sweep, Sweep), "\n".join(map(str, sweep))
    design = sweep.design
    assert isinstance(design, ConfigurationList)
    return [dict(assignment) for assignment in design.assignments]


def listed_messages(content: bytes | None, **changes: Any) -> list[str]:
    sweep = listed(content, **changes)
    assert isinstance(sweep, tuple)
    return [str(problem) for problem in sweep]


def test_each_line_is_an_assignment() -> None:
    documents = assignments(b"rate,width\n0.1,64\n1e-3,128\n")

    assert documents == [{"rate": 0.1, "width": 64}, {"rate": 0.001, "width": 128}]


def test_the_digest_is_of_both_files_whatever_their_line_ends() -> None:
    first, windows = listed(b"a,b\n1,2\n"), listed(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    other = listed(b"a,b\n1,3\n")

    assert isinstance(first, Sweep)
    assert isinstance(other, Sweep)
    assert first == windows
    assert first.digest != other.digest


def test_what_is_wrong_with_a_value_is_told_at_its_place_in_the_csv() -> None:
    (ambiguous,) = listed_messages(b'rate, mode\n0.1, on\n0.2,"${HOME}"\n')
    (template,) = listed_messages(b'rate, mode\n0.1, x\n0.2,"${HOME}"\n')

    assert ambiguous == (
        "sweeps/points.csv:2:6: mode: must mean the same to every YAML reader, got on: "
        "YAML 1.1 reads true, YAML 1.2 reads text [ambiguous-scalar]\n"
        '  hint: write true or "on" for the text'
    )
    assert template == (
        "sweeps/points.csv:3:5: mode: must not contain '${', got '${HOME}' [template-syntax]\n"
        "  hint: Flux fills in ${NAME} in every manifest"
    )


def test_a_value_is_no_document() -> None:
    (problem,) = listed_messages(b'a\n"' + b"x" * 5000 + b'"\n')

    assert "points.csv:2:1: a: must be at most 4096 characters, got 5000 [value-too-long]" in problem


@pytest.mark.parametrize("name", ["../points.csv", "a/points.csv", "/etc/passwd", "points.yaml", ".csv"])
def test_no_file_is_opened_but_a_csv_beside_the_spec(name: str) -> None:
    names: list[str] = []

    def beside(name: str) -> bytes | None:
        names.append(name)
        return b"a\n1\n"

    sweep = parse_sweep(
        spec_bytes(a_spec(**{**SPEC, "assignments": name})), "sweeps/lr.yaml", SETTINGS, beside=beside
    )

    assert isinstance(sweep, tuple)
    assert [problem.code for problem in sweep] == ["list-file"]
    assert names == []


def test_problems_of_a_file_are_told_in_its_own_time() -> None:
    results = listed_messages(b"a\n" + b'"${x}i"\n' * 3_000)

    assert len(results) == 51
