"""The writer of canonical JSON against the json module: digests of all trials hang on it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.structs.values import Value, bytes_digest, canonical, canonical_json, digest, identity

SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(JSON)
def test_it_writes_what_the_json_module_writes_of_the_canonical_form(value: object) -> None:
    plain = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))

    assert canonical_json(value) == plain
    assert canonical(canonical(value)) == canonical(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((1, "1"), (1.0, "1"), (-0.0, "0"), (0.1, "0.1"), (1e-05, "1e-05"), (True, "true"), (None, "null")),
        *((2.0**53, "9007199254740992"), (-(2.0**53), "-9007199254740992")),
        (2.0**54, "1.8014398509481984e+16"),
        ((1, "ä"), '[1,"\\u00e4"]'),
        ({"b": True, "a": None}, '{"a":null,"b":true}'),
        ({2: "x", 1: "y"}, '{"1":"y","2":"x"}'),
    ],
)
def test_the_one_form(value: object, text: str) -> None:
    assert canonical_json(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan], {"a": math.inf}, {1}, b"x"])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a value must be"):
        canonical_json(value)


def test_digests_are_sha256_of_the_canonical_json() -> None:
    assert digest([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    assert bytes_digest(b"[]") == "sha256:" + digest([])


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (True, 1, False),
        ([1, True], (1.0, True), True),
        ([1], [True], False),
        ("1", 1, False),
    ],
)
def test_identity_tells_apart_what_canonical_forms_do(left: Value, right: Value, *, same: bool) -> None:
    assert (identity(left) == identity(right)) is same
    assert (canonical_json(left) == canonical_json(right)) is same
