import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.reader.strict_yaml import read_document
from sweepledger.reader.yaml_edit import format_block, remove_key, set_value

COMMENTED = """# of the platform
version: 1
images:
  # what trains
  trainer:
    repository: registry.example.org/trainer   # ours
    digest: sha256:old
  other: {repository: registry.example.org/other, digest: "sha256:x"}  # theirs

# the last words
branch: main
"""


@pytest.mark.parametrize(("image", "old"), [("trainer", "sha256:old"), ("other", '"sha256:x"')])
def test_a_value_is_replaced_and_every_comment_stays(image: str, old: str) -> None:
    made = set_value(COMMENTED, ("images", image, "digest"), "sha256:new")

    assert made == COMMENTED.replace(old, "sha256:new")


@pytest.mark.parametrize(
    ("text", "path", "value", "made"),
    [
        ("a: 1\n", ("b",), 2, "a: 1\nb: 2\n"),
        ("", ("b",), "x", "b: x\n"),
        ("# nothing yet\n", ("b", "c"), "x", "# nothing yet\nb:\n  c: x\n"),
        ("a: {b: 1}\n", ("a", "c"), [1], "a: {b: 1, c: [1]}\n"),
        ("a:\n  b: |\n    x\n    y\nz: 1\n", ("a", "c"), 2, "a:\n  b: |\n    x\n    y\n  c: 2\nz: 1\n"),
        ("a: 1\n", ("b", "c", "d"), "on", 'a: 1\nb:\n  c:\n    d: "on"\n'),
        ("a:\n  - 1\n  - 2\nz: 1\n", ("a",), [3], "a: [3]\nz: 1\n"),
        ("a:\r\n  b: 1\r\n", ("a", "b"), 2, "a:\r\n  b: 2\r\n"),
        ("\ufeffa: 1\n", ("a",), 2, "\ufeffa: 2\n"),
        ("a: 1\n", ("x y",), "1e-4", 'a: 1\n"x y": "1e-4"\n'),
        ("a:\n  # why\n  x\nb: 1\n", ("a",), "w", "a:\n  # why\n  w\nb: 1\n"),
    ],
)
def test_a_key_is_set_in_style(text: str, path: tuple[str, ...], value: object, made: str) -> None:
    assert set_value(text, path, value) == made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a: 1\n", "a: 1\nl: [x]\n"),
        ("l: []\n", "l: [x]\n"),
        ("l: [w]  # why\n", "l: [w, x]  # why\n"),
        ("l:\n  - w\nb: 1\n", "l:\n  - w\n  - x\nb: 1\n"),
        ("l:\n- w # why\nb: 1\n", "l:\n- w # why\n- x\nb: 1\n"),
        ("l: [\n  w, # why\n]\n", "l: [\n  w, x, # why\n]\n"),
    ],
)
def test_an_item_is_appended_in_the_style_of_its_list(text: str, made: str) -> None:
    assert set_value(text, ("l",), "x", append=True) == made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a: 1\nb: [1, 2]  # gone\nc: 3\n", "a: 1\nc: 3\n"),
        (
            "a: 1\n# above\nb:\n  - x\n  - {w: 1,\n     z: 2}\n\n# below\nc: 3\n",
            "a: 1\n# above\n\n# below\nc: 3\n",
        ),
        ("\ufeffa: 1\r\nb:\r\n  x: 1\r\n", "\ufeffa: 1\r\n"),
        ("a: 1\nb: 2", "a: 1\n"),
        ("a: 1\n", "a: 1\n"),
    ],
)
def test_a_key_is_removed_with_its_lines_and_comments_beside_it_stay(text: str, made: str) -> None:
    assert remove_key(text, "b") == made
    assert remove_key(made, "b") == made


def test_a_key_that_shares_its_line_is_not_removed() -> None:
    with pytest.raises(ValueError, match="b cannot be removed"):
        remove_key("{a: 1, b: 2}\n", "b")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: [", ("b",)),
        ("a: &x 1\n", ("a",)),
        ("a: 1\na: 2\n", ("a",)),
        ("- a\n", ("a",)),
        ("a: 1\n", ("a", "b")),
        ("a: 1\n", ()),
        ("a: |+\n  x\n\n\n", ("b",)),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, path: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        set_value(text, path, 2)


def test_an_item_is_put_into_lists_only() -> None:
    with pytest.raises(ValueError, match="must be a list, got 1"):
        set_value("a: 1\n", ("a",), 2, append=True)


KEYS = st.sampled_from(["a", "b", "c", "on", "1", "x y", "é"])
SCALARS = st.one_of(
    st.integers(-(2**53), 2**53),
    st.booleans(),
    st.none(),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x24F), max_size=8).filter(str.isprintable),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.lists(KEYS, min_size=1, max_size=3), VALUES)
def test_an_edit_changes_nothing_else(data: dict[str, object], path: list[str], value: object) -> None:
    text = "".join(f"{format_block(key, item, 0)}  # kept\n" for key, item in data.items())
    try:
        made = set_value(text, tuple(path), value)
    except ValueError:
        # Only where the path leads through something that is no mapping.
        held: object = data
        for key in path:
            assert isinstance(held, dict)
            held = held.get(key, {})
            if not isinstance(held, dict):
                break
        else:
            raise
        return

    document = read_document(made.encode(), "x").document
    assert document is not None
    result = document.data
    for key in path:
        result = result[key]
    assert result == value
    assert made.count("# kept") == len(data)
