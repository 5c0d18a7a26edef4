"""Cells of CSV lines: bare, quoted, padded with blanks, and malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.formats import csv_cells

TEXTS = st.text(st.characters(exclude_characters="\n"))


@given(st.lists(TEXTS, min_size=1))
def test_quoted_texts_are_read_back(texts: list[str]) -> None:
    cells = csv_cells.split_written_line(",".join(map(csv_cells.quote, texts)))

    assert cells is not None
    assert [csv_cells.unquote(cell) for cell in cells] == texts


@pytest.mark.parametrize("line", ['a"b', '"a', '"a"b', '"a""', 'a,"', '"a" "b"'])
def test_a_misplaced_quote_is_no_line(line: str) -> None:
    assert csv_cells.split_line(line) is None
    assert csv_cells.split_written_line(line) is None


def test_a_long_line_with_a_misplaced_quote_takes_the_time_of_one_reading() -> None:
    assert csv_cells.split_line('""' * 500_000 + "x") is None
