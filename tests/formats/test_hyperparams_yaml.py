"""`hyperparams.yml` has the bytes of PyYAML's dump, without its time."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.formats import hyperparams_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.values import Value

NAMES = st.sampled_from(["lr", "batch-size", "on", "1", "a b", "x" * 90])
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3)


def dumped(sets: list[dict[str, Any]]) -> str:
    """One item at a time: PyYAML writes an alias where the same list stands twice."""
    items = [str(yaml.dump([{"hyperparam_set": values}], default_flow_style=False)) for values in sets]
    return "".join(items) or "[]\n"


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=4))
def test_it_is_what_pyyaml_dumps(sets: list[dict[str, Any]]) -> None:
    assert hyperparams_yaml.write(sets) == dumped(sets)


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 1, -3, 1e-07, 1e16, 1.5e-07, 0.1, "", "on", "1e-3", [], [1, "a"], "x" * 200],
)
def test_each_kind_of_value_comes_back(value: Value) -> None:
    text = hyperparams_yaml.write([{"v": value}, {}, {"v": value}])

    assert text == dumped([{"v": value}, {}, {"v": value}])
    assert hyperparams_yaml.read(text.encode()) == ({"v": value}, {}, {"v": value})


def test_texts_and_lists_that_look_alike_stay_apart() -> None:
    assert hyperparams_yaml.write([{"v": "[1]"}, {"v": [1]}]) == dumped([{"v": "[1]"}, {"v": [1]}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "must be a list of `hyperparam_set:` items, got a mapping"),
        ("", "got nothing"),
        ("- 1", "item 1: must be a mapping with the one key 'hyperparam_set', got no mapping"),
        ("- hyperparam_set: {}\n- b: 1", "item 2: .* got the keys 'b'"),
        ("- hyperparam_set: {}\n  b: 1", "item 1: .* got the keys 'hyperparam_set', 'b'"),
        ("- hyperparam_set: 1", "item 1"),
    ],
)
def test_what_is_no_list_of_sets_is_refused(text: str, message: str) -> None:
    with pytest.raises(ForeignError, match=message):
        hyperparams_yaml.read(text.encode())


def test_a_large_file_is_read_in_parts_and_a_mistake_keeps_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperparams_yaml, "PART_BYTES", 30)
    sets: list[dict[str, Value]] = [{"n": number, "text": "- a\n- b"} for number in range(50)]
    text = hyperparams_yaml.write(sets)

    assert hyperparams_yaml.read(text.encode()) == tuple(sets)
    with pytest.raises(ForeignError) as caught:
        hyperparams_yaml.read(f"{text}- hyperparam_set: [}}\n".encode())
    assert caught.value.line == text.count("\n") + 1


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = hyperparams_yaml.write([{"n": 1}]).encode()
    monkeypatch.setattr(hyperparams_yaml, "MAX_BYTES", len(text))

    assert hyperparams_yaml.read(text) == ({"n": 1},)
    with pytest.raises(ForeignError, match=f"must be at most {len(text)} bytes, got {len(text) + 1}"):
        hyperparams_yaml.read(text + b"\n")
