import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.operations.scaffold.init import repository_namespace
from sweepledger.structs import names

LONGEST = "a" * names.MAX_SWEEP_NAME_LENGTH


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("lr", "lr"),
        ("My Sweep_2", "my-sweep-2"),
        ("2024-01 lr!", "lr"),
        ("a" * 40, LONGEST),
        ("a" * 35 + " b", "a" * 35),
        ("main", None),
        ("2024", None),
        ("\u0436", None),
    ],
)
def test_a_sweep_is_named_after_any_text_that_has_letters(text: str, name: str | None) -> None:
    assert names.suggest_sweep_name(text) == name


def test_the_longest_name_still_gives_dns_labels() -> None:
    batch = names.batch_name(LONGEST, 999, "f" * 64)

    assert len(f"{batch}-t0123456789a") == 63
    assert len(f"{batch}-99999") <= 63
    assert names.MAX_SWEEP_NAME_LENGTH == 36


@given(
    st.sampled_from(["lr", "a-b1-00000000", "x-b2", LONGEST]), st.integers(1, 999), st.integers(0, 16**8 - 1)
)
def test_a_batch_name_comes_apart_again(sweep: str, number: int, digest: int) -> None:
    name = names.batch_name(sweep, number, f"{digest:08x}")

    assert names.split_batch_name(name) == (sweep, number, f"{digest:08x}")


@pytest.mark.parametrize(
    "name",
    [
        *("lr", "lr-b0-01234567", "lr-b1-0123456", "lr-b1-0123456g"),
        *("-b1-01234567", "lr-b1000-01234567", "con-b1-01234567"),
    ],
)
def test_other_names_are_no_batches(name: str) -> None:
    assert names.split_batch_name(name) is None


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("vision", "vision-sweeps"),
        ("Speech_2.x", "speech-2-x-sweeps"),
        ("sweeps", "sweeps"),
        ("vision-sweeps", "vision-sweeps"),
        ("kube-system", "in-kube-system-sweeps"),
        ("a" * 100, f"{'a' * 31}-28165978-sweeps"),
        ("-".join("a" * 100), "-".join("a" * 16) + "-18bcd450-sweeps"),
        ("...", "sweeps"),
    ],
)
def test_the_namespace_of_a_new_repository_comes_from_its_name(name: str, namespace: str) -> None:
    assert repository_namespace(name) == namespace
