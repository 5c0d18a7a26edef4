import pytest

from sweepledger.engine.local.job_spec import ResourceAmounts
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


def test_a_pod_fits_only_if_all_its_requests_fit() -> None:
    machine = ResourceAmounts(milli_cpus=2000, memory=100, gpus=1)

    assert ResourceAmounts(2000, 100, 1).fits(machine)
    assert not ResourceAmounts(2001, 1, 0).fits(machine)
    assert not ResourceAmounts(1, 101, 0).fits(machine)
    assert not ResourceAmounts(1, 1, 2).fits(machine)


def test_whole_cpus_cover_a_fraction() -> None:
    assert [ResourceAmounts(milli_cpus=milli).cpus for milli in (0, 1, 1000, 1001)] == [0, 1, 1, 2]
