"""Places in a document, and how paths and values are shown."""

import pytest

from sweepledger.reader import Document, DocumentPath, read_document, safe_repr

TEXT = b"""\
# a comment
top:
  list:
    - 1
    - {inner: 2}
  "quoted key": text
other: [a,  b]
"""


def document() -> Document:
    result = read_document(TEXT, "f.yaml").document
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("path", "value_at", "key_at"),
    [
        ((), (2, 1), (1, 1)),
        (("top",), (3, 3), (2, 1)),
        (("top", "list", 0), (4, 7), (4, 7)),
        (("top", "list", 1, "inner"), (5, 15), (5, 8)),
        (("top", "quoted key"), (6, 17), (6, 3)),
        (("other", 1), (7, 13), (7, 13)),
        (("top", "missing"), (3, 3), (2, 1)),
        (("other", "a"), (7, 8), (7, 1)),
    ],
)
def test_paths_lead_to_keys(path: DocumentPath, value_at: tuple[int, int], key_at: tuple[int, int]) -> None:
    assert document().place(path) == (value_at, key_at)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1}, "a mapping"),
        ([1], "a list"),
        (None, "null"),
        (False, "false"),
        ("a'b", '"a\'b"'),
        ("https://user:secret@host/x", "'https://…@host/x'"),
        ("user:secret@host/image@sha256:0", "'…@host/image@sha256:0'"),
        ("python:3@sha256:0", "'python:3@sha256:0'"),
    ],
)
def test_found_values_are_shown_by_repr_and_without_credentials(value: object, text: str) -> None:
    assert safe_repr(value) == text
