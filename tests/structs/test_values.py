import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.structs.values import bytes_digest, canonical, canonical_json, digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-05, "1e-05"),
        (2.0**53, "9007199254740992"),
        (2.0**54, "1.8014398509481984e+16"),
        (-(2.0**53), "-9007199254740992"),
        (True, "true"),
        (None, "null"),
        ("é", '"\\u00e9"'),
        ((1, 2.0), "[1,2]"),
        ({"b": 1, "a": 2.0}, '{"a":2,"b":1}'),
    ],
)
def test_equal_values_have_one_form(value: object, written: str) -> None:
    assert canonical_json(value) == written


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan], {"a": math.inf}])
def test_numbers_that_are_not_finite_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        canonical(value)


@given(JSON)
def test_the_canonical_form_is_its_own_canonical_form(value: object) -> None:
    assert canonical(canonical(value)) == canonical(value)


def test_digests_are_sha256_of_the_canonical_json() -> None:
    assert digest([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    assert bytes_digest(b"[]") == "sha256:" + digest([])
