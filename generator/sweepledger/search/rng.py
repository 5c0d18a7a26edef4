"""Reproducible random numbers from a counter and a hash, without state and without a library's generator.

A stream has a seed, a name and a purpose. Its key is BLAKE2b-512 of the canonical JSON of
`[seed, name, purpose]`; its block i is BLAKE2b-512, keyed by that, of i as eight big-endian bytes; a block is
eight big-endian 64-bit words. Draw n is word n mod 8 of block n div 8, its upper 53 bits as a fraction.
These rules never change: a change would alter the trials of committed specs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from sweepledger.distributions.rounding import index_at
from sweepledger.structs.values import canonical_json

STEP = 2.0**-53
"""Distance of neighbouring draws: the finest even grid of doubles below 1."""

_WORDS = Struct(">8Q")
_COUNTER = Struct(">Q")

MAX_SORTED = 2**16
"""Up to this length a permutation is a sorted list, so all are equally likely; sorting longer lists takes too long."""

_ROUNDS = 6
"""Mixing rounds of a long permutation: four look random if few indexes are known; two more are a reserve."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An endless sequence of draws with random access."""

    key: bytes

    def block(self, number: int) -> bytes:
        """Compute the 64 bytes of eight draws."""
        return blake2b(_COUNTER.pack(number), key=self.key).digest()

    def words(self, numbers: range) -> list[int]:
        """Return the draws with these numbers as integers below 2^64."""
        first, last = numbers.start // 8, -(-numbers.stop // 8)
        key = self.key
        words = [
            word
            for number in range(first, last)
            for word in _WORDS.unpack(blake2b(_COUNTER.pack(number), key=key).digest())
        ]
        return words[numbers.start - 8 * first : numbers.stop - 8 * first]

    def uniforms(self, numbers: range) -> list[float]:
        """Return the draws with these numbers as fractions: 0 <= u < 1."""
        return [(word >> 11) * STEP for word in self.words(numbers)]

    def below(self, number: int, limit: int) -> int:
        """Return an integer from 0 to limit - 1, with a bias below 2^-400.

        It uses the whole block with this number: use a stream either for integers or for fractions.
        """
        return int.from_bytes(self.block(number), "big") % limit


def stream(seed: int, name: str, *, purpose: str) -> Stream:
    """Return the stream of a seed, a name (of a parameter, for example) and a purpose."""
    return Stream(blake2b(canonical_json([seed, name, purpose]).encode()).digest())


def shuffled_indices(words: Sequence[int]) -> list[int]:
    """Return the indexes of random words, sorted by word."""
    return sorted(range(len(words)), key=words.__getitem__)


def permutation(seed: int, name: str, count: int) -> Callable[[int], int]:
    """Return a random bijection of range(count), which computes single values."""
    assert count >= 1
    if count <= MAX_SORTED:
        return shuffled_indices(stream(seed, name, purpose="order").words(range(count))).__getitem__
    # A Feistel network mixes the two coordinates of an index on a rectangle slightly larger than count.
    width = math.isqrt(count - 1) + 1
    height = -(-count // width)
    rounds = [stream(seed, name, purpose=f"order-{number}") for number in range(_ROUNDS)]
    pairs = list(zip(rounds[::2], rounds[1::2], strict=True))

    def permuted(index: int) -> int:
        assert 0 <= index < count
        while True:
            high, low = divmod(index, width)
            for even, odd in pairs:
                low = (low + even.below(high, width)) % width
                high = (high + odd.below(low, height)) % height
            index = high * width + low
            # Outside: follow the cycle of the bijection, which returns to where it began.
            if index < count:
                return index

    return permuted


SEED_BYTES = 6
"""Derived seeds are integers that a double represents exactly."""


def derive_seed(seed: int, number: int, purpose: str) -> int:
    """Derive a seed for a round and a purpose."""
    key = blake2b(canonical_json([seed, number, purpose]).encode(), digest_size=SEED_BYTES).digest()
    return int.from_bytes(key, "big")


class RandomSequence:
    """Sequential draws of a stream."""

    def __init__(self, seed: int) -> None:
        self._stream = stream(seed, "", purpose="dice")
        self._count = 0

    def fraction(self) -> float:
        """Draw a number u, 0 <= u < 1."""
        self._count += 1
        return self._stream.uniforms(range(self._count - 1, self._count))[0]

    def below(self, limit: int) -> int:
        """Draw an integer from 0 to limit - 1."""
        return index_at(self.fraction(), limit)
