import pytest

from sweepledger.structs import quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        (2, 2),
        ("2Gi", 2 << 30),
        ("1.5Ki", 1536),
        ("500M", 500_000_000),
        ("1e3", 1000),
        ("12E", 12 * 10**18),
    ],
)
def test_a_quantity_is_read_exactly(text: object, value: int) -> None:
    assert quantities.whole_quantity(text) == value


def test_cpus_are_counted_in_thousandths_and_rounded_up() -> None:
    assert quantities.whole_quantity("250m", unit=1000) == 250
    assert quantities.whole_quantity("0.0001", unit=1000) == 1


@pytest.mark.parametrize("text", ["", "1 Gi", "2gi", "-1", "Gi", "1e", None, True, "1e999", "٣"])
def test_invalid_quantities_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="must be a quantity"):
        quantities.parse_quantity(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (1000, "1000"), (1024, "1Ki"), (1536, "1536"), (3 * 2**20, "3Mi"), (2**30 + 2**20, "1025Mi")],
)
def test_bytes_are_written_in_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert quantities.format_bytes(size) == text
