"""Other tools' YAML: read as they read it, and never more than a machine can bear."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.formats.foreign_yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    ExponentText,
    ForeignError,
    coerce_number,
    load,
)

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 11)
)
LADDER = "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, MAX_DEPTH + 1))
MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1", {"a": 1}), ("on: yes", {"on": True}), ("1: 2020-01-01", {"1": "2020-01-01"}),
        ("a: !foo [1, !bar x]", {"a": [1, "x"]}), ("a: !!python/object:os.system x", {"a": "x"}),
        ("a: !!binary aGk=", {"a": "aGk="}),
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}", {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}}),
        ("a: 1e-3", {"a": "1e-3"}), ("a: 1.0e-3", {"a": 0.001}), ("%YAML 1.1\n---\na: 0x1F", {"a": 31}),
        ("\ufeffa: 1", {"a": 1}), ("", None),
    ],
)  # fmt: skip
def test_it_is_read_as_the_other_tool_reads_it(text: str, expected: object) -> None:
    assert load(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"), ("on", True), ("y", "y"), ("N", "N"), ("010", 8), ("0o17", 15), ("08", 8), ("0b11", 3),
        ("1_000", 1000), ("1e3", 1000), ("-.5", -0.5), (".5_0", 0.5), (".5_", ".5_"), ("1.0", 1), ("1e400", "1e400"),
        ("2020-01-01", "2020-01-01"), ("~x", "~x"), ("99999999999999999999", 1e20), ("'010'", "010"), ("!!str 1", "1"),
    ],
)  # fmt: skip
def test_files_of_kubernetes_are_read_as_go_does(text: str, value: object) -> None:
    """Compared with sigs.k8s.io/yaml, which differs from YAML 1.1, and reads `y` and `N` as booleans."""
    read = load(f"a: {text}".encode(), version="go")["a"]

    assert repr(read) == repr(value)


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: 1\nb: 2\na: 3", "repeat the key 'a'", 3), ("a: b: c", "valid YAML", 1),
        ("--- 1\n--- 2", "one document, got several", 2), ("? [a]\n: b", "keys must be text", 1),
        ("a: .inf", "finite", 1), ("a: *b", "no value", 1), ("a: &a [*a]", "no value", 1),
        *((f"a: {text}", "readable", None) for text in ("!!int x", "!!int ", "!!float ", "!!bool x", "!!bool maybe")),
        ("a: " + "9" * 5000, "readable", None), ("[" * (MAX_DEPTH + 1), "nest at most", 1),
        (BOMB, "hold at most", 6), (MERGES, "hold at most", None), (LADDER, "nest at most", None),
        ("[" * MAX_BYTES + "x", "at most", None),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str) else None,
)  # fmt: skip
def test_what_is_too_much_or_makes_no_sense_is_refused(text: str, words: str, line: int | None) -> None:
    with pytest.raises(ForeignError, match=words) as caught:
        load(text.encode())

    if line is not None:
        assert caught.value.line == line


def test_what_is_no_text_is_refused_with_its_line() -> None:
    with pytest.raises(ForeignError, match="UTF-8") as caught:
        load(b"a: 1\nb: \xff")

    assert caught.value.line == 2


@given(st.text(alphabet="ab:- \n[]{}&*!|>'\"#%?,<=~1.e\t\\", max_size=40))
def test_no_text_does_anything_but_be_read_or_refused(text: str) -> None:
    with suppress(ForeignError):
        load(text.encode())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1), (0.5, 0.5), (ExponentText("1e-3"), 0.001), ("1e-3", None), (ExponentText("1E5"), 1e5),
        (True, None), ("1", None), ("x", None), (ExponentText("1e999"), None),
    ],
)  # fmt: skip
def test_exponents_count_as_numbers_where_one_is_wanted(value: object, expected: float | None) -> None:
    assert coerce_number(value) == expected
