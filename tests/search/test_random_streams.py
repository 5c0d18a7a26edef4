"""Random streams: permanent, with random access, uniform; and permutations made of them."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.search.rng import permutation, stream

GOLDEN = [
    0.23074956518668444,
    0.06442836251414541,
    0.059864834908001874,
    0.9412851749760283,
    0.932473358087148,
]
GOLDEN_FAR = 0.34124238409035323
GOLDEN_SHORT = [9, 4, 1, 6, 5, 0, 3, 7, 2, 8]
GOLDEN_LONG = [859849662597, 6037050292, 685305704059]
"""A change here breaks a promise: committed sweeps are made of these."""

LONG = (65_537, 99_999, 1_000_000, 10**12, 2**53)
"""Counts whose permutations are mixed rather than listed."""


def test_draws_never_change() -> None:
    result = stream(7, "optimizer.lr", purpose="random")

    assert result.uniforms(range(5)) == GOLDEN
    assert result.uniforms(range(10**15, 10**15 + 1)) == [GOLDEN_FAR]


def test_draws_follow_the_documented_rules() -> None:
    key = hashlib.blake2b(b'[7,"optimizer.lr","random"]').digest()
    block = hashlib.blake2b((12).to_bytes(8, "big"), key=key).digest()
    words = struct.unpack(">8Q", block)

    uniforms = stream(7, "optimizer.lr", purpose="random").uniforms(range(96, 104))

    assert uniforms == [(word >> 11) / 2**53 for word in words]


def test_seed_name_and_purpose_each_make_another_stream() -> None:
    streams = [stream(1, "x", purpose="a"), stream(2, "x", purpose="a"), stream(1, "y", purpose="a")]
    streams += [stream(1, "x", purpose="b"), stream(1, 'x","a', purpose="")]

    firsts = {item.uniforms(range(1))[0] for item in streams}

    assert len(firsts) == 5


@given(st.integers(0, 2**53), st.integers(1, 300))
def test_a_permutation_has_every_number_once(seed: int, count: int) -> None:
    place = permutation(seed, "x", count)

    assert sorted(place(position) for position in range(count)) == list(range(count))


@pytest.mark.parametrize("count", LONG)
def test_a_long_permutation_stays_in_its_range_and_repeats_nothing(count: int) -> None:
    place = permutation(3, "x", count)

    values = [place(position) for position in (*range(1000), *range(count - 1000, count))]

    assert len(set(values)) == 2000
    assert 0 <= min(values) < count / 50
    assert count * 49 / 50 < max(values) < count


def test_permutations_never_change_and_differ_between_seeds() -> None:
    short, long = permutation(7, "grid", 10), permutation(7, "grid", 10**12)

    assert [short(position) for position in range(10)] == GOLDEN_SHORT
    assert [long(position) for position in range(3)] == GOLDEN_LONG
    assert permutation(8, "grid", 10**12)(0) != long(0)
