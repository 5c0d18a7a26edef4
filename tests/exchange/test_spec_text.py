"""What is imported is written for people, and read back by the strict reader as the same data."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.spec_text import spec_text
from sweepledger.reader import characters, read_document

WORDS = st.sampled_from(
    ["", "yes", "1e3", "012", "null", "- a", "a: b", "#x", "a #b", "1_0", "2020-01-01", "~", "="]
)
VISIBLE = st.text(max_size=12).filter(lambda text: not characters.INVISIBLE.search(text))
TEXTS = WORDS | VISIBLE | st.text(alphabet="ab01 .:-+e,{}[]&*!|>'\"%@`\\?\n\t", max_size=8)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


def read_back(text: str) -> Any:
    reading = read_document(text.encode(), "sweeps/x.yaml")
    assert reading.problems == (), text
    assert reading.document is not None
    return reading.document.data


@given(
    st.dictionaries(
        TEXTS | st.sampled_from(["parameters", "assignments", "constraints"]), DATA, min_size=1, max_size=6
    )
)
def test_whatever_is_written_is_read_as_the_same_data(spec: dict[str, Any]) -> None:
    text = spec_text(Imported(spec, ()), "a test")

    written = {"version": 1, **spec}
    assert read_back(text) == written
    assert list(read_back(text)) == list(written)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_loss_can_break_out_of_its_comment(what: str, why: str) -> None:
    text = spec_text(Imported({"name": "x"}, (Loss(what, why),)), "a test")

    assert read_back(text) == {"version": 1, "name": "x"}
    assert len([line for line in re.split("\n", text) if line.startswith("#")]) == 3
